// What the pages say to people about errors.

const TO_ALL = {
  "wrong-token": "The token is missing or wrong. Ask whoever runs this server for it, type it in, and press Start again.",
  replaced: "This session goes on in another window or on another device.",
  "bad-glossary": "The terms have mistakes: see Terms above.",
  "room-busy": "You speak in another window already. Stop there first, or choose Share > New address.",
  idle: "The session has ended, because no sound came for some minutes. Press Start to begin another one.",
};

const TO_SPEAKERS = {
  ...TO_ALL,
  "no-session": "The session has ended meanwhile. Press Start to begin another one.",
};
const TO_READERS = {
  ...TO_ALL,
  "no-session": "There is no such session. It may have ended, or the address is incomplete; ask the speaker for a new one.",
  idle: "The session has ended, because no sound came for some minutes.",
};

// An error of the server, or of the connection: {code, message}.
export function errorMessage({ code, message }, isSpeaker) {
  return (isSpeaker ? TO_SPEAKERS : TO_READERS)[code] ?? sentence(message);
}

function sentence(text) {
  const shown = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(shown) ? shown : `${shown}.`;
}

// element: an alert. An empty text hides it.
export function showProblem(element, text) {
  element.textContent = text;
  element.hidden = !text;
}
