// Passes audio on as 16-bit mono, about a tenth of a second at a time.

class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.chunk = new Int16Array(Math.round(sampleRate / 10));
    this.length = 0;
    this.peak = 0;
  }

  process([input]) {
    const [first] = input;
    if (!first) return true;
    for (let at = 0; at < first.length; at++) {
      let sum = 0;
      for (const channel of input) sum += channel[at];
      const value = Math.max(-1, Math.min(1, sum / input.length));
      this.peak = Math.max(this.peak, Math.abs(value));
      this.chunk[this.length++] = Math.round(value * 32767);
      if (this.length === this.chunk.length) {
        this.port.postMessage({ samples: this.chunk.slice(), peak: this.peak });
        this.length = 0;
        this.peak = 0;
      }
    }
    return true;
  }
}

registerProcessor("tap", Tap);
