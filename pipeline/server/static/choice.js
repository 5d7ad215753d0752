// The menus of languages: which one is spoken, and into which it is translated.

import { fill, languageName, sameLanguage, targetChoices } from "./languages.js";

export class Choice {
  // controls: the elements of a form with the selects "source" and "target"; languages: what the server offers, [{source, targets}];
  // label: of the menu of targets. It names the language that is spoken if there is no other.
  constructor(controls, languages, label) {
    this.controls = controls;
    this.languages = languages;
    fill(controls.source, languages.map((one) => [one.source, sourceName(one)]));
    controls.source.closest("label").hidden = languages.length < 2;
    const [{ source }] = languages;
    if (languages.length === 1) label.textContent = source === "auto" ? "Translate" : `Translate ${languageName(source)} into`;
    controls.source.addEventListener("change", () => this.offer());
    this.offer();
  }

  get chosen() {
    return this.languages.find(({ source }) => source === this.controls.source.value);
  }

  // pair: [spoken, translated into], or [] if there are several to translate into; either: whether either of them may be spoken.
  get pair() {
    const { source, targets } = this.chosen;
    const either = source === "auto";
    const target = this.controls.target.value || (targets.length === 1 ? targets[0] : "");
    return { pair: either ? targets : target && !sameLanguage(source, target) ? [source, target] : [], either };
  }

  // Choose what was wanted() before.
  restore({ source, targets = [] }) {
    if (source) this.controls.source.value = source;
    this.offer();
    this.controls.target.value = targets[0] ?? "";
  }

  offer() {
    const { source, targets } = this.chosen;
    const both = source === "auto"; // a conversation needs both languages
    const captions = targets.some((code) => sameLanguage(code, source)) ? [] : [[source, `${languageName(source)}, as it is spoken`]];
    const choices = both ? [["", targets.map(languageName).join(" ↔ ")]] : [...targetChoices(targets), ...captions];
    fill(this.controls.target, choices);
    this.controls.target.closest("label").hidden = both && this.languages.length > 1;
  }

  // The fields of the first message.
  wanted() {
    const { source, target } = this.controls;
    return {
      ...(this.languages.length > 1 ? { source: source.value } : {}),
      ...(target.value ? { targets: [target.value] } : {}),
    };
  }
}

function sourceName({ source, targets }) {
  return source === "auto" ? targets.map(languageName).join(" ↔ ") : languageName(source);
}
