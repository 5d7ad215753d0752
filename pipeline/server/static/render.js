// Draws the texts of a session, and says finished translations to screen readers.

import { sameLanguage } from "./languages.js";
import { textFor } from "./texts.js";
import { t, UI } from "./ui.js";

const NEAR_END_PX = 80;
const SAID = 20; // elements that the live region keeps
const LATEST_MS = 100; // a page in the background draws no frames; its text must be right all the same

export class Board {
  // list: where sentences are drawn; it scrolls. spoken: a live region. newest: a button that scrolls to the end. withTerms: whether
  // the terms of a glossary are shown under each translation.
  constructor(list, spoken, newest, withTerms = false) {
    this.list = list;
    this.withTerms = withTerms;
    this.spoken = spoken;
    this.language = ""; // of the translations shown; "" for all
    this.following = true; // the end of the text stays in sight
    list.addEventListener("scroll", () => {
      this.following = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END_PX;
      newest.hidden = this.following;
    });
    newest.addEventListener("click", () => {
      this.following = true;
      this.#follow();
    });
    this.sizes = new ResizeObserver(() => this.#follow()); // the window's, and those of the letters
    this.sizes.observe(list);
    this.#forget(null);
  }

  // Go on with the texts of another session; those before stay above them.
  begin(texts) {
    this.#forget(texts);
    for (const row of this.list.querySelectorAll("article:not(.earlier)")) {
      row.classList.add("earlier");
      delete row.dataset.number;
    }
    if (!this.list.querySelector("article")) this.list.replaceChildren();
    else if (this.list.lastElementChild.matches("article")) this.list.append(divider());
  }

  #forget(texts) {
    this.texts = texts;
    this.rows = new Map();
    this.said = new Set();
    this.pending = new Set();
    this.spoken.replaceChildren();
  }

  changed(numbers) {
    for (const number of numbers) this.pending.add(number);
    if (this.timer) return;
    this.frame = requestAnimationFrame(() => this.draw());
    this.timer = setTimeout(() => this.draw(), LATEST_MS);
  }

  // Show the translations into a language, without saying those again that are finished.
  show(language) {
    this.language = language;
    for (const sentence of this.texts.sentences.values()) this.skip(sentence);
    this.changed(this.texts.sentences.keys());
  }

  // Do not say what is finished of a sentence.
  skip(sentence) {
    for (const [code, text] of finished(sentence, this.language)) if (text.done) this.said.add(`${sentence.number} ${code} ${text.corrections}`);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.timer = null;
    for (const number of this.pending) this.#row(number);
    this.pending.clear();
    this.#follow();
  }

  #follow() {
    if (this.following && !this.list.querySelector("article :focus")) this.list.scrollTop = this.list.scrollHeight;
  }

  #row(number) {
    const sentence = this.texts.sentences.get(number);
    const lines = sentence ? rows(sentence, this.language, this.withTerms) : [];
    if (!lines.length) return this.#remove(number);
    const row = this.rows.get(number) ?? this.#insert(number);
    if (row.querySelector("textarea")) return; // it is drawn when the correction has ended
    const focused = [...row.querySelectorAll("p")].indexOf(document.activeElement);
    const body = document.createElement("div");
    if (sentence.speaker) body.append(speaker(sentence));
    body.append(...lines);
    body.classList.toggle("several", lines.filter((each) => each.className === "target").length > 1);
    row.replaceChildren(time(sentence), body);
    row.dataset.speaker = sentence.speaker ?? "";
    nameOnce(row);
    nameOnce(row.nextElementSibling);
    if (focused >= 0) choose(row.querySelectorAll("p")[focused] ?? this.list);
    for (const [code, text] of finished(sentence, this.language)) this.#say(number, code, text);
  }

  #remove(number) {
    const row = this.rows.get(number);
    const after = row?.nextElementSibling;
    row?.remove();
    nameOnce(after);
    this.rows.delete(number);
  }

  #insert(number) {
    const row = document.createElement("article");
    row.dataset.number = number;
    const after = [...this.rows.keys()].filter((other) => other > number).sort((one, other) => one - other)[0];
    this.list.insertBefore(row, after === undefined ? null : this.rows.get(after));
    this.rows.set(number, row);
    this.sizes.observe(row);
    return row;
  }

  #say(number, code, text) {
    const key = `${number} ${code} ${text.corrections}`;
    if (!text.done || !text.text || this.said.has(key)) return;
    this.said.add(key);
    const said = document.createElement("p");
    said.lang = code;
    said.dir = "auto";
    const marks = [text.corrections && mark(), text.doubtful && doubt()].filter(Boolean);
    said.append(...marks.flatMap((each) => [each, " "]), text.text);
    this.spoken.append(said);
    while (this.spoken.childElementCount > SAID) this.spoken.firstElementChild.remove();
  }
}

// What readers of a language are told of a sentence: [language, Text].
function finished(sentence, language) {
  if (!language) return [...sentence.targets];
  const text = textFor(sentence, language);
  return text ? [[language, text]] : [];
}

// The lines of a sentence for readers of a language, or of all for "": what was said, and its translations with their terms.
export function rows(sentence, language, withTerms = false) {
  const isSpoken = (code) => sameLanguage(code, sentence.language);
  const all = [...sentence.targets].sort(([one], [other]) => isSpoken(other) - isSpoken(one) || (one < other ? -1 : 1));
  const targets = language ? [[language, textFor(sentence, language)]] : all;
  const lines = targets
    .filter(([, text]) => text?.text)
    .flatMap(([code, text]) => [line("target", code, text), ...(withTerms && text.terms.length ? [termsLine(text)] : [])]);
  const spoken = targets.some(([code, text]) => text?.text && isSpoken(code)); // what was said is shown once
  if (!spoken && sentence.source.text) lines.unshift(line("source", sentence.language, sentence.source));
  return lines;
}

function line(kind, language, text) {
  const row = document.createElement("p");
  row.className = kind;
  row.lang = language;
  row.dir = "auto";
  row.toggleAttribute("data-done", text.done);
  const steady = document.createElement("span");
  steady.className = "steady";
  steady.textContent = text.steady;
  const draft = document.createElement("span");
  draft.className = "draft";
  draft.textContent = text.draft;
  row.append(steady, draft, ...(text.corrections ? [mark()] : []));
  if (text.doubtful) {
    steady.classList.add("doubtful");
    steady.title = t("may be wrong");
    row.append(doubt());
  }
  return row;
}

function mark(words = t("corrected")) {
  const note = document.createElement("small");
  note.className = "mark";
  note.lang = document.documentElement.lang;
  note.textContent = words;
  return note;
}

// For screen readers; others see it by the line under the text.
function doubt() {
  const note = mark(t("may be wrong"));
  note.classList.add("unseen");
  return note;
}

// Give a line the focus.
export function choose(line) {
  if (!line.hasAttribute("tabindex")) line.tabIndex = -1;
  line.focus();
}

function termsLine({ terms, missed }) {
  const list = document.createElement("ul");
  list.className = "terms";
  list.setAttribute("aria-label", t("Terms"));
  const left = [...missed];
  for (const term of terms) {
    const at = left.indexOf(term);
    if (at >= 0) left.splice(at, 1);
    const item = document.createElement("li");
    item.className = at < 0 ? "kept" : "missed";
    item.textContent = at < 0 ? term : t("{term}: not translated as given", { term });
    list.append(item);
  }
  return list;
}

function time(sentence) {
  const stamp = document.createElement("time");
  stamp.textContent = clock(sentence.start);
  return stamp;
}

function speaker(sentence) {
  const name = document.createElement("div");
  name.className = "speaker";
  name.textContent = sentence.speaker;
  return name;
}

// A speaker's name stands where it changes.
function nameOnce(row) {
  row?.classList.toggle("same", row.previousElementSibling?.dataset.speaker === row.dataset.speaker);
}

function divider() {
  const rule = document.createElement("p");
  rule.className = "divider";
  const time = new Date().toLocaleTimeString(UI, { hour: "2-digit", minute: "2-digit" });
  rule.textContent = t("New session, {time}", { time });
  return rule;
}

// Seconds as 1:05 or 1:01:05.
export function clock(value) {
  const seconds = Math.floor(value);
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
