// What the pages say to people about errors, and the speaker's page about its session.

import { languageName } from "./languages.js";
import { clock } from "./render.js";
import { t } from "./ui.js";

const TO_ALL = {
  "wrong-token": t("The token is missing or wrong. Ask whoever runs this server for it, type it in, and press Start again."),
  replaced: t("This session goes on in another window or on another device."),
  "bad-glossary": t("The terms have mistakes: see Terms above."),
  "room-busy": t("You speak in another window already. Stop there first, or choose Share > New address."),
  "no-line": t("This line is too old to be corrected."),
  "bad-word": t("Choose a whole word of the line that is not masked yet."),
  "bad-speaker": t("A name has 60 characters at most, all of them visible."),
  "too-many-targets": t("No more languages can be added to this talk. Choose one of those at the top of the list, or ask the speaker."),
  "too-many": t("Too many lines were corrected in the last minute. Wait a little, then try again."),
  idle: t("The session has ended, because no sound came for some minutes. Press Start to begin another one."),
};

const TO_SPEAKERS = {
  ...TO_ALL,
  "no-session": t("The session has ended meanwhile. Press Start to begin another one."),
};
const TO_READERS = {
  ...TO_ALL,
  "no-session": t("There is no such session. It may have ended, or the address is incomplete; ask the speaker for a new one."),
  idle: t("The session has ended, because no sound came for some minutes."),
};

// What the speaker's page says of its session.
export const STATES = {
  idle: t("Ready"),
  connecting: t("Connecting"),
  lost: t("Connection lost. Speech is kept, and sent when it is back if the session still exists."),
  ended: t("Ended"),
  refused: t("Stopped"),
};
export const SILENCE = t("Nothing is heard. Check that the right microphone is chosen and that it is not muted.");
export const UNRECORDED = t("The text is no longer recorded, because the server cannot write it.");
export const CUT_SHORT = t("The page was loaded again and no longer has the recording. What was sent of it is translated.");

// An error of the server, or of the connection: {code, message}.
export function errorMessage({ code, message }, isSpeaker) {
  return (isSpeaker ? TO_SPEAKERS : TO_READERS)[code] ?? sentence(message);
}

function sentence(text) {
  const shown = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(shown) ? shown : `${shown}.`;
}

// Why a session ended that its speaker did not end, and what is left of it.
export function endedEarly(reason, { reached }) {
  if (!reached) return reason;
  return `${reason} ${t("What was said until {time} stays on this page and can be downloaded. What was said after that is not translated.", { time: clock(reached) })}`;
}

export function translationLost({ language, reason }) {
  return t("The translation into {language} has stopped: {reason}", { language: languageName(language), reason });
}

// element: an alert. An empty text hides it.
export function showProblem(element, text) {
  element.textContent = text;
  element.hidden = !text;
}
