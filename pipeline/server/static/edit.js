// Corrections of finished lines by the speaker: a click on a line; or Enter in the text, the arrow keys, and Enter on a line.

import { choose } from "./render.js";
import { t } from "./ui.js";

const LONGEST = 1000; // characters, as on the server
const LONGEST_NAME = 60;

export class Editor {
  // board: whose lines are corrected. onCorrect(message): a message for the server; returns whether it could be sent.
  constructor(board, onCorrect) {
    this.board = board;
    this.onCorrect = onCorrect;
    this.on = false; // whether lines can be corrected now
    this.line = null; // what is being corrected: {element, field, speaker, sentence, language, before, back}
    board.list.addEventListener("click", ({ target }) => {
      const line = target.closest("article:not(.earlier) p[data-done]");
      if (this.on && line && !line.querySelector("textarea") && getSelection().isCollapsed) this.#open(line, board.list);
    });
    board.list.addEventListener("keydown", (event) => this.on && this.#key(event));
  }

  // sent: the text that is shown until the server has answered; by default the one of before.
  close(sent) {
    if (!this.line) return;
    const { element, field, sentence, back } = this.line;
    const focused = element.contains(document.activeElement);
    this.line = null;
    field.remove();
    if (sent === undefined) this.board.changed([sentence.number]);
    else element.replaceChildren(Object.assign(document.createElement("span"), { className: "steady", textContent: sent }));
    if (focused) (back === this.board.list ? back.focus() : choose(back));
  }

  // back: what has the focus afterwards.
  #open(element, back) {
    this.close();
    const sentence = this.board.texts.sentences.get(Number(element.closest("article").dataset.number));
    const before = element.querySelector(".steady").textContent;
    const field = document.createElement("textarea");
    Object.assign(field, { value: before, maxLength: LONGEST, rows: 1, dir: "auto" });
    field.setAttribute("aria-label", t("Correct this line"));
    const speaker = document.createElement("input");
    Object.assign(speaker, { value: sentence.speaker ?? "", maxLength: LONGEST_NAME, placeholder: t("Who spoke") });
    speaker.setAttribute("aria-label", t("Who spoke"));
    speaker.setAttribute("list", "names");
    const mask = document.createElement("button");
    Object.assign(mask, { type: "button", textContent: t("Mask the chosen word") });
    mask.addEventListener("click", (event) => {
      event.stopPropagation(); // it is no click on the line
      this.#mask();
    });
    const tools = document.createElement("span");
    tools.className = "tools";
    tools.append(speaker, mask);
    tools.lang = document.documentElement.lang;
    element.replaceChildren(field, tools);
    field.focus();
    this.line = { element, field, speaker, sentence, language: element.className === "source" ? "" : element.lang, before, back };
  }

  #send() {
    const { field, speaker, sentence, language, before } = this.line;
    const [text, name] = [field.value.trim(), speaker.value.trim()];
    const message = { type: "correct", sentence: sentence.number };
    const changed = text && text !== before;
    if (changed && !this.onCorrect({ ...message, language, text })) return;
    if (name === (sentence.speaker ?? "") || this.onCorrect({ ...message, speaker: name })) this.close(changed ? text : undefined);
  }

  // Mask what is selected of the line, else the word at the cursor, here and in what follows.
  #mask() {
    const { field, sentence, language } = this.line;
    const word = field.value.slice(field.selectionStart, field.selectionEnd).trim() || wordAt(field.value, field.selectionStart, field.parentElement.lang);
    if (word && this.onCorrect({ type: "mask", sentence: sentence.number, language, text: word })) this.close();
    else field.focus();
  }

  #key(event) {
    const { key, target } = event;
    const { list } = this.board;
    if (event.isComposing) return;
    if (this.line?.element.contains(target)) {
      if (key === "Enter" && target.tagName !== "BUTTON") this.#send();
      else if (key === "Escape") this.close();
      else return;
    } else {
      const lines = [...list.querySelectorAll("article:not(.earlier) p[data-done]")].filter((line) => line.checkVisibility());
      const at = lines.indexOf(target);
      const step = { ArrowDown: 1, ArrowUp: -1 }[key];
      if (key === "Enter" && at >= 0) this.#open(target, target);
      else if (key === "Enter" && lines.length) choose(lines.at(-1));
      else if (step && at >= 0) choose(lines[Math.max(0, Math.min(lines.length - 1, at + step))]);
      else if (key === "Escape" && at >= 0) list.focus();
      else return;
    }
    event.preventDefault();
  }
}

// The word of a text at a place, or the one that ends there.
function wordAt(text, at, language) {
  const words = [...new Intl.Segmenter(language, { granularity: "word" }).segment(text)].filter(({ isWordLike }) => isWordLike);
  return words.findLast(({ index, segment }) => index <= at && at <= index + segment.length)?.segment ?? "";
}
