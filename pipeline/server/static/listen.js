// The speech of a translation, heard while a button is pressed.

import { Connection } from "./connection.js";

const MARGIN_S = 0.1; // before the first sound, so that a late message leaves no gap

export class Listening {
  constructor(button, onProblem) {
    this.button = button;
    this.onProblem = onProblem;
    button.addEventListener("click", () => (this.connection ? this.stop() : this.start()));
  }

  // Another session, or another language, which may have no voice.
  offer(session, language, voices) {
    const on = this.connection !== undefined;
    const changed = session !== this.session || language !== this.language;
    [this.session, this.language] = [session, language];
    this.button.hidden = !voices.includes(language);
    if (!changed) return;
    this.stop();
    if (on && !this.button.hidden) this.start();
  }

  start() {
    this.player = new Player();
    const first = { type: "listen", version: 2, session: this.session, language: this.language };
    const connection = new Connection(first, {
      onEvent: ({ type, sample_rate }) => type === "listening" && (this.player.rate = sample_rate),
      onSound: (data) => this.player.play(new Int16Array(data)),
      onState: (state, detail) => {
        if (!["refused", "ended"].includes(state) || connection !== this.connection) return;
        if (state === "refused" && detail.code !== "no-session") this.onProblem(detail);
        this.stop(true);
      },
    });
    this.connection = connection;
    this.button.setAttribute("aria-pressed", "true");
  }

  // toTheEnd: what has come is still heard.
  stop(toTheEnd = false) {
    this.connection?.close();
    this.player?.close(toTheEnd);
    this.connection = this.player = undefined;
    this.button.setAttribute("aria-pressed", "false");
  }
}

class Player {
  constructor() {
    this.context = new AudioContext();
    this.endS = 0; // of what has come, on the context's clock
  }

  play(samples) {
    const buffer = this.context.createBuffer(1, samples.length, this.rate);
    buffer.getChannelData(0).set(Float32Array.from(samples, (sample) => sample / 32768));
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    const startS = Math.max(this.context.currentTime + MARGIN_S, this.endS);
    source.start(startS);
    this.endS = startS + buffer.duration;
  }

  close(toTheEnd) {
    const leftS = toTheEnd ? Math.max(0, this.endS - this.context.currentTime) : 0;
    setTimeout(() => this.context.close(), 1000 * leftS);
  }
}
