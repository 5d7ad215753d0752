// Languages whose models the server has to fetch or load first.

import { BASE } from "./base.js";

// What the server offers beyond what it is configured for: [{source, targets}]. here: only what it need not fetch.
export async function offered(here = false) {
  return (await (await fetch(new URL(here ? "v1/languages?here=1" : "v1/languages", BASE))).json()).offered;
}

// What readers may have a session translated into: [{source, targets}]. Those without the token have nothing fetched.
export async function addable() {
  const { languages, more, token } = await (await fetch(new URL("v1/info", BASE))).json();
  return more ? [...languages, ...(await offered(token))] : languages;
}

// Show how far it is, in the elements of the page; nothing is being done if doing is "".
export function showPreparing(doing, part = 0) {
  const [box, text] = ["preparing", "doing"].map((id) => document.getElementById(id));
  box.hidden = !doing;
  if (text.textContent !== doing) text.textContent = doing;
  box.querySelector("progress").value = part;
}

// Have the server prepare languages, {source, targets} as in the first message. show(doing, part) is called until it is done.
// Throws an error of the server, {code, message}.
export async function prepare({ source, targets = [] }, token, show) {
  const address = new URL("v1/languages", BASE);
  if (source) address.searchParams.set("source", source);
  for (const target of targets) address.searchParams.append("target", target);
  const answer = await fetch(address, { method: "POST", headers: token ? { authorization: `Bearer ${token}` } : {} });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    const lines = (text + (value ?? "")).split("\n");
    text = done ? "" : lines.pop();
    for (const line of lines.filter(Boolean)) {
      const step = JSON.parse(line);
      if (step.error) throw step.error;
      if (!step.ready) show(step.doing, step.part);
    }
    if (done) return;
  }
}
