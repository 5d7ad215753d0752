// The page of a reader.

import { Downloads } from "./download.js";
import { fill, targetChoices } from "./languages.js";
import { follow } from "./follow.js";
import { Listening } from "./listen.js";
import { stayAwake } from "./awake.js";
import { menus } from "./menus.js";
import { errorMessage, showProblem, translationLost } from "./messages.js";
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
  refused: t("Not connected"),
};
const address = new URL(location);
const session = decodeURIComponent(address.pathname.split("/").pop());
const language = $("language");
let texts = new Texts();
const board = new Board($("text"), $("spoken"), $("newest"));
const downloads = new Downloads($("download"), () => texts);
const listening = new Listening($("listen"), (error) => showProblem($("problem"), errorMessage(error, false)));
let begun = false;
let heard = { session: null, voices: [] };

settings($("display").querySelector("form"));
menus();
language.addEventListener("change", () => {
  address.searchParams.set("language", language.value);
  history.replaceState(null, "", address); // a reload keeps it
  show();
});
follow(session, { onBegin, onEvent, onState });

// Another session begins, or the first.
function onBegin({ session, targets, recorded, voices = [] }) {
  texts = new Texts();
  begun = false;
  board.begin(texts);
  $("recorded").hidden = !recorded;
  showProblem($("problem"), "");
  heard = { session, voices };
  offer(targets);
}

function onEvent(event) {
  if (event.type === "pause") return pausing(event.on);
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
  if (document.body.dataset.state === "open") say(on ? t("The speaker has paused") : STATES.open);
}

function say(text) {
  if ($("state").textContent !== text) $("state").textContent = text; // a screen reader says it again otherwise
}

function onState(state, detail) {
  say(state === "ended" && detail ? t("The speaker has finished. The next talk appears here.") : STATES[state]);
  document.body.dataset.state = state;
  if (state === "refused") showProblem($("problem"), errorMessage(detail, false));
  stayAwake(state === "open" || state === "lost");
}

function offer(targets) {
  const before = language.options.length ? language.value : null;
  fill(language, targetChoices(targets));
  if (before === null || language.value !== before) language.value = chosen(targets);
  $("choice").hidden = targets.length < 2;
  downloads.offer(targets);
  show();
}

function show() {
  board.show(language.value);
  listening.offer(heard.session, language.value, heard.voices);
}

// What the address asks for, else the first of the browser's languages that there is, else all.
function chosen(targets) {
  const asked = address.searchParams.get("language");
  if (targets.includes(asked) || (asked === "" && targets.length > 1)) return asked;
  for (const wanted of navigator.languages) {
    const found = targets.find((code) => wanted === code) ?? targets.find((code) => wanted.split("-")[0] === code.split("-")[0]);
    if (found) return found;
  }
  return targets.length > 1 ? "" : targets[0];
}
