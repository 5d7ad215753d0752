// What the page says to people about errors.

const BY_CODE = {
  "wrong-token": "The token is missing or wrong. Ask whoever runs this server for it, type it in, and press Start again.",
  "no-session": "There is no such session. It may have ended, or the address is incomplete; ask the speaker for a new one.",
  replaced: "This session goes on in another window or on another device.",
  idle: "The session has ended, because no sound came for some minutes. Press Start to begin another one.",
};

// An error of the server, or of the connection: {code, message}.
export function errorMessage({ code, message }) {
  return BY_CODE[code] ?? sentence(message);
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
