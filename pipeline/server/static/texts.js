// The texts of a session: applies the server's events. Lengths in events count code points, not UTF-16 units.

import { sameLanguage } from "./languages.js";

const KINDS = { source_delta: "source", source_sentence: "source", delta: "target", translation: "target", correction: "target" };

const NOISE = ["silence", "empty"]; // nothing was said

export class Texts {
  constructor() {
    this.sentences = new Map(); // number → {number, language, speaker, start, end, source: Text, targets: Map(language → Text)}
    this.missing = []; // speech that is in no sentence: {start_s, end_s}
  }

  // Apply an event; returns the numbers of the sentences that changed.
  apply(event) {
    if (event.type === "snapshot") return this.#replace(event.events);
    if (event.type === "transcript") this.missing.push(...(NOISE.includes(event.rejected) ? [] : event.rejected ? [event] : event.missing));
    const kind = event.type === "correction" && !event.language ? "source" : KINDS[event.type];
    if (!kind) return [];
    const sentence = this.#sentence(event.sentence);
    const text = kind === "source" ? sentence.source : this.#target(sentence, event.language);
    if (event.type.startsWith("source")) {
      sentence.language = event.language;
      sentence.speaker = event.speaker; // unknown in most sessions
      sentence.start = event.start_s ?? sentence.start;
      sentence.end = event.end_s ?? sentence.end;
      sentence.uncertain = event.uncertain ?? false; // may be misheard
      sentence.pause = event.before_pause ?? true; // after it
    }
    if (event.type === "correction" && event.speaker !== undefined) sentence.speaker = event.speaker;
    if (event.type.endsWith("delta")) text.change(event);
    else if (event.type === "correction") text.correct(event);
    else text.finish(event, sentence.uncertain);
    return [event.sentence];
  }

  // Sentences in their order, without those of which nothing is left.
  shown() {
    return [...this.sentences.values()]
      .filter((each) => each.source.text || [...each.targets.values()].some((target) => target.text))
      .sort((one, other) => one.number - other.number);
  }

  // Seconds of the speech of which the text is finished, translations included.
  get reached() {
    const isDone = ({ source, targets }) => [source, ...targets.values()].every(({ done }) => done);
    return Math.max(0, ...[...this.sentences.values()].filter(isDone).map(({ end }) => end));
  }

  // A snapshot has whole texts: they take the place of what is known of these sentences, and drafts that it lacks are gone.
  #replace(events) {
    const numbers = new Set(events.map((event) => event.sentence).filter((number) => number !== undefined));
    for (const [number, sentence] of this.sentences) {
      if (numbers.has(number) || !sentence.source.done) {
        numbers.add(number);
        this.sentences.delete(number);
      }
    }
    this.missing = [];
    for (const event of events) this.apply(event);
    return [...numbers];
  }

  #sentence(number) {
    if (!this.sentences.has(number)) {
      this.sentences.set(number, { number, language: "", start: 0, end: 0, uncertain: false, source: new Text(), targets: new Map() });
    }
    return this.sentences.get(number);
  }

  #target(sentence, language) {
    if (!sentence.targets.has(language)) sentence.targets.set(language, new Text());
    return sentence.targets.get(language);
  }
}

// The text of a sentence for readers of a language: its translation, or what was said if that was in this language.
export function textFor(sentence, language) {
  const translation = sentence.targets.get(language);
  return translation ?? (sameLanguage(sentence.language, language) ? sentence.source : undefined);
}

class Text {
  constructor() {
    this.points = [];
    this.length = 0; // of the steady part
    this.done = false;
    this.corrections = 0; // made by the speaker
    this.terms = []; // of the glossary, in the source of a finished translation
    this.missed = []; // those of them that it lacks
    this.doubtful = false; // a finished text that may be wrong
  }

  change({ text, withdrawn = 0, steady = 0 }) {
    this.points.length -= withdrawn;
    for (const point of text) this.points.push(point);
    this.length = steady;
  }

  finish({ text, terms = [], missed_terms = [], doubtful = false }, uncertain) {
    this.terms = terms;
    this.missed = missed_terms;
    this.doubtful = doubtful || uncertain;
    this.#end(text);
  }

  correct({ text }) {
    if (text === this.text) return; // only the speaker is another
    this.corrections += 1;
    this.doubtful = false;
    this.#end(text);
  }

  #end(text) {
    this.points = [...text];
    this.length = this.points.length;
    this.done = true;
  }

  get text() {
    return this.points.join("");
  }

  get steady() {
    return this.points.slice(0, this.length).join("");
  }

  get draft() {
    return this.points.slice(this.length).join("");
  }
}
