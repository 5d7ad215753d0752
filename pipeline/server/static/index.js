// The page of a speaker.

import { stayAwake } from "./awake.js";
import { BASE } from "./base.js";
import { capture, microphones, obstacle } from "./capture.js";
import { Choice } from "./choice.js";
import { Connection } from "./connection.js";
import { Downloads } from "./download.js";
import { Editor } from "./edit.js";
import { CaptureError } from "./errors.js";
import { counts, GlossaryPanel, kept } from "./glossary.js";
import { fill } from "./languages.js";
import { Level } from "./level.js";
import { menus } from "./menus.js";
import { CUT_SHORT, endedEarly, errorMessage, showProblem, SILENCE, STATES, translationLost, UNRECORDED } from "./messages.js";
import { offered, prepare as prepareLanguages, showPreparing } from "./prepare.js";
import { propose } from "./propose.js";
import { progress } from "./progress.js";
import { Board } from "./render.js";
import { keepSession, keptSession, newRoom, openRoom, roomName } from "./room.js";
import { settings } from "./settings.js";
import { Share } from "./share.js";
import { Texts } from "./texts.js";
import { t } from "./ui.js";
import { Who } from "./who.js";

const $ = (id) => document.getElementById(id);
const controls = $("controls").elements;
const voices = $("voices").querySelector("select");

let state = "idle";
let paused = false;
let finishing = false;
let restored = false; // the page was loaded again in the session
let texts = new Texts();
let connection = null;
let audio = null;
let seconds = 0; // length of a recording that is sent faster than it plays
let info = null;
let choice = null;
let preparing = null; // the chosen languages, while the server prepares them
let room = "";
let readersName = ""; // of the room, for readers

const board = new Board($("text"), $("spoken"), $("newest"), true);
const editor = new Editor(board, (message) => {
  problem("");
  const sent = Boolean(connection?.send(message));
  problem(sent ? "" : t("There is no connection. Try again when it is back."));
  return sent;
});
const downloads = new Downloads($("download"), () => texts);
const level = new Level($("level"), (silent) => {
  if (silent) problem(SILENCE);
  else if ($("problem").textContent === SILENCE) problem("");
});
const share = new Share(async () => {
  room = await newRoom();
  readersName = await roomName(room);
  share.show(readersName, info.address);
});
const glossary = new GlossaryPanel($("glossary"), () => choice?.pair ?? { pair: [], either: false }, (text) => {
  connection?.replaceGlossary(text);
  return connection !== null;
}, (file) => propose(file, choice?.chosen.source ?? "", controls.token.value));
const who = new Who($("speaking"), $("named"), (name) => connection?.mark({ type: "speaker", name }));
const problem = (text) => showProblem($("problem"), text);

settings($("display").querySelector("form"));
menus();
for (const name of ["kind", "pace"]) controls[name].addEventListener("change", choose);
navigator.mediaDevices?.addEventListener("devicechange", listMicrophones);
$("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
$("pause").addEventListener("click", pause);
$("stop").addEventListener("click", () => stop());
addEventListener("beforeunload", (event) => {
  if (audio) event.preventDefault(); // the browser asks whether to leave
});
prepare();

async function prepare() {
  try {
    info = await (await fetch(new URL("v1/info", BASE))).json();
  } catch {
    problem(t("The server cannot be reached. Check that it is running, then reload this page."));
    return;
  }
  choice = new Choice(controls, info.languages, $("into"), info.more ? await offered() : []);
  for (const name of info.more ? ["source", "target"] : []) controls[name].addEventListener("change", prepareChosen);
  $("token").hidden = !info.token;
  $("recorded").hidden = !info.recorded;
  $("voices").hidden = !info.speakers;
  room = await openRoom();
  readersName = await roomName(room);
  if (readersName) share.show(readersName, info.address);
  choose();
  await goOn(keptSession());
  document.body.dataset.ready = "yes";
}

function choose() {
  $("file").hidden = $("pace").hidden = controls.kind.value !== "file";
  const missing = obstacle(controls.kind.value, controls.pace.value === "fast");
  problem(missing);
  $("start").disabled = Boolean(missing);
  listMicrophones();
}

// Have the server fetch the models of the chosen languages, if it does not have them yet.
async function prepareChosen() {
  problem("");
  showPreparing("");
  if (info.token && !controls.token.value) return; // Start does it, with the token
  const wanted = (preparing = choice.wanted());
  const isChosen = () => preparing === wanted;
  try {
    await prepareLanguages(wanted, controls.token.value, (doing, part) => isChosen() && showPreparing(doing, part));
  } catch (error) {
    if (isChosen()) problem(errorMessage(error, true));
  }
  if (isChosen()) showPreparing("");
}

async function listMicrophones() {
  const devices = controls.kind.value === "microphone" ? await microphones() : [];
  $("device").hidden = devices.length < 2;
  fill(controls.device, devices.map((device) => [device.deviceId, device.label]));
}

async function start() {
  problem("");
  if (info.token && !controls.token.value) return ask("token", t("Type in the token first. Whoever runs this server knows it."));
  if (controls.kind.value === "file" && !controls.file.files.length) return ask("file", t("Choose a recording first."));
  if (!glossary.isEmpty && glossary.obstacle) return glossary.blocked(glossary.obstacle);
  $("start").disabled = true;
  const early = []; // audio before the connection exists
  const opened = await open((samples) => (connection ? connection.speak(samples) : early.push(samples)));
  $("start").disabled = false;
  if (!opened) return;
  const first = { type: "start", version: 2, sample_rate: audio.rate, room_key: room, ...choice.wanted() };
  if (info.token) first.token = controls.token.value;
  if (!glossary.isEmpty) first.glossary = glossary.text;
  if (info.speakers && voices.value === "on") first.speakers = true;
  paused = finishing = restored = false;
  begin(first);
  for (const samples of early) connection.speak(samples);
}

// Open the audio that was chosen; false if that failed. rate: in Hz, if not the device's own.
async function open(onAudio, rate) {
  try {
    audio = await capture(controls.kind.value, {
      file: controls.file.files[0],
      fast: controls.pace.value === "fast",
      device: controls.device.value,
      rate,
      ahead: () => connection.ahead,
      onAudio(samples, peak) {
        level.heard(samples, peak);
        onAudio(samples);
      },
      onEnd(reason) {
        if (reason) problem(reason);
        stop();
      },
    });
  } catch (error) {
    problem(error instanceof CaptureError ? error.message : t("The sound cannot be opened: {reason}", { reason: error.message }));
    return false;
  }
  seconds = audio.seconds ?? 0;
  level.begin(controls.kind.value === "microphone" ? audio.rate : Infinity);
  return true;
}

// Begin a session, or go on with one that was kept.
function begin(first, kept) {
  texts = new Texts();
  board.begin(texts);
  connection = new Connection(first, { onEvent, onState }, kept, readersName);
  running(true);
  listMicrophones();
}

// The page was loaded again in a session: its text comes back, and speech when the speaker says so.
async function goOn(kept) {
  if (!kept) return;
  await listMicrophones();
  for (const name of ["kind", "device", "pace"]) controls[name].value = kept[name];
  choice.restore(kept.first);
  paused = restored = true;
  finishing = false;
  begin(kept.first, kept);
}

function ask(name, text) {
  problem(text);
  controls[name].focus();
}

function onEvent(event) {
  switch (event.type) {
    case "status":
      audio?.more?.();
      if (!$("recorded").hidden && !event.recorded) problem(UNRECORDED);
      $("recorded").hidden = !event.recorded;
      $("lag").textContent = progress(event, texts, seconds);
      break;
    case "preparing":
      showPreparing(event.doing, event.part);
      break;
    case "glossary":
      if (event.code) glossary.refused(event.message, false);
      else glossary.taken(event);
      break;
    case "speaker":
      who.show(event.name ?? who.name);
    // falls through
    case "not_corrected":
      problem(event.code ? errorMessage(event, true) : "");
      if (event.sentence !== undefined) board.changed([event.sentence]);
      break;
    case "targets":
      downloads.offer(event.targets);
      break;
    case "push": // what is not sent elsewhere
      problem(event.message ? errorMessage(event, true) : "");
      break;
    case "translation_lost":
      problem(translationLost(event));
      break;
    default:
      board.changed(texts.apply(event));
      if (event.type !== "snapshot") break;
      event.events.filter(({ type }) => type === "translation_lost").forEach(onEvent);
      if (restored) texts.sentences.forEach((sentence) => board.skip(sentence)); // they were said before
      restored = false;
  }
}

function onState(now, detail) {
  state = now;
  preparing = null;
  if (now !== "connecting") showPreparing("");
  if (now === "open") opened(detail);
  if (now === "refused") problem(endedEarly(errorMessage(detail, true), texts));
  if (now === "ended") glossary.counted(texts);
  if (now === "ended" && !finishing) problem(endedEarly(t("The server has ended the session."), texts));
  if (now === "ended" || now === "refused") finished();
  else tell();
  if (now === "refused" && detail.code === "wrong-token") controls.token.focus();
  if (now === "refused" && detail.code === "bad-glossary") glossary.refused(detail.message, true);
}

function opened({ session, key, room, targets, recorded, speaker, glossary: taken }) {
  who.show(speaker ?? "", true);
  if (taken) glossary.taken(taken);
  choice.use();
  share.show(room ?? session, info.address);
  downloads.offer(targets);
  $("recorded").hidden = !recorded;
  $("pause").disabled = false;
  const [kind, device, pace] = [controls.kind.value, controls.device.value, controls.pace.value];
  keepSession({ first: connection.first, session, key, kind, device, pace });
  audio?.more?.();
  if (!restored) return;
  if (kind === "file") {
    problem(CUT_SHORT);
    stop();
  } else {
    connection.pause(true);
    $("pause").focus();
  }
}

function tell() {
  const listening = finishing ? t("Finishing") : paused ? t("Paused") : seconds ? t("Translating") : t("Listening");
  const { seen, missed } = counts(texts);
  const ended = seen ? t("Ended. {terms}", { terms: kept(seen, missed) }) : STATES.ended;
  const text = state === "open" ? listening : state === "ended" ? ended : STATES[state];
  if ($("state").textContent !== text) $("state").textContent = text;
  document.body.dataset.state = state;
  document.body.dataset.live = paused || finishing ? "no" : "yes";
}

async function pause() {
  if (!audio) return listenAgain();
  paused = !paused;
  $("pause").textContent = paused ? t("Continue") : t("Pause");
  tell();
  if (paused) {
    level.show(0);
    await audio.pause(); // gives the last audio
    if (paused) connection?.pause(controls.kind.value !== "file");
  } else {
    connection?.mark({ type: "pause", on: false });
    audio.resume();
  }
}

// Open the microphone in a session that another page of this tab began.
async function listenAgain() {
  problem("");
  $("pause").disabled = true;
  const { sample_rate } = connection.first;
  let heard = false;
  const resumed = () => { // before the first audio: of what is said in a pause the server hears nothing
    if (heard || !connection) return;
    heard = true;
    paused = false;
    connection.mark({ type: "pause", on: false });
    $("pause").textContent = t("Pause");
    tell();
  };
  const listen = (samples) => {
    resumed();
    connection?.speak(samples);
  };
  const opened = await open(listen, sample_rate);
  $("pause").disabled = false;
  if (!opened) return;
  if (!connection) return finished(); // it has ended meanwhile
  resumed();
}

async function stop() {
  const stopping = audio;
  audio = null;
  finishing = true;
  $("pause").hidden = $("stop").hidden = true;
  level.show(0);
  tell();
  await stopping?.stop(); // gives the last audio
  connection?.end();
}

async function finished() {
  const stopping = audio;
  audio = connection = null;
  paused = restored = false;
  seconds = 0;
  keepSession(null);
  running(false);
  await stopping?.stop();
}

function running(on) {
  const focused = document.activeElement === document.body || $("controls").contains(document.activeElement);
  document.body.dataset.running = on ? "yes" : "no";
  editor.on = on;
  if (!on) editor.close();
  $("setup").hidden = $("start").hidden = on;
  $("speaking").hidden = !on;
  voices.disabled = on; // the next session's
  $("pause").hidden = $("stop").hidden = $("gauges").hidden = !on;
  $("meter").hidden = seconds > 0;
  $("pause").textContent = paused ? t("Continue") : t("Pause");
  $("pause").disabled = state !== "open" && paused;
  $("lag").textContent = "";
  if (!on && info.recorded) $("recorded").hidden = false;
  share.running(on);
  if (focused) $(on ? "stop" : "start").focus(); // the button that had it is gone
  stayAwake(on);
  tell();
}
