// The WebSocket of a speaker or reader. It comes back after a lost connection, and a speaker's audio is sent again from
// where the server has it.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;
const RESUME_MS = 30000; // the server waits so long for a speaker
const FINAL_CODES = new Set(["busy", "stopping", "wrong-token", "wrong-key", "no-session", "replaced", "bad-message",
  "bad-version", "bad-sample-rate", "unknown-source", "unknown-target", "idle", "too-long", "failed"]);

export class Connection {
  // first: the first message. handlers: onEvent(event), onState(state, detail) with the states connecting, open, lost, ended,
  // refused.
  constructor(first, handlers) {
    this.first = first;
    this.handlers = handlers;
    this.session = null;
    this.key = null;
    this.ended = false; // the speaker has finished
    this.over = false; // nothing more comes
    this.waiting = []; // audio that the server may not have: {begin, samples}
    this.sent = 0; // samples handed to the socket or kept for it
    this.waitMs = FIRST_WAIT_MS;
    this.#connect();
  }

  // Audio: Int16Array at the rate of the first message. Kept until the server has it.
  speak(samples) {
    if (this.ended || this.over) return;
    this.waiting.push({ begin: this.sent, samples });
    this.sent += samples.length;
    if (this.ready) this.socket.send(samples);
  }

  end() {
    if (this.ended || this.over) return;
    this.ended = true;
    if (this.ready) this.socket.send(JSON.stringify({ type: "end" }));
  }

  close() {
    this.over = true;
    this.socket?.close();
  }

  #connect() {
    this.ready = false;
    this.handlers.onState("connecting");
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/v1/session`);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const resuming = this.session && this.key;
      const message = resuming ? { type: "resume", session: this.session, key: this.key } : this.first;
      if (resuming && this.first.token) message.token = this.first.token;
      socket.send(JSON.stringify(message));
    };
    socket.onmessage = ({ data }) => this.#received(JSON.parse(data));
    socket.onclose = () => this.#lost(socket);
  }

  #received(event) {
    switch (event.type) {
      case "started":
      case "resumed":
      case "watching":
        this.session = event.session;
        this.key = event.key ?? null;
        this.waitMs = FIRST_WAIT_MS;
        this.lostAt = null;
        this.ready = true;
        if (event.key) this.#sendFrom(event.received);
        this.handlers.onState("open", event);
        break;
      case "status":
        this.waiting = this.waiting.filter(({ begin, samples }) => begin + samples.length > event.received);
        break;
      case "error":
        if (FINAL_CODES.has(event.code)) {
          this.over = true;
          this.handlers.onState("refused", event);
        }
        break;
      case "end":
        this.over = true;
        break;
    }
    this.handlers.onEvent(event);
  }

  #sendFrom(received) {
    for (const { begin, samples } of this.waiting) {
      if (begin + samples.length > received) this.socket.send(samples.subarray(Math.max(0, received - begin)));
    }
    if (this.ended) this.socket.send(JSON.stringify({ type: "end" }));
  }

  #lost(socket) {
    if (socket !== this.socket) return;
    this.ready = false;
    if (this.over) {
      this.handlers.onState("ended");
      return;
    }
    this.lostAt ??= Date.now();
    if (this.key && Date.now() - this.lostAt > RESUME_MS) {
      this.over = true;
      this.handlers.onState("refused", { code: "lost", message: "The connection was lost for too long; the session has ended." });
      return;
    }
    this.handlers.onState("lost");
    setTimeout(() => this.#connect(), this.waitMs);
    this.waitMs = Math.min(LONGEST_WAIT_MS, 2 * this.waitMs);
  }
}
