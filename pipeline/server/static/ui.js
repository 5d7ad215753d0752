// The pages' texts in the reader's language. The pages and scripts have English; ui/LANGUAGE.json has the others.

const LANGUAGES = ["en", "pt", "zh", "es", "de", "fr"];
const ATTRIBUTES = ["aria-label", "aria-description", "title", "alt"];

export const UI = chosen();
const table = UI === "en" ? {} : await translations();
translatePage();

// An English text in the language of the page, with values in the place of their {names}.
export function t(text, values = {}) {
  return (table[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// What the address asks for (?ui=pt), else the first of the browser's languages that there is.
function chosen() {
  const wanted = [new URLSearchParams(location.search).get("ui") ?? "", ...navigator.languages];
  return wanted.map((code) => code.split("-")[0].toLowerCase()).find((code) => LANGUAGES.includes(code)) ?? "en";
}

async function translations() {
  try {
    return await (await fetch(new URL(`ui/${UI}.json`, import.meta.url))).json();
  } catch {
    return {}; // English will do
  }
}

function translatePage() {
  document.documentElement.lang = UI === "zh" ? "zh-Hans" : UI;
  const nodes = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const english = nodes.currentNode.data.trim();
    if (english) nodes.currentNode.data = nodes.currentNode.data.replace(english, () => t(english));
  }
  for (const name of ATTRIBUTES) {
    for (const element of document.querySelectorAll(`[${name}]`)) element.setAttribute(name, t(element.getAttribute(name)));
  }
}
