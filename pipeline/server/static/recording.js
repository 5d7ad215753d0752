// A recording, decoded in the page and sent as fast as the server takes it.

import { CaptureError } from "./errors.js";
import { t } from "./ui.js";

const RATE = 16000; // what the recogniser uses
const LONGEST_S = 3600; // decoding an hour of 48 kHz stereo takes 1.4 GB
const AHEAD_S = 30; // how much the server may not have yet
const CHUNK_S = 0.5;
export const UNREADABLE = t("The browser cannot play this file. Choose a recording such as wav, mp3, m4a or webm.");

// file: a File. Gives a Recording.
export async function decode(file, handlers) {
  const seconds = await duration(file);
  if (seconds > LONGEST_S && Number.isFinite(seconds)) {
    const values = { minutes: Math.round(seconds / 60), most: LONGEST_S / 60 };
    throw new CaptureError(t("The recording has {minutes} minutes; a page can decode {most} at most. Choose “As it plays”, or translate the file with python -m pipeline.translate.", values));
  }
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new CaptureError(UNREADABLE);
  }
  const channels = Array.from({ length: sound.numberOfChannels }, (_, number) => sound.getChannelData(number));
  return new Recording(mixed(channels), handlers);
}

class Recording {
  // ahead(): samples that the server does not have yet. onAudio(samples, peak); onEnd("").
  constructor(samples, { ahead, onAudio, onEnd }) {
    this.rate = RATE;
    this.seconds = samples.length / RATE;
    this.samples = samples;
    this.handlers = { ahead, onAudio, onEnd };
    this.at = 0;
    this.paused = false;
  }

  // Give as much as the server should have now. Called whenever the server has said what it has: timers are slow in pages in
  // the background.
  more() {
    const { ahead, onAudio, onEnd } = this.handlers;
    while (!this.paused && this.at < this.samples.length && ahead() < AHEAD_S * RATE) {
      const chunk = this.samples.subarray(this.at, this.at + CHUNK_S * RATE);
      this.at += chunk.length;
      onAudio(chunk, 0);
    }
    if (this.at === this.samples.length && !this.ended) {
      this.ended = true;
      onEnd("");
    }
  }

  async pause() {
    this.paused = true;
  }

  resume() {
    this.paused = false;
    this.more();
  }

  async stop() {
    this.paused = this.ended = true;
  }
}

// Seconds by the file's own account; Infinity where it does not say.
async function duration(file) {
  const player = new Audio();
  player.preload = "metadata";
  try {
    return await new Promise((resolve, reject) => {
      player.onloadedmetadata = () => resolve(player.duration);
      player.onerror = () => reject(new CaptureError(UNREADABLE));
      player.src = URL.createObjectURL(file);
    });
  } finally {
    URL.revokeObjectURL(player.src);
  }
}

// channels: Float32Arrays of one length. Gives 16-bit mono.
export function mixed(channels) {
  const samples = new Int16Array(channels[0].length);
  for (let at = 0; at < samples.length; at++) {
    let sum = 0;
    for (const channel of channels) sum += channel[at];
    samples[at] = Math.round(Math.max(-1, Math.min(1, sum / channels.length)) * 32767);
  }
  return samples;
}
