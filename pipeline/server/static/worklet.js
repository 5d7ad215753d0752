// Passes audio on as 16-bit mono, about a tenth of a second at a time. Messages: "pause", answered with the rest of the audio
// and last: true, and "resume".

class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.chunk = new Int16Array(Math.round(sampleRate / 10));
    this.length = 0;
    this.peak = 0;
    this.paused = false;
    this.port.onmessage = ({ data }) => {
      this.paused = data === "pause";
      if (this.paused) this.#send(true);
    };
  }

  process([input]) {
    const [first] = input;
    if (!first || this.paused) return true;
    for (let at = 0; at < first.length; at++) {
      let sum = 0;
      for (const channel of input) sum += channel[at];
      const value = Math.max(-1, Math.min(1, sum / input.length));
      this.peak = Math.max(this.peak, Math.abs(value));
      this.chunk[this.length++] = Math.round(value * 32767);
      if (this.length === this.chunk.length) this.#send(false);
    }
    return true;
  }

  #send(last) {
    this.port.postMessage({ samples: this.chunk.slice(0, this.length), peak: this.peak, last });
    this.length = 0;
    this.peak = 0;
  }
}

registerProcessor("tap", Tap);
