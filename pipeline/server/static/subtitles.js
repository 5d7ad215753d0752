// Subtitles for download.

import { textFor } from "./texts.js";

const CUE_COLUMNS = 84; // two lines of 42, as subtitles for films have
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/; // take two columns

// The finished text for readers of a language, or what was said for "".
export function subtitles(texts, language, kind) {
  const cues = [];
  let speaker;
  for (const sentence of texts.shown()) {
    const text = language ? textFor(sentence, language) : sentence.source;
    if (!text?.done || !text.text.trim()) continue;
    const parts = divided(text.text.trim(), sentence);
    if (kind !== "vtt" && sentence.speaker && sentence.speaker !== speaker) {
      parts[0].text = sentence.speaker + (WIDE.test(text.text) ? "：" : ": ") + parts[0].text;
    }
    speaker = sentence.speaker;
    cues.push(...parts.map((part) => ({ ...part, speaker })));
  }
  if (kind === "txt") return cues.map((cue) => cue.text + "\n").join("");
  const mark = kind === "srt" ? "," : ".";
  const blocks = cues.map((cue, at) => {
    const end = Math.max(cue.start + 0.8, cue.end);
    const until = cues[at + 1] ? Math.min(end, cues[at + 1].start) : end;
    const times = `${clock(cue.start, mark)} --> ${clock(Math.max(until, cue.start + 0.1), mark)}`;
    const text = kind === "vtt" ? (cue.speaker ? `<v ${escaped(cue.speaker)}>` : "") + escaped(cue.text) : cue.text;
    return kind === "srt" ? `${at + 1}\n${times}\n${text}\n` : `${times}\n${text}\n`;
  });
  return (kind === "vtt" ? "WEBVTT\n\n" : "") + blocks.join("\n");
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function clock(seconds, mark) {
  const ms = Math.round(seconds * 1000);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  return `${two(ms / 3600000)}:${two((ms / 60000) % 60)}:${two((ms / 1000) % 60)}${mark}${String(ms % 1000).padStart(3, "0")}`;
}

// A sentence as cues: a long text is cut between words into pieces of about the same length, each with its part of the time.
function divided(text, { start, end }) {
  const total = columns(text);
  const count = Math.ceil(total / (0.9 * CUE_COLUMNS)); // pieces are not quite of the same length
  const cues = [];
  let [done, piece] = [0, ""];
  const finish = () => {
    const until = done + columns(piece);
    const at = (column) => start + ((end - start) * column) / total;
    cues.push({ start: at(done), end: at(until), text: piece.trim() });
    [done, piece] = [until, ""];
  };
  for (const word of words(text)) {
    const middle = done + columns(piece) + columns(word) / 2;
    if (piece && middle > ((cues.length + 1) * total) / count) finish();
    piece += word;
  }
  finish();
  return cues;
}

// The words of a text, with the punctuation and spaces after them.
function words(text) {
  if (!Intl.Segmenter) return [text];
  const found = [];
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) {
    if (isWordLike || !found.length) found.push(segment);
    else found[found.length - 1] += segment;
  }
  return found;
}

function columns(text) {
  let count = 0;
  for (const point of text) count += WIDE.test(point) ? 2 : 1;
  return count;
}
