// The WebSocket of a speaker or reader. It comes back after a lost connection, and a speaker's audio is sent again from
// where the server has it.

import { BASE } from "./base.js";
import { t } from "./ui.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;
const SILENT_MS = 8000; // the server sends a status every second; without it the connection is dead, though still open
const PAUSE_S = 2.5; // ends any sentence on the server
const RESUME_MS = 30000; // the server waits so long for a speaker
const FINAL_CODES = new Set(["busy", "stopping", "wrong-token", "wrong-key", "no-session", "replaced", "bad-message",
  "bad-version", "bad-sample-rate", "bad-room", "bad-glossary", "no-speakers", "room-busy", "no-models", "no-space", "unknown-source", "unknown-target", "idle", "too-long", "failed"]);

export class Connection {
  // first: the first message. handlers: onEvent(event), onSound(data) for listeners, onState(state, detail) with the states connecting, open, lost, ended,
  // refused. kept: {session, key} of a session that another page of this tab began. room: the name of the room or session, for a
  // proxy in front of several servers.
  constructor(first, handlers, kept = { session: null, key: null }, room = "") {
    this.first = first;
    this.room = room;
    this.handlers = handlers;
    this.session = kept.session;
    this.key = kept.key;
    this.taken = kept.session !== null; // until the server has said what it has of the audio
    this.ended = false; // the speaker has finished
    this.over = false; // nothing more comes
    this.refused = false; // because of an error
    this.waiting = []; // audio that the server may not have: {begin, samples}, and messages that belong between: {begin, text}
    this.sent = 0; // samples handed to the socket or kept for it
    this.received = 0; // samples that the server has
    this.waitMs = FIRST_WAIT_MS;
    window.addEventListener("online", () => {
      if (this.retry) this.#connect();
    });
    this.#connect();
  }

  // Audio: Int16Array at the rate of the first message. Kept until the server has it.
  speak(samples) {
    if (this.ended || this.over) return;
    this.waiting.push({ begin: this.sent, samples });
    this.sent += samples.length;
    if (this.ready) this.socket.send(samples);
  }

  // Samples that the server does not have yet.
  get ahead() {
    return this.sent - this.received;
  }

  end() {
    if (this.ended || this.over) return;
    this.ended = true;
    if (this.ready) this.socket.send(JSON.stringify({ type: "end" }));
  }

  // Leave a session that others go on with.
  close() {
    this.over = this.refused = true;
    this.socket?.close();
    clearTimeout(this.retry);
  }

  // Use other terms from now on: the text of a glossary file.
  replaceGlossary(text) {
    this.glossary = text; // until the server has answered
    this.#sendGlossary();
  }

  // Send a message, such as a correction; false without a connection.
  send(message) {
    if (this.ready) this.socket.send(JSON.stringify(message));
    return this.ready;
  }

  // Send a message that holds from the audio on that comes next. Kept until the server has some of that.
  mark(message) {
    if (this.ended || this.over) return;
    this.waiting.push({ begin: this.sent, text: JSON.stringify(message) });
    this.send(message);
  }

  // Nothing is said until a mark ends the pause. withSilence: some silence comes before it, so that what was said is finished; not in a
  // recording, whose times would change.
  pause(withSilence) {
    if (withSilence) this.speak(new Int16Array(PAUSE_S * this.first.sample_rate));
    this.mark({ type: "pause", on: true });
  }

  // Have the session translated into one more language.
  addTarget(language) {
    this.asked = language; // until the server has answered
    this.#sendAsked();
  }

  #sendAsked() {
    if (this.asked) this.send({ type: "add_target", language: this.asked });
  }

  #sendGlossary() {
    if (this.ready && !this.ended && this.glossary != null) this.socket.send(JSON.stringify({ type: "glossary", text: this.glossary }));
  }

  #connect() {
    clearTimeout(this.retry);
    this.retry = null;
    this.ready = false;
    if (!this.lostAt) this.handlers.onState("connecting");
    const address = new URL(this.elsewhere ?? "v1/session", BASE);
    this.elsewhere = null; // when it is lost, this server knows where to go on
    if (this.room) address.searchParams.set("room", this.room);
    address.protocol = ["https:", "wss:"].includes(address.protocol) ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const resuming = this.session && this.key;
      const message = resuming ? { type: "resume", session: this.session, key: this.key } : this.first;
      if (resuming && this.first.token) message.token = this.first.token;
      socket.send(JSON.stringify(message));
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket) return;
      this.#watch(socket);
      if (typeof data === "string") this.#received(JSON.parse(data));
      else this.handlers.onSound(data);
    };
    socket.onclose = () => this.#lost(socket);
    this.#watch(socket);
  }

  #watch(socket) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      socket.close(); // which may take long where nobody answers
      this.#lost(socket);
    }, SILENT_MS);
  }

  #received(event) {
    switch (event.type) {
      case "started":
      case "resumed":
      case "watching":
      case "listening":
        this.session = event.session;
        this.key = event.key ?? null;
        this.waitMs = FIRST_WAIT_MS;
        this.lostAt = null;
        this.ready = true;
        if (this.taken) this.sent = event.received;
        this.taken = false;
        if (event.key) this.#sendFrom(event.received);
        this.#sendGlossary();
        this.#sendAsked();
        this.handlers.onState("open", event);
        break;
      case "glossary":
        this.glossary = null;
        break;
      case "targets":
        if (event.targets.includes(this.asked)) this.asked = null;
        break;
      case "not_added":
        if (event.language === this.asked) this.asked = null;
        break;
      case "status":
        this.received = event.received;
        this.waiting = this.waiting.filter(({ begin, samples }) => (samples ? begin + samples.length > event.received : begin >= event.received));
        break;
      case "error":
        if (event.code === "elsewhere") {
          this.elsewhere = event.address;
          return; // and no problem to show
        }
        if (FINAL_CODES.has(event.code)) this.#refuse(event);
        break;
      case "snapshot":
        this.over ||= event.events.some(({ type }) => type === "end");
        break;
      case "end":
        this.over = true;
        break;
    }
    this.handlers.onEvent(event);
  }

  #sendFrom(received) {
    this.received = received;
    for (const { begin, samples, text } of this.waiting) {
      if (text && begin >= received) this.socket.send(text);
      if (samples && begin + samples.length > received) this.socket.send(samples.subarray(Math.max(0, received - begin)));
    }
    if (this.ended) this.socket.send(JSON.stringify({ type: "end" }));
  }

  #lost(socket) {
    if (socket !== this.socket) return;
    this.socket = null;
    this.ready = false;
    clearTimeout(this.silence);
    if (this.over) {
      if (!this.refused) this.handlers.onState("ended");
      return;
    }
    if (this.elsewhere) return this.#connect();
    this.lostAt ??= Date.now();
    if (this.first.type === "start" && Date.now() - this.lostAt > RESUME_MS) {
      const message = this.session
        ? t("The connection was lost for too long; the session has ended. Press Start to begin another one.")
        : t("The server cannot be reached. Check the network, then press Start again.");
      this.#refuse({ code: "lost", message });
      return;
    }
    this.handlers.onState("lost");
    this.retry = setTimeout(() => this.#connect(), this.waitMs);
    this.waitMs = Math.min(LONGEST_WAIT_MS, 2 * this.waitMs);
  }

  #refuse(error) {
    this.over = this.refused = true;
    this.handlers.onState("refused", error);
  }
}
