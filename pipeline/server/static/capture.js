// Audio from a microphone, a tab or screen, or a file, at the device's own rate.

export class CaptureError extends Error {}

// kind: "microphone" | "screen" | "file"; file: a File; device: a microphone's id. onAudio(samples, peak), onEnd().
export async function capture(kind, { file, device, onAudio, onEnd }) {
  if (!window.isSecureContext || !navigator.mediaDevices) {
    throw new CaptureError("Browsers give audio to pages on https or localhost only. Open this page by one of these.");
  }
  const context = new AudioContext();
  await context.audioWorklet.addModule("/static/worklet.js");
  const tap = new AudioWorkletNode(context, "tap", { numberOfOutputs: 1 });
  const silent = new GainNode(context, { gain: 0 });
  tap.connect(silent).connect(context.destination); // a node that leads nowhere is not run everywhere
  let paused = false;
  tap.port.onmessage = ({ data }) => !paused && onAudio(data.samples, data.peak);
  let stream = null;
  let player = null;
  if (kind === "file") {
    player = new Audio(URL.createObjectURL(file));
    const source = context.createMediaElementSource(player);
    source.connect(tap);
    source.connect(context.destination);
    player.onended = onEnd;
    try {
      await context.resume();
      await player.play();
    } catch {
      await context.close();
      throw new CaptureError("The browser cannot play this file. Choose a recording such as wav, mp3, m4a or webm.");
    }
  } else {
    try {
      stream = await (kind === "screen"
        ? navigator.mediaDevices.getDisplayMedia({ audio: true, video: true })
        : navigator.mediaDevices.getUserMedia({ audio: { deviceId: device || undefined, channelCount: 1 } }));
    } catch (error) {
      await context.close();
      throw new CaptureError(reason(kind, error));
    }
    if (!stream.getAudioTracks().length) {
      stream.getTracks().forEach((track) => track.stop());
      await context.close();
      throw new CaptureError("No sound was shared. Choose a tab, and tick “Also share tab audio”.");
    }
    stream.getVideoTracks().forEach((track) => track.stop());
    stream.getAudioTracks()[0].onended = onEnd;
    new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream(stream.getAudioTracks()) }).connect(tap);
    await context.resume();
  }
  return {
    rate: context.sampleRate,
    pause() {
      paused = true;
      player?.pause();
    },
    resume() {
      paused = false;
      player?.play();
    },
    async stop() {
      player?.pause();
      stream?.getTracks().forEach((track) => track.stop());
      if (context.state !== "closed") await context.close();
    },
  };
}

function reason(kind, error) {
  if (error.name === "NotAllowedError") {
    return kind === "screen"
      ? "Nothing was shared. Press Start again and choose a tab or screen."
      : "The browser may not use the microphone. Allow it by the icon in the address bar, then press Start again.";
  }
  if (error.name === "NotFoundError") return "There is no microphone. Connect one, or choose a tab or a file.";
  return `The audio cannot be opened: ${error.message}`;
}

export async function microphones() {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter((device) => device.kind === "audioinput" && device.label);
}
