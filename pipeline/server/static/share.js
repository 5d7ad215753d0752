// The panel with the addresses for readers.

import { BASE } from "./base.js";

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;
const COPIED_MS = 2000;

const $ = (id) => document.getElementById(id);

export class Share {
  // onRenew(): another room is wanted.
  constructor(onRenew) {
    $("share").addEventListener("toggle", () => this.#draw());
    $("copy").addEventListener("click", copy);
    $("renew").addEventListener("click", onRenew);
  }

  // name: of a room or session.
  show(name) {
    const page = new URL(`view/${name}`, BASE);
    $("viewer").href = $("viewer").textContent = page;
    $("overlay").href = new URL(`overlay/${name}`, BASE);
    $("local").hidden = !LOOPBACK.test(location.hostname);
    $("share").hidden = false;
    this.#draw();
  }

  // The address cannot change while readers may be there.
  running(on) {
    $("renew").disabled = on;
  }

  #draw() {
    const code = `${$("viewer").href}/qr.svg`;
    if ($("share").open && $("qr").src !== code) $("qr").src = code;
  }
}

async function copy() {
  try {
    await navigator.clipboard.writeText($("viewer").href);
    $("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("viewer"));
    $("copy").textContent = "Press Ctrl+C to copy";
  }
  setTimeout(() => ($("copy").textContent = "Copy address"), COPIED_MS);
}
