// The panel with the speaker's names and terms, and what became of them.

import { languageName } from "./languages.js";
import { keepTerms, keptTerms } from "./room.js";

const FIELDS = ["Term", "Translation", "Variants"];
const KEPT = "="; // in a glossary file: the term keeps its spelling
const MISTAKE = /line (\d+): (.*?)(?=; line \d+: |; and \d+ more$|$)/g;
const HEADER_LINES = 1;

export class GlossaryPanel {
  // element: details with a form. languages(): [spoken, translated into] if either may be spoken, else null. onUse(text): other
  // terms are wanted; returns whether there is a session to use them.
  constructor(element, languages, onUse) {
    this.element = element;
    this.languages = languages;
    this.list = element.querySelector("ol");
    this.state = element.querySelector("[role=status]");
    element.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#mark([]);
      this.#tell(onUse(this.text) ? "" : "These terms are used from the next start on.");
    });
    element.querySelector("button.add").addEventListener("click", () => this.#add().querySelector("input").focus());
    this.list.addEventListener("input", () => this.#keep());
    this.list.addEventListener("click", ({ target }) => target.matches("button") && this.#remove(target.closest("li")));
    this.list.addEventListener("paste", (event) => this.#paste(event));
    for (const cells of keptTerms()) this.#add(cells);
    if (!this.#rows.length) this.#add();
  }

  get #rows() {
    return [...this.list.children];
  }

  get isEmpty() {
    return this.#rows.every((row) => cellsOf(row).every((cell) => !cell));
  }

  // As a glossary file (TSV) with one line a row after the header.
  get text() {
    const codes = this.languages();
    const header = codes ? `source:${codes[0]}\ttarget:${codes[1]}\tvariants` : "source\ttarget\tvariants";
    const lines = this.#rows.map((row) => {
      const [source, target, variants] = cellsOf(row);
      return source || target || variants ? [source, target || KEPT, variants].join("\t") : "";
    });
    return [header, ...lines, ""].join("\n");
  }

  // The server uses the terms.
  taken({ terms, unspellable = {} }) {
    this.#mark([]);
    const missing = Object.entries(unspellable).map(
      ([code, names]) => `The translator into ${languageName(code)} cannot write the translation of: ${names.join(", ")}.`,
    );
    this.#tell([`${count(terms)} in use.`, ...missing].join(" "));
  }

  // The server has found mistakes in them. refused: so that the session has not begun.
  refused(message, refused) {
    const found = [...message.matchAll(MISTAKE)].map(([, line, text]) => [Number(line) - 1 - HEADER_LINES, text]);
    const marked = found.filter(([at]) => this.#rows[at]);
    this.#mark(marked);
    const changed = refused ? "" : " The terms before stay in use.";
    this.#tell(marked.length ? `${marked.length === 1 ? "1 mistake" : `${marked.length} mistakes`}.${changed}` : message + changed);
    this.element.open = true;
    this.list.querySelector("[aria-invalid]")?.focus();
  }

  // The session has ended, with these texts.
  counted(texts) {
    const { seen, missed } = counts(texts);
    if (seen) this.#tell([kept(seen, missed), ...(missed.length ? [`Missed: ${[...new Set(missed)].join(", ")}.`] : [])].join(" "));
  }

  #add(cells = []) {
    const row = document.createElement("li");
    for (const [at, name] of FIELDS.entries()) {
      const field = document.createElement("input");
      field.placeholder = name;
      field.maxLength = at < 2 ? 100 : 1000;
      field.spellcheck = false;
      field.value = cells[at] ?? "";
      row.append(field);
    }
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "×";
    const mistake = document.createElement("p");
    mistake.className = "mistake";
    mistake.hidden = true;
    row.append(remove, mistake);
    this.list.append(row);
    this.#name();
    return row;
  }

  #remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    (next ?? this.#add()).querySelector("input").focus();
    this.#name();
    this.#keep();
  }

  // Number the rows for screen readers.
  #name() {
    for (const [at, row] of this.#rows.entries()) {
      for (const [field, name] of FIELDS.entries()) row.children[field].setAttribute("aria-label", `${name} ${at + 1}`);
      row.querySelector("button").setAttribute("aria-label", `Remove term ${at + 1}`);
      row.querySelector(".mistake").id = `mistake-${at + 1}`;
    }
  }

  // A list out of a spreadsheet or a glossary file becomes rows.
  #paste(event) {
    const lines = event.clipboardData.getData("text/plain").split(/\r?\n/).filter((line) => line.trim());
    if (lines.length < 2 && !lines[0]?.includes("\t")) return;
    event.preventDefault();
    const row = event.target.closest("li");
    for (const line of lines) {
      const [source, target = "", variants = ""] = line.split("\t").map((cell) => cell.trim());
      if (/^(source|target)(:|$)/.test(source) || source === "#" || source.startsWith("# ")) continue;
      this.#add([source, target === KEPT ? "" : target, variants]);
    }
    if (cellsOf(row).every((cell) => !cell)) row.remove();
    this.#name();
    this.#keep();
    this.list.lastElementChild.querySelector("input").focus();
  }

  // mistakes: [number of the row, what is wrong].
  #mark(mistakes) {
    const wrong = new Map(mistakes);
    for (const [at, row] of this.#rows.entries()) {
      const [field, mistake] = [row.querySelector("input"), row.querySelector(".mistake")];
      mistake.hidden = !wrong.has(at);
      mistake.textContent = wrong.get(at) ?? "";
      if (wrong.has(at)) {
        field.setAttribute("aria-invalid", "true");
        field.setAttribute("aria-describedby", mistake.id);
      } else {
        field.removeAttribute("aria-invalid");
        field.removeAttribute("aria-describedby");
      }
    }
  }

  #tell(text) {
    this.state.textContent = text;
  }

  #keep() {
    keepTerms(this.#rows.map(cellsOf).filter((cells) => cells.some(Boolean)));
  }
}

// What became of the terms in all translations of a session: how many were in the sources, and those that were missed.
export function counts(texts) {
  const targets = [...texts.sentences.values()].flatMap((sentence) => [...sentence.targets.values()]);
  return { seen: targets.reduce((sum, { terms }) => sum + terms.length, 0), missed: targets.flatMap(({ missed }) => missed) };
}

// One sentence about them; "" if there were none.
export function kept(seen, missed) {
  return seen ? `${seen - missed.length} of ${count(seen)} translated as given.` : "";
}

function count(terms) {
  return terms === 1 ? "1 term" : `${terms} terms`;
}

function cellsOf(row) {
  return [...row.querySelectorAll("input")].map(({ value }) => value.replaceAll(/\s+/g, " ").trim());
}
