// Audio from a microphone, a tab or screen, or a recording, at the device's own rate.

import { CaptureError } from "./errors.js";
import { blocked, browserOf } from "./permission.js";
import { decode, UNREADABLE } from "./recording.js";
import { read } from "./track.js";
import { t } from "./ui.js";

const FLUSH_MS = 1000;
// What helps with a microphone in a room harms the sound of a tab.
const UNCHANGED = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const NO_SHARING = t("This browser cannot share the sound of a tab. Use Chrome, Edge or Chromium on a computer, or choose a recording.");
const UNSHARED = t("Nothing was shared. Press Start again and choose a tab or screen.");
const DISCONNECTED = t("The microphone was disconnected. Connect it and press Start again.");

// Why this browser can give no such audio to this page; "" if it can. fast: a recording is sent faster than it plays.
export function obstacle(kind, fast) {
  if (kind === "file" && fast) return "";
  if (!window.isSecureContext) {
    return t("Browsers give audio to pages on https or localhost only. Open this page on the computer that serves it, or have the server started with --tls auto. A recording can be translated here all the same.");
  }
  if (!navigator.mediaDevices || !window.AudioWorkletNode) return t("This browser is too old to give audio to a page. Use a newer one.");
  return kind === "screen" && !navigator.mediaDevices.getDisplayMedia ? NO_SHARING : "";
}

// kind: "microphone" | "screen" | "file"; file: a File, with fast as in obstacle(); device: a microphone's id; rate: in Hz, if
// not the device's own; ahead(): samples that the server does not have yet. onAudio(samples, peak); onEnd(reason), with a
// reason to tell or "".
export async function capture(kind, { file, fast, device, rate, ahead, onAudio, onEnd }) {
  if (kind === "file" && fast) return decode(file, { ahead, onAudio, onEnd });
  let context, track;
  const source = { stop: () => track?.stop() };
  try {
    if (kind !== "file" && window.MediaStreamTrackProcessor) {
      track = await trackOf(kind, device, onEnd);
      const reader = await read(track, rate, onAudio, onEnd);
      if (track.readyState === "ended") throw new CaptureError(kind === "screen" ? UNSHARED : DISCONNECTED);
      if (reader) return reader;
    }
    context = new AudioContext({ sampleRate: rate });
    await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    const tap = new AudioWorkletNode(context, "tap", { numberOfOutputs: 1 });
    const silent = new GainNode(context, { gain: 0 });
    tap.connect(silent).connect(context.destination); // a node that leads nowhere is not run everywhere
    await context.resume(); // first: until it runs, what a microphone hears is lost
    if (kind === "file") await play(file, context, tap, source, onEnd);
    else {
      track ??= await trackOf(kind, device, onEnd);
      new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([track]) }).connect(tap);
    }
    return new Capture(context, tap, source, onAudio);
  } catch (error) {
    source.stop();
    await context?.close();
    throw error;
  }
}

class Capture {
  constructor(context, tap, source, onAudio) {
    this.rate = context.sampleRate;
    this.context = context;
    this.tap = tap;
    this.source = source;
    tap.port.onmessage = ({ data }) => {
      if (data.samples.length) onAudio(data.samples, data.peak);
      if (data.last) this.flushed?.();
    };
  }

  // Resolves when all audio so far has been given.
  async pause() {
    this.source.pause?.();
    await new Promise((resolve) => {
      this.flushed = resolve;
      setTimeout(resolve, FLUSH_MS); // a suspended context does not answer
      this.tap.port.postMessage("pause");
    });
  }

  resume() {
    this.tap.port.postMessage("resume");
    this.source.resume?.();
  }

  async stop() {
    if (this.context.state === "closed") return;
    await this.pause();
    this.source.stop();
    await this.context.close();
  }
}

async function play(file, context, tap, source, onEnd) {
  const player = new Audio(URL.createObjectURL(file));
  const node = context.createMediaElementSource(player);
  node.connect(tap);
  node.connect(context.destination);
  player.onended = () => onEnd("");
  source.pause = () => player.pause();
  source.resume = () => player.play();
  source.stop = () => {
    player.pause();
    URL.revokeObjectURL(player.src);
  };
  try {
    await player.play();
  } catch {
    throw new CaptureError(UNREADABLE);
  }
}

async function trackOf(kind, device, onEnd) {
  let stream;
  try {
    stream = await (kind === "screen"
      ? navigator.mediaDevices.getDisplayMedia({ audio: UNCHANGED, video: true, systemAudio: "include" })
      : navigator.mediaDevices.getUserMedia({ audio: { deviceId: device || undefined, channelCount: 1 } }));
  } catch (error) {
    throw new CaptureError(reason(kind, error));
  }
  stream.getVideoTracks().forEach((picture) => picture.stop());
  const [track] = stream.getAudioTracks();
  if (!track) throw new CaptureError(unheard());
  track.onended = () => onEnd(kind === "screen" ? "" : DISCONNECTED);
  return track;
}

function unheard() {
  if (browserOf(navigator.userAgent) !== "chromium") return NO_SHARING;
  return t("No sound was shared. Press Start again, choose a tab, and tick “Also share tab audio”.");
}

function reason(kind, error) {
  switch (error.name) {
    case "NotAllowedError":
      return kind === "screen" ? UNSHARED : blocked(error, navigator.userAgent);
    case "NotFoundError":
      return t("There is no microphone. Connect one and press Start again, or choose a tab or a recording.");
    case "NotReadableError":
      return t("The microphone cannot be opened. Another program may be using it; close that and press Start again.");
    default:
      return t("The sound cannot be opened: {reason}", { reason: error.message });
  }
}

// Devices have names only once the microphone has been allowed.
export async function microphones() {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter((device) => device.kind === "audioinput" && device.label);
}
