// The sound of a track without an AudioContext, as worklet.js gives it. An AudioContext takes a track's sound in time or loses it:
// in Chromium it loses what is more than 0.1 s late, as where the computer is busy. Here it waits.

const WAITING = 3000; // frames, of 10 ms as a rule
const PATIENCE_MS = 1000;

export const readable = "MediaStreamTrackProcessor" in window;

// Gives a TrackReader, or undefined where no sound comes, not even silence, or has another rate. rate: in Hz, if not the
// device's own; onAudio(samples, peak).
export async function read(track, rate, onAudio) {
  const reader = new MediaStreamTrackProcessor({ track, maxBufferSize: WAITING }).readable.getReader();
  const timeout = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS, {}));
  const { value: first } = await Promise.race([reader.read(), timeout]);
  if (first && (rate ?? first.sampleRate) === first.sampleRate) return new TrackReader(track, reader, first, onAudio);
  first?.close();
  reader.cancel();
  return undefined;
}

class TrackReader {
  constructor(track, reader, first, onAudio) {
    this.rate = first.sampleRate;
    this.track = track;
    this.reader = reader;
    this.onAudio = onAudio;
    this.chunk = new Int16Array(Math.round(this.rate / 10));
    this.length = 0;
    this.peak = 0;
    this.paused = false;
    this.#readOn(first);
  }

  async pause() {
    this.#give();
    this.paused = true;
  }

  resume() {
    this.paused = false;
  }

  async stop() {
    await this.pause();
    await this.reader.cancel();
    this.track.stop();
  }

  async #readOn(frame) {
    while (frame) {
      if (!this.paused) this.#take(frame);
      frame.close();
      ({ value: frame } = await this.reader.read());
      if (frame && frame.sampleRate !== this.rate) return this.track.onended(); // as if it were another device, which it is
    }
  }

  #take(frame) {
    const planes = Array.from({ length: frame.numberOfChannels }, (_, planeIndex) => {
      const plane = new Float32Array(frame.numberOfFrames);
      frame.copyTo(plane, { planeIndex, format: "f32-planar" });
      return plane;
    });
    for (let at = 0; at < frame.numberOfFrames; at++) {
      let sum = 0;
      for (const plane of planes) sum += plane[at];
      const value = Math.max(-1, Math.min(1, sum / planes.length));
      this.peak = Math.max(this.peak, Math.abs(value));
      this.chunk[this.length++] = Math.round(value * 32767);
      if (this.length === this.chunk.length) this.#give();
    }
  }

  #give() {
    if (this.length) this.onAudio(this.chunk.slice(0, this.length), this.peak);
    this.length = 0;
    this.peak = 0;
  }
}
