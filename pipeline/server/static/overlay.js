// Subtitles on a transparent page, for a browser source in OBS.
// Query: language, lines (the most that are shown, default 2), size (of the letters, in vh, default 5), position (top or
// bottom), rollup=1, source=1, whole=1 (sentences when they are complete).

import { follow } from "./follow.js";
import { rows } from "./render.js";
import { Texts, textFor } from "./texts.js";

const query = new URLSearchParams(location.search);
const session = decodeURIComponent(location.pathname.split("/").pop());
const number = (name, low, high, otherwise) => Math.min(high, Math.max(low, Number(query.get(name)) || otherwise));
const count = number("lines", 1, 10, 2);
const withSource = query.get("source") === "1";
const whole = query.get("whole") === "1";
const HIDE_MS = 8000;

document.documentElement.style.setProperty("--size", `${number("size", 1, 30, 5)}vh`);
document.documentElement.style.setProperty("--lines", count);
document.documentElement.toggleAttribute("data-rollup", query.get("rollup") === "1");
document.documentElement.dataset.position = query.get("position") === "top" ? "top" : "bottom";

let texts = new Texts();
const lines = document.getElementById("lines");
const wanted = query.get("language");
let language = "";
let timer;
let last = ""; // what was drawn last, and may be hidden again
let hidden = new Set(); // the lines that are not shown again

follow(session, {
  onBegin({ targets }) {
    texts = new Texts();
    last = "";
    hidden = new Set();
    language = targets.includes(wanted) ? wanted : targets[0];
  },
  onEvent(event) {
    if (texts.apply(event).length) draw();
  },
  onState() {},
});

function draw() {
  const drawn = linesOf(ready().slice(-count));
  const now = [...drawn.keys()].join();
  if (now === last) return;
  last = now;
  clearTimeout(timer);
  const isNew = [...drawn.keys()].some((line) => !hidden.has(line));
  lines.replaceChildren(...(isNew ? drawn.values() : []));
  timer = setTimeout(hide, HIDE_MS);
}

// The lines before them, too: they come back into sight when a draft is withdrawn.
function hide() {
  hidden = new Set(linesOf(ready().slice(-2 * count)).keys());
  lines.replaceChildren();
}

// Each line of the sentences, by its sentence and what it shows.
function linesOf(sentences) {
  const isShown = (row) => (withSource || row.className === "target") && (!whole || row.hasAttribute("data-done"));
  const named = (row, { number }) => [`${number} ${row.outerHTML}`, row];
  return new Map(sentences.flatMap((each) => rows(each, language).filter(isShown).map((row) => named(row, each))));
}

function ready() {
  return texts.shown().filter((each) => isReady(textFor(each, language)) || (withSource && isReady(each.source)));
}

function isReady(text) {
  return Boolean(text?.text) && (text.done || !whole);
}
