// Draws the texts of a session, and says finished translations to screen readers.

export class Board {
  // list: where sentences are drawn. spoken: a live region. settings: {language: of the translation or "" for all, source: bool}.
  constructor(list, spoken, texts) {
    this.list = list;
    this.spoken = spoken;
    this.texts = texts;
    this.rows = new Map();
    this.language = "";
    this.said = new Set();
    this.pending = new Set();
  }

  changed(numbers) {
    for (const number of numbers) this.pending.add(number);
    if (!this.frame) {
      // A page in the background draws no frames; its text must be right all the same.
      this.frame = document.hidden ? setTimeout(() => this.draw(), 100) : requestAnimationFrame(() => this.draw());
    }
  }

  redraw() {
    this.changed(this.texts.sentences.keys());
  }

  draw() {
    this.frame = null;
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 80;
    for (const number of this.pending) this.#row(number);
    this.pending.clear();
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  #row(number) {
    const sentence = this.texts.sentences.get(number);
    const targets = sentence ? [...sentence.targets].filter(([code]) => !this.language || code === this.language) : [];
    if (!sentence || !(sentence.source.text || targets.some(([, text]) => text.text))) {
      this.rows.get(number)?.remove();
      this.rows.delete(number);
      return;
    }
    const row = this.rows.get(number) ?? this.#insert(number);
    const parts = [time(sentence), line("source", sentence.language, sentence.source)];
    for (const [code, text] of targets) {
      parts.push(line("target", code, text));
      this.#say(number, code, text);
    }
    row.replaceChildren(...parts);
  }

  #insert(number) {
    const row = document.createElement("article");
    row.dataset.number = number;
    const after = [...this.rows.keys()].filter((other) => other > number).sort((one, other) => one - other)[0];
    this.list.insertBefore(row, after === undefined ? null : this.rows.get(after));
    this.rows.set(number, row);
    return row;
  }

  #say(number, code, text) {
    const key = `${number} ${code}`;
    if (!this.spoken || !text.done || this.said.has(key)) return;
    this.said.add(key);
    const said = document.createElement("p");
    said.lang = code;
    said.textContent = text.text;
    this.spoken.append(said);
    while (this.spoken.childElementCount > 20) this.spoken.firstElementChild.remove();
  }
}

export function line(kind, language, text) {
  const found = document.createElement("p");
  found.className = kind;
  found.lang = language;
  found.dir = "auto";
  const committed = document.createElement("span");
  committed.textContent = text.committed;
  const draft = document.createElement("span");
  draft.className = "draft";
  draft.textContent = text.draft;
  found.append(committed, draft);
  return found;
}

function time(sentence) {
  const found = document.createElement("time");
  const seconds = Math.floor(sentence.start);
  found.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return found;
}
