// What this tab keeps while it is open, reloads included: the key of its room, the session in progress, and the terms.

const ROOM = "speech-translation-room";
const SESSION = "speech-translation-session";
const TERMS = "speech-translation-terms";
const FREED_MS = 5000; // after a reload, the page before may hold its lock a little longer, on a busy machine for seconds
const KEY_BYTES = 24;

let key = "";
let release = () => {};

// Open the tab's room; returns its key. The copy of a tab gets the same storage, and takes another room.
export async function openRoom() {
  key = read(ROOM) ?? "";
  if (!key || !(await hold(key))) await newRoom();
  return key;
}

// Take another room: readers of the one before cannot follow.
export async function newRoom() {
  release();
  write(SESSION, null);
  key = base64(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  write(ROOM, key);
  await hold(key);
  return key;
}

// The name of the room with this key, which readers use; "" where only the server can tell it.
export async function roomName(key) {
  if (!crypto.subtle) return ""; // over plain http
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`room:${key}`));
  return base64(new Uint8Array(digest, 0, 16));
}

// session: what is needed to go on with it, or null when it has ended.
export function keepSession(session) {
  write(SESSION, session && JSON.stringify(session));
}

export function keptSession() {
  return JSON.parse(read(SESSION));
}

// terms: the cells of each row.
export function keepTerms(terms) {
  write(TERMS, terms.length ? JSON.stringify(terms) : null);
}

export function keptTerms() {
  return JSON.parse(read(TERMS)) ?? [];
}

async function hold(key) {
  if (!navigator.locks) return true;
  const name = await roomName(key);
  return new Promise((resolve) => {
    const held = () => {
      resolve(true);
      return new Promise((done) => (release = done));
    };
    navigator.locks.request(name, { signal: AbortSignal.timeout(FREED_MS) }, held).catch(() => resolve(false));
  });
}

function base64(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function read(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // the browser may refuse to store anything
  }
}

function write(name, value) {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // the room then lasts until a reload
  }
}
