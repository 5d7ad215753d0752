// The panel with the addresses for readers.

import { BASE } from "./base.js";
import { t } from "./ui.js";

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

  // name: of a room or session. address: of the server for other machines, if the page's own is for this one alone.
  show(name, address) {
    const page = new URL(`view/${name}`, address ?? BASE);
    $("viewer").href = $("viewer").textContent = page;
    this.code = new URL(`view/${name}/qr.svg`, BASE).href;
    $("overlay").href = new URL(`overlay/${name}`, BASE);
    const here = !address && LOOPBACK.test(location.hostname);
    $("local").hidden = !here;
    $("invitation").hidden = $("qr").hidden = here;
    $("share").hidden = false;
    this.#draw();
  }

  // The address cannot change while readers may be there.
  running(on) {
    $("renew").disabled = on;
  }

  #draw() {
    if ($("share").open && !$("qr").hidden && $("qr").src !== this.code) $("qr").src = this.code;
  }
}

async function copy() {
  try {
    await navigator.clipboard.writeText($("viewer").href);
    $("copy").textContent = t("Copied");
  } catch {
    getSelection().selectAllChildren($("viewer"));
    $("copy").textContent = t("Press Ctrl+C to copy");
  }
  setTimeout(() => ($("copy").textContent = t("Copy address")), COPIED_MS);
}
