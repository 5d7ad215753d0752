// Languages as people choose them.

import { t, UI } from "./ui.js";

// "Deutsch (German)": the language's own name first, for readers who do not know that of the page.
export function languageName(code) {
  const [own, named] = namesOf(code);
  return own === named ? own : `${own} (${named})`;
}

// Its names in the language itself, in those of the page and of the browser and in English, and the code.
export function namesOf(code) {
  const name = (locale) => {
    try {
      return new Intl.DisplayNames([locale], { type: "language" }).of(code);
    } catch {
      return code;
    }
  };
  return [name(code), name(UI), name(navigator.language), name("en"), code];
}

// Whether two codes mean the same language, in whatever script or region.
export function sameLanguage(one, other) {
  return one.split("-")[0].toLowerCase() === other.split("-")[0].toLowerCase();
}

// The targets of a session as [value, label] pairs; "" stands for all.
export function targetChoices(targets) {
  const named = targets.map((code) => [code, languageName(code)]);
  return targets.length > 1 ? [["", t("All languages")], ...named] : named;
}

// Replace the choices of a select; the chosen value stays chosen if it is still there.
export function fill(select, choices) {
  const before = select.options.length ? select.value : null;
  select.replaceChildren(...choices.map(([value, label]) => new Option(label, value)));
  if (choices.some(([value]) => value === before)) select.value = before;
}
