// The panel with the speaker's names and terms, and what became of them.

import { languageName } from "./languages.js";
import { keepTerms, keptTerms } from "./room.js";
import { HEADER_LINES, terms, tsv } from "./terms.js";
import { t } from "./ui.js";

const FIELDS = [t("Term"), t("Translation"), t("Variants"), t("Other translations"), t("Case")];
const SEEN = 3; // fields that every row shows
const CASES = [["", t("Any case")], ["exact", t("Exact case")]];
const LONGEST = [100, 100, 1000, 1000]; // characters of the fields; the first two as on the server
const MOST_TERMS = 1000; // of a session, as on the server
const MOST_CHARACTERS = 65536; // of all, as on the server
const MOST_NAMED = 20; // terms in one message
const MISTAKE = /line (\d+): (.*?)(?=; line \d+: |; and \d+ more$|$)/g;
const TOO_MANY = /mistakes: (\d+ terms; \d+ are allowed)/;
const MORE = /; and (\d+) more$/;

export class GlossaryPanel {
  // element: details with a form. languages(): {pair: [spoken, translated into], either: whether either of them may be spoken};
  // pair is [] if there are several to translate into. onUse(text): other terms are wanted; returns whether there is a session
  // to use them.
  // propose(file): the terms of a document, or, without one, those of the server's, as [{term, count}]; an error has what to tell.
  constructor(element, languages, onUse, propose) {
    this.element = element;
    this.languages = languages;
    this.list = element.querySelector("ol");
    this.state = element.querySelector("[role=status]");
    element.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#mark([]);
      this.#tell(this.obstacle || (onUse(this.text) ? "" : t("These terms are used from the next start on.")));
    });
    element.querySelector("button.add").addEventListener("click", () => this.#append([]).querySelector("input").focus());
    this.list.addEventListener("input", () => {
      this.#tell("");
      this.#keep();
    });
    this.list.addEventListener("click", ({ target }) => {
      if (target.matches(".more")) show(target.closest("li"), target.getAttribute("aria-expanded") !== "true");
      if (target.matches(".remove")) this.#remove(target.closest("li"));
    });
    this.list.addEventListener("paste", (event) => this.#paste(event));
    this.proposed = element.querySelector(".proposed");
    this.proposed.addEventListener("change", ({ target }) => this.#choose(target));
    const ask = (file) => propose(file).then((found) => this.#propose(found, Boolean(file)), (error) => file && this.#tell(error.message));
    element.querySelector("[type=file]").addEventListener("change", ({ target }) => {
      const [file] = target.files;
      target.value = ""; // so that the same one can be chosen again
      if (file) {
        this.#tell(t("Reading the document"));
        ask(file);
      }
    });
    element.addEventListener("toggle", () => element.open && ask(null));
    const kept = keptTerms();
    this.#append(...(kept.length ? kept : [[]]));
  }

  get #rows() {
    return [...this.list.children];
  }

  get isEmpty() {
    return this.#rows.every((row) => isBlank(cellsOf(row)));
  }

  // As a glossary file (TSV) with one line a row after the header.
  get text() {
    const { pair, either } = this.languages();
    return tsv(this.#rows.map(cellsOf), either ? pair : null);
  }

  // Why the terms cannot be sent; "" if they can.
  get obstacle() {
    const { length } = this.text;
    return length <= MOST_CHARACTERS ? "" : t("The terms have {n} characters; {most} is the most. Remove some.", { n: length, most: MOST_CHARACTERS });
  }

  // Say why the session has not begun.
  blocked(message) {
    this.#tell(message);
    this.element.open = true;
  }

  // The server uses the terms.
  taken({ terms, unspellable = {} }) {
    this.#mark([]);
    const missing = Object.entries(unspellable).map(
      ([code, names]) => t("The translator into {language} cannot write the translation of: {terms}.", { language: languageName(code), terms: named(names) }),
    );
    this.#tell([t("{terms} in use.", { terms: count(terms) }), ...missing].join(" "));
  }

  // The server has found mistakes in them. refused: so that the session has not begun.
  refused(message, refused) {
    const found = [...message.matchAll(MISTAKE)].map(([, line, text]) => [rowOf(line), inRows(text)]);
    const marked = found.filter(([at]) => this.#rows[at]);
    this.#mark(marked);
    const mistakes = marked.length + Number(message.match(MORE)?.[1] ?? 0);
    const general = marked.length ? message.match(TOO_MANY)?.[1] : message;
    const parts = [
      general && `${general}.`,
      marked.length && (mistakes === 1 ? t("1 mistake.") : t("{n} mistakes.", { n: mistakes })),
      !refused && t("The terms before stay in use."),
    ];
    this.blocked(parts.filter(Boolean).join(" "));
    this.list.querySelector("[aria-invalid]")?.focus();
  }

  // The session has ended, with these texts.
  counted(texts) {
    const { seen, missed } = counts(texts);
    const names = [...new Set(missed)];
    this.#tell([kept(seen, missed), names.length ? t("Missed: {terms}.", { terms: named(names) }) : ""].filter(Boolean).join(" "));
  }

  // Returns the last of the rows.
  #append(...rows) {
    this.list.append(...rows.map(rowWith));
    this.#name();
    return this.list.lastElementChild;
  }

  #remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    (next ?? this.#append([])).querySelector("input").focus();
    this.#name();
    this.#tell("");
    this.#keep();
  }

  // Show terms to tick, those that are new and no rows yet. told: also how many these are.
  #propose(found, told) {
    const known = new Set([...this.#rows.map((row) => cellsOf(row)[0]), ...[...this.proposed.querySelectorAll("input")].map(({ value }) => value)]);
    const fresh = found.filter(({ term }) => !known.has(term));
    this.proposed.append(...fresh.map(choice));
    this.proposed.hidden = !this.proposed.querySelector("input");
    if (told) this.#tell(fresh.length ? t("{terms} proposed. Tick those that will be said.", { terms: count(fresh.length) }) : t("No new terms were found in the document."));
  }

  // A proposed term becomes a row, or is one no more.
  #choose({ value, checked }) {
    const row = this.#rows.find((one) => cellsOf(one)[0] === value);
    if (checked && !row) {
      const blank = this.#rows.find((one) => isBlank(cellsOf(one)));
      if (this.#rows.length < MOST_TERMS) this.#append([value]);
      blank?.remove();
    } else if (!checked) row?.remove();
    if (!this.#rows.length) this.#append([]);
    this.#name();
    this.#keep();
  }

  // Number the rows for screen readers.
  #name() {
    for (const [at, row] of this.#rows.entries()) {
      for (const [field, element] of fieldsOf(row).entries()) element.setAttribute("aria-label", `${FIELDS[field]} ${at + 1}`);
      row.querySelector(".more").setAttribute("aria-label", t("More on term {n}", { n: at + 1 }));
      row.querySelector(".remove").setAttribute("aria-label", t("Remove term {n}", { n: at + 1 }));
      row.querySelector(".mistake").id = `mistake-${at + 1}`;
      const field = row.querySelector("[aria-invalid]");
      field?.setAttribute("aria-describedby", `mistake-${at + 1}`);
    }
  }

  // A list out of a spreadsheet or a glossary file becomes rows.
  #paste(event) {
    const text = event.clipboardData.getData("text/plain");
    if (!event.target.matches("input") || !/\t|\n./.test(text.trim())) return;
    event.preventDefault();
    const pasted = terms(text, this.languages().pair);
    const row = event.target.closest("li");
    if (pasted.length && isBlank(cellsOf(row))) row.remove();
    const room = Math.max(0, MOST_TERMS - this.#rows.length);
    this.#append(...pasted.slice(0, room)).querySelector("input").focus();
    const values = { terms: count(room), all: pasted.length, most: MOST_TERMS };
    this.#tell(pasted.length > room ? t("{terms} of {all} pasted; there may be {most}.", values) : "");
    this.#keep();
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
    keepTerms(this.#rows.map(cellsOf).filter((cells) => !isBlank(cells)));
  }
}

// What became of the terms in all translations of a session: how many were in the sources, and those that were missed.
export function counts(texts) {
  const targets = [...texts.sentences.values()].flatMap((sentence) => [...sentence.targets.values()]);
  return { seen: targets.reduce((sum, { terms }) => sum + terms.length, 0), missed: targets.flatMap(({ missed }) => missed) };
}

// One sentence about them; "" if there were none.
export function kept(seen, missed) {
  return seen ? t("{n} of {terms} translated as given.", { n: seen - missed.length, terms: count(seen) }) : "";
}

function count(terms) {
  return terms === 1 ? t("1 term") : t("{n} terms", { n: terms });
}

function named(names) {
  const more = names.length - MOST_NAMED;
  const shown = names.slice(0, MOST_NAMED).join(", ");
  return more > 0 ? t("{names} and {n} more", { names: shown, n: more }) : shown;
}

// The row of a line of ``text``, counted from 0.
function rowOf(line) {
  return Number(line) - 1 - HEADER_LINES;
}

// A mistake that names another line names the row in its place.
function inRows(mistake) {
  return mistake.replace(/, in line (\d+), /, (_, line) => `, in term ${rowOf(line) + 1}, `);
}

function rowWith(cells) {
  const row = document.createElement("li");
  const fields = FIELDS.map((name, at) => (LONGEST[at] ? input(name, LONGEST[at]) : select(CASES)));
  for (const [at, field] of fields.entries()) field.value = cells[at] ?? "";
  const buttons = document.createElement("div");
  buttons.append(button("more", "…"), button("remove", "×"));
  const rest = document.createElement("div");
  rest.className = "rest";
  rest.append(...fields.slice(SEEN));
  const mistake = document.createElement("p");
  mistake.className = "mistake";
  mistake.hidden = true;
  row.append(...fields.slice(0, SEEN), buttons, rest, mistake);
  show(row, fields.slice(SEEN).some(({ value }) => value));
  return row;
}

// A term to tick.
function choice({ term, count: times }) {
  const box = Object.assign(document.createElement("input"), { type: "checkbox", value: term });
  const label = document.createElement("label");
  label.append(box, ` ${term} `, Object.assign(document.createElement("small"), { textContent: times }));
  return label;
}

function show(row, all) {
  row.querySelector(".more").setAttribute("aria-expanded", all);
  row.querySelector(".rest").hidden = !all;
}

function input(name, longest) {
  const field = document.createElement("input");
  field.placeholder = field.title = name;
  field.maxLength = longest;
  field.spellcheck = false;
  return field;
}

function select(choices) {
  const field = document.createElement("select");
  field.append(...choices.map(([value, label]) => new Option(label, value)));
  return field;
}

function button(kind, text) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = kind;
  element.textContent = text;
  return element;
}

function fieldsOf(row) {
  return [...row.querySelectorAll("input, select")];
}

function cellsOf(row) {
  return fieldsOf(row).map(({ value }) => value);
}

function isBlank(cells) {
  return cells.slice(0, -1).every((cell) => !cell.trim());
}
