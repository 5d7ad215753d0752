// The page of a speaker.

import { capture, CaptureError, microphones } from "/static/capture.js";
import { Connection } from "/static/connection.js";
import { downloads, fill, languageName } from "/static/download.js";
import { Board } from "/static/render.js";
import { settings } from "/static/settings.js";
import { Texts } from "/static/texts.js";

const $ = (id) => document.getElementById(id);
const controls = $("controls").elements;
const STATES = { connecting: "Connecting", open: "Listening", lost: "Connection lost, trying again", ended: "Ended", refused: "Stopped" };

let texts, board, connection, audio;
let paused = false;

settings($("display").querySelector("form"));
const info = await (await fetch("/v1/info")).json();
fill(controls.target, [
  ...(info.targets.length > 1 ? [["", "all languages"]] : []),
  ...info.targets.map((code) => [code, languageName(code)]),
]);
$("token").hidden = !info.token;
controls.kind.addEventListener("change", choose);
choose();
$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
$("pause").addEventListener("click", pause);
$("stop").addEventListener("click", stop);
addEventListener("beforeunload", (event) => {
  if (audio) event.preventDefault(); // the browser asks whether to leave
});
document.body.dataset.ready = "yes";

async function choose() {
  $("file").hidden = controls.kind.value !== "file";
  const devices = controls.kind.value === "microphone" ? await microphones() : [];
  $("device").hidden = devices.length < 2; // labels are known once the microphone has been allowed
  fill(controls.device, devices.map((device) => [device.deviceId, device.label]));
}

async function start() {
  problem("");
  if (controls.kind.value === "file" && !controls.file.files.length) {
    problem("Choose a recording first.");
    return;
  }
  $("start").disabled = true;
  const early = []; // audio before the connection exists
  try {
    audio = await capture(controls.kind.value, {
      file: controls.file.files[0],
      device: controls.device.value,
      onAudio(samples, peak) {
        $("level").value = peak;
        if (connection) connection.speak(samples);
        else early.push(samples);
      },
      onEnd: stop,
    });
  } catch (error) {
    $("start").disabled = false;
    problem(error instanceof CaptureError ? error.message : `The audio cannot be opened: ${error.message}`);
    return;
  }
  texts = new Texts();
  $("text").replaceChildren();
  board = new Board($("text"), $("spoken"), texts);
  const first = { type: "start", version: 1, sample_rate: audio.rate };
  if (controls.target.value) first.targets = [controls.target.value];
  if (info.token) first.token = controls.token.value;
  connection = new Connection(first, { onEvent, onState });
  for (const samples of early) connection.speak(samples);
  running(true);
  choose();
}

function onEvent(event) {
  if (event.type === "status") {
    const readers = event.viewers === 1 ? "1 reader" : `${event.viewers} readers`;
    $("lag").textContent = `${event.lag_s.toFixed(1)} s behind, ${readers}`;
  } else if (event.type === "translation_lost") {
    problem(`The translation into ${languageName(event.language)} has stopped: ${event.reason}`);
  } else {
    board.changed(texts.apply(event));
  }
}

function onState(state, detail) {
  $("state").textContent = paused && state === "open" ? "Paused" : STATES[state];
  document.body.dataset.state = state;
  if (state === "open") share(detail);
  if (state === "refused") problem(detail.message);
  if (state === "ended" || state === "refused") finished();
}

function share(session) {
  $("viewer").href = `/view/${session.session}`;
  $("overlay").href = `/overlay/${session.session}`;
  $("qr").src = `/view/${session.session}/qr.svg`;
  $("share").hidden = $("download").hidden = false;
  fill($("download").querySelector("select"), [
    ...session.targets.map((code) => [code, languageName(code)]),
    ["", "what was said"],
  ]);
  if (!$("download").dataset.on) {
    $("download").dataset.on = "yes";
    downloads($("download"), { shown: () => texts.shown() });
  }
}

function pause() {
  paused = !paused;
  $("pause").textContent = paused ? "Continue" : "Pause";
  $("pause").setAttribute("aria-pressed", String(paused));
  $("state").textContent = paused ? "Paused" : "Listening";
  if (paused) audio?.pause();
  else audio?.resume();
}

async function stop() {
  const stopping = audio;
  audio = null;
  connection?.end();
  $("state").textContent = "Finishing";
  $("pause").hidden = $("stop").hidden = true;
  await stopping?.stop();
}

async function finished() {
  const stopping = audio;
  audio = null;
  connection = null;
  paused = false;
  $("pause").textContent = "Pause";
  running(false);
  await stopping?.stop();
}

function running(on) {
  $("start").hidden = on;
  $("start").disabled = false;
  $("pause").hidden = $("stop").hidden = !on;
  for (const name of ["kind", "device", "file", "target", "token"]) controls[name].disabled = on;
  if (!on) {
    $("level").value = 0;
    $("lag").textContent = "";
    $("share").hidden = true;
  }
}

function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}
