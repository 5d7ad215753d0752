// How far a session is, in a line for its speaker.

import { clock } from "./render.js";
import { t, UI } from "./ui.js";

// status: of the server. seconds: the length of a recording that is sent faster than it plays, or 0.
export function progress(status, texts, seconds) {
  return [behind(status, texts, seconds), readers(status), missing(texts)].filter(Boolean).join(" · ");
}

// How far the text is behind the speech, or how far it has come in a recording.
function behind({ lag_s }, { reached }, seconds) {
  if (seconds) return t("{time} of {whole}", { time: clock(reached), whole: clock(seconds) });
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  return t("{seconds} s behind", { seconds: lag_s.toLocaleString(UI, digits) });
}

function readers({ viewers }) {
  return viewers ? (viewers === 1 ? t("1 reader") : t("{n} readers", { n: viewers })) : "";
}

// Speech that was heard and is not shown: how much, and where the last of it is.
function missing({ missing: { length, [length - 1]: last } }) {
  return length ? t("{n} not understood, the last at {time}", { n: length, time: clock(last.start_s) }) : "";
}
