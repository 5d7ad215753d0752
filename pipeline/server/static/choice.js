// The menus of languages: which one is spoken, and into which it is translated.

import { fill, languageName, sameLanguage, targetChoices } from "./languages.js";
import { Picker } from "./picker.js";
import { recentPairs, usePair } from "./recent.js";
import { t } from "./ui.js";

export class Choice {
  // controls: the elements of a form with the selects "source" and "target"; languages: what the server is configured for,
  // [{source, targets}]; label: of the menu of targets. It names the language that is spoken if there is no other; offered: more
  // that it can prepare, [{source, targets}].
  constructor(controls, languages, label, offered = []) {
    this.controls = controls;
    this.languages = joined(languages, offered);
    this.pickers = [new Picker(controls.source), new Picker(controls.target)];
    this.recent = offered.length ? recentPairs() : [];
    const sources = this.languages.map((one) => [one.source, sourceName(one)]);
    fill(controls.source, first(sources, this.recent.map(([source]) => source)));
    controls.source.closest("label").hidden = this.languages.length < 2;
    const [{ source }] = languages;
    if (this.languages.length === 1) label.textContent = isConversation(languages[0]) ? t("Translate") : t("Translate {language} into", { language: sourceName(languages[0]) });
    this.spoken = controls.source.value;
    controls.source.addEventListener("change", () => this.offer());
    controls.target.addEventListener("change", () => this.#offerSwap());
    controls.swap.addEventListener("click", () => {
      controls.source.value = this.reverse;
      controls.source.dispatchEvent(new Event("change", { bubbles: true }));
    });
    this.offer();
  }

  get chosen() {
    return this.languages.find(({ source }) => source === this.controls.source.value);
  }

  // pair: [spoken, translated into], or [] if there are several to translate into; either: whether either of them may be spoken.
  get pair() {
    const { source, targets } = this.chosen;
    const either = isConversation(this.chosen);
    const target = this.controls.target.value || (targets.length === 1 ? targets[0] : "");
    return { pair: either ? targets : target && isOne(source) && !sameLanguage(source, target) ? [source, target] : [], either };
  }

  // Choose what was wanted() before.
  restore({ source, targets = [] }) {
    if (source) this.controls.source.value = source;
    this.offer();
    this.controls.target.value = targets[0] ?? "";
    this.pickers.forEach((picker) => picker.show());
  }

  offer() {
    const { source, targets, more } = this.chosen;
    const both = isConversation(this.chosen); // it needs all of its languages
    const captions = !isOne(source) || targets.some((code) => sameLanguage(code, source)) ? [] : [[source, t("{language}, as it is spoken", { language: languageName(source) })]];
    const choices = both ? [["", targets.map(languageName).join(" ↔ ")]] : [...targetChoices(targets), ...targetChoices(more).slice(more.length > 1), ...captions];
    const used = [...this.recent].sort(([one], [other]) => (other === source) - (one === source)).map(([, target]) => target);
    const { target } = this.controls;
    const wasTarget = sameLanguage(target.value, source) && !sameLanguage(this.spoken, source);
    fill(target, first(choices, used));
    if (wasTarget) target.value = choices.map(([code]) => code).find((code) => sameLanguage(code, this.spoken)) ?? choices[0][0];
    this.spoken = source;
    this.#offerSwap();
    target.closest("label").hidden = both && this.languages.length > 1;
    this.pickers.forEach((picker) => picker.show());
  }

  // The source with which the languages change places; undefined if that cannot be done.
  get reverse() {
    const { source, target } = this.controls;
    const isReverse = (one) => sameLanguage(one.source, target.value) && [...one.targets, ...one.more].some((code) => sameLanguage(code, source.value));
    return sameLanguage(source.value, target.value) ? undefined : this.languages.find(isReverse)?.source;
  }

  #offerSwap() {
    const { swap, source } = this.controls;
    swap.hidden = this.languages.length < 2 || !isOne(source.value);
    swap.disabled = !this.reverse;
  }

  // The fields of the first message.
  wanted() {
    const { source, target } = this.controls;
    return {
      ...(this.languages.length > 1 ? { source: source.value } : {}),
      ...(target.value ? { targets: [target.value] } : {}),
    };
  }

  // The chosen languages are used: they come first the next time.
  use() {
    usePair(this.controls.source.value, this.controls.target.value);
  }
}

// What is offered beside what is configured: {source, targets, more}, sorted by name.
function joined(languages, offered) {
  const named = (one, other) => languageName(one).localeCompare(languageName(other));
  const known = languages.map((one) => {
    const more = offered.find(({ source }) => source === one.source)?.targets ?? [];
    return { ...one, more: more.filter((code) => !one.targets.some((target) => sameLanguage(target, code))).sort(named) };
  });
  const others = offered.filter(({ source }) => !languages.some((one) => one.source === source));
  others.sort((one, other) => named(one.source, other.source));
  return [...known, ...others.map(({ source, targets }) => ({ source, targets: [], more: targets.sort(named) }))];
}

// Choices with these values before the others, in this order.
function first(choices, values) {
  const used = [...new Set(values)].map((value) => choices.find(([one]) => one === value)).filter(Boolean);
  return [...used, ...choices.filter((one) => !used.includes(one))];
}

function sourceName(one) {
  if (isConversation(one)) return one.targets.map(languageName).join(" ↔ ");
  return one.source === "auto" ? t("Any language") : one.source.split(",").map(languageName).join(", ");
}

// Whether the targets are spoken, and each is translated into the others.
function isConversation({ source, targets }) {
  return source === "auto" && targets.length > 1;
}

// Whether one language is spoken.
function isOne(source) {
  return source !== "auto" && !source.includes(",");
}
