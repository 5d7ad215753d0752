// The page of a speaker.

import { BASE } from "./base.js";
import { capture, CaptureError, microphones, obstacle } from "./capture.js";
import { Choice } from "./choice.js";
import { Connection } from "./connection.js";
import { Downloads } from "./download.js";
import { fill, languageName } from "./languages.js";
import { stayAwake } from "./awake.js";
import { menus } from "./menus.js";
import { errorMessage, showProblem } from "./messages.js";
import { Board } from "./render.js";
import { settings } from "./settings.js";
import { Texts } from "./texts.js";

const $ = (id) => document.getElementById(id);
const controls = $("controls").elements;
const STATES = {
  idle: "Ready",
  connecting: "Connecting",
  lost: "Connection lost. Speech is kept and sent as soon as it is back.",
  ended: "Ended",
  refused: "Stopped",
};
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;
const FLOOR_DB = 60; // the lowest level that the meter shows

let state = "idle";
let paused = false;
let finishing = false;
let texts = new Texts();
let connection = null;
let audio = null;
let info = null;
let choice = null;

const board = new Board($("text"), $("spoken"), $("newest"));
const downloads = new Downloads($("download"), () => texts);
const problem = (text) => showProblem($("problem"), text);

settings($("display").querySelector("form"));
menus();
controls.kind.addEventListener("change", choose);
$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
$("pause").addEventListener("click", pause);
$("stop").addEventListener("click", () => stop());
$("copy").addEventListener("click", copy);
addEventListener("beforeunload", (event) => {
  if (audio) event.preventDefault(); // the browser asks whether to leave
});
prepare();

async function prepare() {
  choose();
  const missing = obstacle();
  if (missing) problem(missing);
  try {
    info = await (await fetch(new URL("v1/info", BASE))).json();
  } catch {
    problem("The server cannot be reached. Check that it is running, then reload this page.");
    return;
  }
  choice = new Choice(controls, info.languages);
  $("token").hidden = !info.token;
  $("start").disabled = Boolean(missing);
  document.body.dataset.ready = "yes";
}

async function choose() {
  $("file").hidden = controls.kind.value !== "file";
  const devices = controls.kind.value === "microphone" ? await microphones() : [];
  $("device").hidden = devices.length < 2;
  fill(controls.device, devices.map((device) => [device.deviceId, device.label]));
}

async function start() {
  problem("");
  if (info.token && !controls.token.value) return ask("token", "Type in the token first. Whoever runs this server knows it.");
  if (controls.kind.value === "file" && !controls.file.files.length) return ask("file", "Choose a recording first.");
  $("start").disabled = true;
  const early = []; // audio before the connection exists
  try {
    audio = await capture(controls.kind.value, {
      file: controls.file.files[0],
      device: controls.device.value,
      onAudio(samples, peak) {
        $("level").value = peak > 0 ? Math.max(0, 1 + (20 * Math.log10(peak)) / FLOOR_DB) : 0;
        if (connection) connection.speak(samples);
        else early.push(samples);
      },
      onEnd(reason) {
        problem(reason);
        stop();
      },
    });
  } catch (error) {
    $("start").disabled = false;
    problem(error instanceof CaptureError ? error.message : `The sound cannot be opened: ${error.message}`);
    return;
  }
  texts = new Texts();
  board.clear(texts);
  const first = { type: "start", version: 1, sample_rate: audio.rate, ...choice.wanted() };
  if (info.token) first.token = controls.token.value;
  paused = finishing = false;
  connection = new Connection(first, { onEvent, onState });
  for (const samples of early) connection.speak(samples);
  running(true);
  choose();
}

function ask(name, text) {
  problem(text);
  controls[name].focus();
}

function onEvent(event) {
  switch (event.type) {
    case "status": {
      const readers = event.viewers === 1 ? " · 1 reader" : ` · ${event.viewers} readers`;
      $("lag").textContent = `${event.lag_s.toFixed(1)} s behind${event.viewers ? readers : ""}`;
      break;
    }
    case "translation_lost":
      problem(`The translation into ${languageName(event.language)} has stopped: ${event.reason}`);
      break;
    default:
      board.changed(texts.apply(event));
      if (event.type === "snapshot") event.events.filter(({ type }) => type === "translation_lost").forEach(onEvent);
  }
}

function onState(now, detail) {
  state = now;
  if (now === "open") share(detail);
  if (now === "refused") problem(errorMessage(detail));
  if (now === "ended" && !finishing) problem("The server has ended the session.");
  if (now === "ended" || now === "refused") finished();
  else tell();
  if (now === "refused" && detail.code === "wrong-token") controls.token.focus();
}

function tell() {
  const listening = finishing ? "Finishing" : paused ? "Paused" : "Listening";
  const text = state === "open" ? listening : STATES[state];
  if ($("state").textContent !== text) $("state").textContent = text;
  document.body.dataset.state = state;
}

function share({ session, targets }) {
  const page = new URL(`view/${session}`, BASE);
  $("viewer").href = $("viewer").textContent = page;
  $("overlay").href = new URL(`overlay/${session}`, BASE);
  $("qr").src = `${page}/qr.svg`;
  $("local").hidden = !LOOPBACK.test(location.hostname);
  $("share").hidden = false;
  downloads.offer(targets);
}

async function copy() {
  await navigator.clipboard.writeText($("viewer").href);
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy address"), 2000);
}

function pause() {
  paused = !paused;
  $("pause").textContent = paused ? "Continue" : "Pause";
  if (paused) {
    audio?.pause();
    $("level").value = 0;
  } else {
    audio?.resume();
  }
  tell();
}

async function stop() {
  const stopping = audio;
  audio = null;
  finishing = true;
  $("pause").hidden = $("stop").hidden = true;
  $("level").value = 0;
  tell();
  await stopping?.stop(); // gives the last audio
  connection?.end();
}

async function finished() {
  const stopping = audio;
  audio = connection = null;
  running(false);
  await stopping?.stop();
}

function running(on) {
  const focused = document.activeElement === document.body || $("controls").contains(document.activeElement);
  document.body.dataset.running = on ? "yes" : "no";
  $("setup").hidden = $("start").hidden = on;
  $("start").disabled = false;
  $("pause").hidden = $("stop").hidden = $("gauges").hidden = !on;
  $("pause").textContent = "Pause";
  $("lag").textContent = "";
  if (!on) $("share").hidden = true;
  if (focused) $(on ? "stop" : "start").focus(); // the button that had it is gone
  stayAwake(on);
  tell();
}
