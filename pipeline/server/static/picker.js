// A field in place of a long <select>: typing finds a choice by any part of its names.

import { namesOf } from "./languages.js";

const SHORT = 12;
const plain = (text) => text.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase();

export class Picker {
  constructor(select) {
    this.select = select;
    this.field = document.createElement("input");
    this.list = document.createElement("ul");
    this.list.id = `${select.name}-choices`;
    this.list.setAttribute("role", "listbox");
    this.list.hidden = true;
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-controls": this.list.id, autocomplete: "off", spellcheck: "false" };
    for (const [name, value] of Object.entries(attributes)) this.field.setAttribute(name, value);
    this.box = document.createElement("span");
    this.box.className = "picker";
    this.box.append(this.field, this.list);
    this.field.addEventListener("focus", () => this.#open(""));
    this.field.addEventListener("click", () => this.list.hidden && this.#open(""));
    this.field.addEventListener("input", () => this.#open(this.field.value));
    this.field.addEventListener("blur", () => this.show());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    this.list.addEventListener("click", (event) => {
      event.preventDefault(); // of the label
      const item = event.target.closest("li");
      if (item) this.#choose(item);
    });
    this.show();
  }

  // Show the chosen option. Call this when the options or the choice have changed.
  show() {
    const long = this.select.options.length > SHORT;
    this.select.hidden = long;
    if (!long) this.box.remove();
    else if (!this.box.isConnected) this.select.before(this.box); // its label is then that of the field
    this.#close();
  }

  get #items() {
    return [...this.list.children];
  }

  #open(text) {
    if (!text) this.field.select();
    const wanted = plain(text.trim());
    const fits = ({ value, label }) => !wanted || plain(label).includes(wanted) || namesOf(value).some((name) => plain(name).includes(wanted));
    const items = [...this.select.options].filter(fits).map(({ value, label, selected }) => {
      const item = document.createElement("li");
      item.id = `${this.list.id}-${value}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(selected));
      item.dataset.value = value;
      item.textContent = label;
      return item;
    });
    this.list.replaceChildren(...items);
    this.list.hidden = !items.length;
    this.field.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#mark(text ? items[0] : items.find((item) => item.ariaSelected === "true"));
  }

  #close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
    this.field.value = this.select.selectedOptions[0]?.label ?? "";
  }

  #mark(item) {
    for (const one of this.#items) one.classList.toggle("marked", one === item);
    if (item) this.field.setAttribute("aria-activedescendant", item.id);
    else this.field.removeAttribute("aria-activedescendant");
    item?.scrollIntoView({ block: "nearest" });
  }

  #choose(item) {
    this.select.value = item.dataset.value;
    this.#close();
    this.select.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #key(event) {
    const items = this.#items;
    const marked = items.findIndex((item) => item.classList.contains("marked"));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (this.list.hidden) this.#open("");
      else this.#mark(items[Math.max(0, Math.min(items.length - 1, marked + step))]);
    } else if (event.key === "Enter" && !this.list.hidden && items[marked]) {
      this.#choose(items[marked]);
    } else if (event.key === "Escape" && !this.list.hidden) {
      this.#close();
    } else {
      return;
    }
    event.preventDefault();
  }
}
