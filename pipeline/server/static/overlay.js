// Subtitles on a transparent page, for a browser source in OBS.
// Query: language, lines (of sentences, default 2), size (of the letters, in vh, default 5), position (top or bottom), source=1.

import { Connection } from "/static/connection.js";
import { line } from "/static/render.js";
import { Texts } from "/static/texts.js";

const query = new URLSearchParams(location.search);
const session = decodeURIComponent(location.pathname.split("/")[2]);
const number = (name, low, high, otherwise) => Math.min(high, Math.max(low, Number(query.get(name)) || otherwise));
const count = number("lines", 1, 10, 2);
const HIDE_MS = 8000;

document.documentElement.style.setProperty("--size", `${number("size", 1, 30, 5)}vh`);
document.documentElement.dataset.position = query.get("position") === "top" ? "top" : "bottom";

const texts = new Texts();
const lines = document.getElementById("lines");
let language = query.get("language") ?? "";
let timer;

new Connection({ type: "watch", version: 1, session }, {
  onEvent(event) {
    if (event.type === "watching" && !language) [language] = event.targets;
    if (texts.apply(event).length) draw();
  },
  onState() {},
});

function draw() {
  const rows = texts.shown().filter((each) => each.targets.get(language)?.text || query.get("source") === "1").slice(-count);
  lines.replaceChildren(
    ...rows.flatMap((each) => [
      ...(query.get("source") === "1" ? [line("source", each.language, each.source)] : []),
      ...(each.targets.has(language) ? [line("target", language, each.targets.get(language))] : []),
    ]),
  );
  clearTimeout(timer);
  timer = setTimeout(() => lines.replaceChildren(), HIDE_MS);
}
