// Subtitles for download, by the rules of the files that the program writes; see pipeline/media/subtitles/cues.py.

import { layout, readingMs, WIDE } from "./layout.js";
import { textFor } from "./texts.js";

// The defaults of pipeline/media/subtitles/rules.py.
const [SHORTEST_MS, LONGEST_MS, GAP_MS, LINGER_MS] = [833, 7000, 83, 2000];
const LONG_PAUSE_MS = 2000; // no subtitle spans it
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// The finished text for readers of a language, or what was said for "".
export function subtitles(texts, language, kind) {
  const sentences = [];
  let before;
  for (const sentence of texts.shown()) {
    const found = language ? textFor(sentence, language) : sentence.source;
    const text = found?.done ? found.text.replace(/ +/g, " ").trim() : "";
    if (!text) continue;
    const { speaker, start, end, pause } = sentence;
    const name = kind !== "vtt" && speaker && speaker !== before ? speaker + (WIDE.test(text) ? "：" : ": ") : "";
    before = speaker;
    sentences.push({ text: name + text, speaker, pause, start: 1000 * start, end: 1000 * Math.max(start, end) });
  }
  if (kind === "txt") return sentences.map(({ text }) => text + "\n").join("");
  const mark = kind === "srt" ? "," : ".";
  const blocks = cues(sentences).map(({ start, end, lines, speaker }, at) => {
    const times = `${clock(start, mark)} --> ${clock(end, mark)}`;
    if (kind === "srt") return `${at + 1}\n${times}\n${directed(lines).map(plain).join("\n")}\n`;
    return `${times}\n${speaker ? `<v ${escaped(speaker)}>` : ""}${escaped(directed(lines).join("\n"))}\n`;
  });
  return (kind === "vtt" ? "WEBVTT\n\n" : "") + blocks.join("\n");
}

// A short sentence waits for the next one, to share a subtitle, if no pause follows it or the subtitles are late.
function cues(sentences) {
  const found = [];
  let waiting = null;
  for (let sentence of sentences) {
    if (waiting) {
      const both = { ...waiting, text: joined(waiting.text, sentence.text), end: Math.max(waiting.end, sentence.end), pause: sentence.pause };
      const near = sentence.start - waiting.end < LONG_PAUSE_MS && sentence.speaker === waiting.speaker;
      if (near && both.end - both.start <= LONGEST_MS && layout(both.text).length === 1) sentence = both;
      else show(found, waiting);
      waiting = null;
    }
    const late = next(found) - sentence.start > LINGER_MS;
    if (sentence.end - sentence.start < SHORTEST_MS && (late || !sentence.pause)) waiting = sentence;
    else show(found, sentence);
  }
  if (waiting) show(found, waiting);
  return found;
}

// When the next subtitle may begin.
function next(cues) {
  return cues.length ? cues.at(-1).end + GAP_MS : 0;
}

// The subtitles of a sentence share its time by what each takes to read.
function show(cues, { text, speaker, start, end }) {
  const blocks = layout(text, end - start).map((lines) => ({ lines, needs: readingMs(lines.join("")) }));
  const total = Math.max(1, blocks.reduce((sum, { needs }) => sum + needs, 0));
  let read = 0;
  for (const [n, { lines, needs }] of blocks.entries()) {
    const isLast = n + 1 === blocks.length;
    const said = Math.round(start + ((end - start) * read) / total);
    read += needs;
    const over = isLast ? Math.round(end) : Math.round(start + ((end - start) * read) / total);
    const begin = Math.max(said, next(cues));
    const until = Math.min(Math.max(over - (isLast ? 0 : GAP_MS), begin + needs), over + LINGER_MS);
    cues.push({ start: begin, end: Math.min(Math.max(until, begin + SHORTEST_MS), begin + LONGEST_MS), lines, speaker });
  }
}

function joined(one, two) {
  return one + (WIDE.test(one) && WIDE.test(two) ? "" : " ") + two;
}

// Lines with the marks that give each the direction of them all: see pipeline/media/subtitles/bidi.py.
function directed(lines) {
  const letters = lines.join("").match(/\p{L}/gu) ?? [];
  const right = letters.filter((each) => RIGHT_TO_LEFT.test(each)).length;
  if (!right) return lines;
  const isRight = (RIGHT_TO_LEFT.test(letters[0]) ? 8 : 3) * right >= letters.length;
  return lines.map((line) => {
    const first = line.match(/\p{L}/u)?.[0];
    const fits = first !== undefined && RIGHT_TO_LEFT.test(first) === isRight;
    return isRight ? `\u202b${fits ? "" : "\u200f"}${line}\u202c` : `${fits ? "" : "\u200e"}${line}`;
  });
}

// A line of SubRip, which has no escapes: see pipeline/media/subtitles/escapes.py.
function plain(line) {
  const text = line.replaceAll("{", "｛").replaceAll("}", "｝").replace(/<|\\|&(?=#?\w+;)/g, "$&\u2060");
  return text.replace(/--(?=>)|\d:\d\d?:\d\d?[.,](?=\d)/g, "$&\u2060") + (/^\d+$/.test(text) ? "\u2060" : "");
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function clock(ms, mark) {
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  return `${two(ms / 3600000)}:${two((ms / 60000) % 60)}:${two((ms / 1000) % 60)}${mark}${String(ms % 1000).padStart(3, "0")}`;
}
