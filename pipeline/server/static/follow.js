// Follows a session as a reader, or a room: the sessions there, one after the other.

import { BASE } from "./base.js";
import { Connection } from "./connection.js";

const ASK_MS = 3000;
const ROOM = /^[\w-]{22}$/;

// name: from the page's address. handlers: onBegin(description) when another session begins, onEvent(event), and
// onState(state, detail) with the connection's states. In a room, "waiting" stands before the first session, and "ended" after
// one comes with true if the page waits for the next; "cut" stands for "ended" where the end of a session was not told. Returns a function that has the session translated into one more language.
export function follow(name, { onBegin, onEvent, onState }) {
  const isRoom = ROOM.test(name);
  let session = null;
  let connection = null;
  let isOpen = false;

  function connect() {
    connection = new Connection({ type: "watch", version: 2, session: name }, { onEvent, onState: changed }, undefined, name);
  }

  function changed(state, detail) {
    if (state === "open" && detail.session !== session) {
      session = detail.session;
      onBegin(detail);
    }
    const missing = state === "refused" && detail.code === "no-session";
    const cut = missing && isOpen;
    isOpen = state === "open" || (isOpen && state === "lost");
    if (!isRoom || !(missing || state === "ended")) return onState(state, detail);
    onState(cut ? "cut" : session ? "ended" : "waiting", true);
    setTimeout(ask, ASK_MS);
  }

  async function ask() {
    const address = new URL("v1/room", BASE);
    address.searchParams.set("name", name);
    let newest = null;
    try {
      newest = (await (await fetch(address)).json()).session;
    } catch {
      // no network, or the server is being restarted
    }
    if (newest && newest !== session) connect();
    else setTimeout(ask, ASK_MS);
  }

  connect();
  return (language) => connection.addTarget(language);
}
