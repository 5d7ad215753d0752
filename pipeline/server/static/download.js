// The download buttons under the text.

import { BASE } from "./base.js";
import { fill, languageName } from "./languages.js";
import { RULES } from "./layout.js";
import { subtitles } from "./subtitles.js";
import { t } from "./ui.js";

// element: with a select of languages and buttons with data-kind. texts(): the texts to download.
export class Downloads {
  constructor(element, texts) {
    this.element = element;
    this.choice = element.querySelector("select");
    this.rules = RULES;
    this.askRules();
    for (const button of element.querySelectorAll("button")) {
      button.addEventListener("click", () => save(texts(), this.choice.value, button.dataset.kind, this.rules));
    }
  }

  // Now, not at a click: the text can be downloaded when the server is gone.
  async askRules() {
    const answer = await fetch(new URL("v1/info", BASE)).catch(() => null);
    if (answer?.ok) this.rules = { ...RULES, ...(await answer.json()).subtitles };
  }

  offer(targets) {
    fill(this.choice, [...targets.map((code) => [code, languageName(code)]), ["", t("What was said")]]);
    this.element.hidden = false;
  }
}

function save(texts, language, kind, rules) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([subtitles(texts, language, kind, rules)], { type: "text/plain;charset=utf-8" }));
  link.download = `speech.${language || "source"}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000); // some browsers read it later
}
