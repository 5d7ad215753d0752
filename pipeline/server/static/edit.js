// Corrections of finished lines by the speaker: a click on a line; or Enter in the text, the arrow keys, and Enter on a line.

import { choose } from "./render.js";
import { t } from "./ui.js";

const LONGEST = 1000; // characters, as on the server

export class Editor {
  // board: whose lines are corrected. onCorrect(sentence, language, text): language is "" for what was said; returns whether it
  // could be sent.
  constructor(board, onCorrect) {
    this.board = board;
    this.onCorrect = onCorrect;
    this.on = false; // whether lines can be corrected now
    this.line = null; // what is being corrected: {field, number, language, before, back}
    board.list.addEventListener("click", ({ target }) => {
      const line = target.closest("article:not(.earlier) p[data-done]");
      if (this.on && line && !line.querySelector("textarea") && getSelection().isCollapsed) this.#open(line, board.list);
    });
    board.list.addEventListener("keydown", (event) => this.on && this.#key(event));
  }

  close() {
    if (!this.line) return;
    const { field, number, back } = this.line;
    this.line = null;
    const focused = document.activeElement === field;
    field.remove();
    this.board.changed([number]);
    if (focused) (back === this.board.list ? back.focus() : choose(back));
  }

  // back: what has the focus afterwards.
  #open(line, back) {
    this.close();
    const [number, before] = [Number(line.closest("article").dataset.number), line.querySelector(".committed").textContent];
    const field = document.createElement("textarea");
    Object.assign(field, { value: before, maxLength: LONGEST, rows: 1, dir: "auto" });
    field.setAttribute("aria-label", t("Correct this line"));
    line.replaceChildren(field);
    field.focus();
    this.line = { field, number, language: line.className === "source" ? "" : line.lang, before, back };
  }

  #send() {
    const { field, number, language, before } = this.line;
    const text = field.value.trim();
    if (!text || text === before || this.onCorrect(number, language, text)) this.close();
  }

  #key(event) {
    const { key, target } = event;
    const { list } = this.board;
    if (event.isComposing) return;
    if (target === this.line?.field) {
      if (key === "Enter") this.#send();
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
