// The form in which the speaker says who speaks now.

import { t } from "./ui.js";

export class Who {
  // form: has an input with a list of names and an element that says whose turn it is. onName(name): "" for nobody in particular.
  constructor(form, onName) {
    this.form = form;
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
    this.form.querySelector("[role=status]").textContent = name ? t("{name} speaks now.", { name }) : "";
    const { list } = this.input;
    if (name && ![...list.options].some(({ value }) => value === name)) list.append(new Option(name, name));
  }
}
