// The page of a reader.

import { Downloads } from "./download.js";
import { fill, languageName, sameLanguage, targetChoices } from "./languages.js";
import { follow } from "./follow.js";
import { Listening } from "./listen.js";
import { stayAwake } from "./awake.js";
import { menus } from "./menus.js";
import { errorMessage, showProblem, translationLost } from "./messages.js";
import { Picker } from "./picker.js";
import { addable, showPreparing } from "./prepare.js";
import { Board } from "./render.js";
import { settings } from "./settings.js";
import { Texts } from "./texts.js";
import { t } from "./ui.js";

const $ = (id) => document.getElementById(id);
const STATES = {
  connecting: t("Connecting"),
  waiting: t("Waiting for the speaker"),
  open: t("Live"),
  lost: t("Connection lost. The text goes on as soon as it is back."),
  ended: t("The speaker has finished"),
  cut: t("The talk was cut off, and its last words may be missing. The next talk appears here."),
  refused: t("Not connected"),
};
const address = new URL(location);
const session = decodeURIComponent(address.pathname.split("/").pop());
const language = $("language");
let texts = new Texts();
const board = new Board($("text"), $("spoken"), $("newest"));
const downloads = new Downloads($("download"), () => texts);
const listening = new Listening($("listen"), (error) => showProblem($("problem"), errorMessage(error, false)));
const picker = new Picker(language);
const known = addable().catch(() => []); // without them, the session's own can be chosen
let begun = false;
let heard = { session: null, voices: [] };
let targets = []; // of the session
let more = []; // into which it may be translated, too
let shown = ""; // the language chosen last that the session has

settings($("display").querySelector("form"));
menus();
language.addEventListener("change", () => choose(language.value));
const addTarget = follow(session, { onBegin, onEvent, onState });

// Another session begins, or the first.
async function onBegin({ session, source, targets: first, recorded, voices = [] }) {
  texts = new Texts();
  begun = false;
  board.begin(texts);
  $("recorded").hidden = !recorded;
  showProblem($("problem"), "");
  heard = { session, voices };
  targets = first;
  more = [];
  offer();
  const found = (await known).filter((one) => one.source === source).flatMap((one) => one.targets);
  more = [...new Set(found)].sort((one, other) => languageName(one).localeCompare(languageName(other)));
  offer();
  if (more.includes(asked()) && !targets.includes(asked())) choose(asked());
}

// Show a language; have the session translated into it first if that is needed.
function choose(code) {
  language.value = code;
  picker.show();
  address.searchParams.set("language", code);
  history.replaceState(null, "", address); // a reload keeps it
  showPreparing("");
  showProblem($("problem"), "");
  show();
  if (!code || targets.includes(code)) shown = code;
  else addTarget(code);
}

function onEvent(event) {
  if (event.type === "status") $("recorded").hidden = !event.recorded;
  if (event.type === "pause") return pausing(event.on);
  if (event.type === "preparing") return showPreparing(event.doing, event.part);
  if (event.type === "targets") {
    targets = event.targets;
    heard.voices = event.voices;
    showPreparing("");
    return offer();
  }
  if (event.type === "not_added") {
    if (language.value === event.language) choose(shown);
    return showProblem($("problem"), errorMessage(event, false));
  }
  if (event.type === "translation_lost") {
    if (["", event.language].includes(language.value)) {
      showProblem($("problem"), translationLost(event));
    }
    return;
  }
  board.changed(texts.apply(event));
  if (event.type !== "snapshot") return;
  pausing(false);
  event.events.filter(({ type }) => ["translation_lost", "pause"].includes(type)).forEach(onEvent);
  if (!begun) texts.sentences.forEach((sentence) => board.skip(sentence)); // a screen reader begins with what is new
  begun = true;
}

// The speaker pauses, or goes on. A new connection begins with a snapshot, which says so again.
function pausing(on) {
  document.body.dataset.live = on ? "no" : "yes";
  if (document.body.dataset.state === "open") say(on ? t("The speaker has paused") : STATES.open);
}

function say(text) {
  if ($("state").textContent !== text) $("state").textContent = text; // a screen reader says it again otherwise
}

function onState(state, detail) {
  say(state === "ended" && detail ? t("The speaker has finished. The next talk appears here.") : STATES[state]);
  document.body.dataset.state = state;
  if (state === "refused") showProblem($("problem"), errorMessage(detail, false));
  if (["ended", "cut", "refused"].includes(state)) {
    more = []; // nothing can be added any more
    showPreparing("");
    if (targets.length) offer();
  }
  stayAwake(state === "open" || state === "lost");
}

function offer() {
  const before = language.options.length ? language.value : null;
  const others = more.filter((code) => !targets.some((one) => sameLanguage(one, code)));
  fill(language, [...targetChoices(targets), ...targetChoices(others).slice(others.length > 1)]);
  if (before === null || language.value !== before) language.value = chosen();
  if (!others.includes(language.value)) shown = language.value;
  $("choice").hidden = language.options.length < 2;
  picker.show();
  downloads.offer(targets);
  show();
}

function show() {
  board.show(language.value);
  listening.offer(heard.session, language.value, heard.voices);
}

function asked() {
  return address.searchParams.get("language");
}

// What the address asks for, else the first of the browser's languages that there is, else all.
function chosen() {
  if (targets.includes(asked()) || (asked() === "" && targets.length > 1)) return asked();
  for (const wanted of navigator.languages) {
    const found = targets.find((code) => wanted === code) ?? targets.find((code) => wanted.split("-")[0] === code.split("-")[0]);
    if (found) return found;
  }
  return targets.length > 1 ? "" : targets[0];
}
