// The download buttons under the text.

import { subtitles } from "/static/texts.js";

export function downloads(element, texts) {
  const choice = element.querySelector("select");
  for (const button of element.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const kind = button.dataset.kind;
      const content = subtitles(texts, choice.value, kind);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([content], { type: "text/plain;charset=utf-8" }));
      link.download = `speech.${choice.value || "source"}.${kind}`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
}

// The languages of a session as choices: [value, label] pairs.
export function fill(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(([value, label]) => new Option(label, value)));
  if (choices.some(([value]) => value === before)) select.value = before;
}

export function languageName(code) {
  try {
    return new Intl.DisplayNames([navigator.language || "en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}
