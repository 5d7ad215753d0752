// The form in which the speaker says who speaks now.

import { t } from "./ui.js";

export class Who {
  // menu: has a form with an input and a list of the names so far. said: an element that says whose turn it is. onName(name): "" for
  // nobody in particular.
  constructor(menu, said, onName) {
    const form = menu.querySelector("form");
    [this.menu, this.said, this.onName] = [menu, said, onName];
    this.input = form.elements.speaker;
    this.input.placeholder = this.input.getAttribute("aria-label");
    this.name = ""; // as the server has it
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      onName(this.input.value);
    });
  }

  // The server has taken a name. opened: the page has just connected.
  show(name, opened) {
    this.name = name;
    if (opened) this.input.value = name;
    else this.#close();
    this.said.textContent = name ? t("{name} speaks now.", { name }) : "";
    this.menu.querySelector("summary span").textContent = name || t("Speaker");
    const list = this.menu.querySelector("#names");
    if (name && ![...list.children].some(({ textContent }) => textContent === name)) list.append(this.#button(name));
  }

  #button(name) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => this.onName((this.input.value = name)));
    return button;
  }

  #close() {
    const focused = this.menu.contains(document.activeElement);
    this.menu.open = false;
    if (focused) this.menu.querySelector("summary").focus();
  }
}
