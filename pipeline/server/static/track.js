// The sound of a track without an AudioContext, as worklet.js gives it. An AudioContext takes a track's sound in time or loses it:
// in Chromium it loses what is more than 0.1 s late, as where the computer is busy. Here it waits.

import { mixed } from "./recording.js";
import { t } from "./ui.js";

const WAITING = 3000; // frames, of 10 ms as a rule
const PATIENCE_MS = 3000;
const FLUSH_MS = 1000;
const DRIFT_MS = 0.005; // a frame: by what a frame's clock may differ from the page's

// Gives a TrackReader, or undefined where this browser reads no sound so, none comes, not even silence, or it has another rate.
// rate: in Hz, if not the device's own; onAudio(samples, peak); onEnd(reason).
export async function read(track, rate, onAudio, onEnd) {
  let reader;
  try {
    reader = new MediaStreamTrackProcessor({ track, maxBufferSize: WAITING }).readable.getReader();
  } catch {
    return undefined; // it may read pictures only
  }
  const timeout = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS, {}));
  const { value: first } = await Promise.race([reader.read(), timeout]);
  if (first && (rate ?? first.sampleRate) === first.sampleRate) return new TrackReader(track, reader, first, onAudio, onEnd);
  first?.close();
  reader.cancel().catch(() => {});
  return undefined;
}

class TrackReader {
  constructor(track, reader, first, onAudio, onEnd) {
    this.rate = first.sampleRate;
    this.track = track;
    this.reader = reader;
    this.onAudio = onAudio;
    this.chunk = new Int16Array(Math.round(this.rate / 10));
    this.length = 0;
    this.peak = 0;
    this.paused = false;
    this.since = -Infinity; // what is older is left out, in ms of performance.now()
    this.offset = Infinity; // from a frame's time to that
    this.flush = { at: Infinity };
    this.reading = this.#readOn(first).catch((error) => onEnd(t("The sound cannot be opened: {reason}", { reason: error.message })));
  }

  // Resolves when all sound so far has been given.
  async pause() {
    const flushed = new Promise((resolve) => {
      this.flush = { at: performance.now(), resolve };
      setTimeout(resolve, FLUSH_MS); // a track may give nothing
    });
    await Promise.race([flushed, this.reading]);
    this.flush = { at: Infinity };
    this.#give();
    this.paused = true;
  }

  resume() {
    this.since = performance.now();
    this.paused = false;
  }

  async stop() {
    await this.pause();
    this.reader.cancel().catch(() => {}); // it may have failed
    this.track.stop();
  }

  async #readOn(frame) {
    while (frame) {
      try {
        this.#heard(frame);
      } finally {
        frame.close();
      }
      ({ value: frame } = await this.reader.read());
    }
  }

  #heard(frame) {
    if (frame.sampleRate !== this.rate) throw new Error(`${frame.sampleRate} Hz`);
    const time = frame.timestamp / 1000;
    this.offset = Math.min(this.offset + DRIFT_MS, performance.now() - time);
    if (!this.paused && time + this.offset >= this.since) this.#take(frame);
    if (time + this.offset >= this.flush.at) this.flush.resolve();
  }

  #take(frame) {
    const planes = Array.from({ length: frame.numberOfChannels }, (_, planeIndex) => {
      const plane = new Float32Array(frame.numberOfFrames);
      frame.copyTo(plane, { planeIndex, format: "f32-planar" });
      return plane;
    });
    for (const sample of mixed(planes)) {
      this.peak = Math.max(this.peak, Math.abs(sample) / 32767);
      this.chunk[this.length++] = sample;
      if (this.length === this.chunk.length) this.#give();
    }
  }

  #give() {
    if (this.length) this.onAudio(this.chunk.slice(0, this.length), this.peak);
    this.length = 0;
    this.peak = 0;
  }
}
