// Divides a text into subtitles of two lines, by the rules of pipeline/media/subtitles.

// The defaults of pipeline/media/subtitles/rules.py; full-width characters take two columns.
const MOST_LINES = 2;
const COLUMNS = { other: 42, chinese: 32, japanese: 26 };
const A_SECOND = { other: 17, chinese: 9, japanese: 4 };
const LONGEST_MS = 7000;
// The costs of pipeline/media/subtitles/lines.py and text.py.
const [CUE_BREAK_WEIGHT, CUE_COST, LINE_COST, RAGGED_COST, TOO_WIDE_COST] = [2, 4, 0.3, 3, 8];
const [CLAUSE, PHRASE, WORD, SHORT_WORD, INSIDE] = [0.15, 0.3, 1, 1.5, 2.5];

export const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
const KANA = /[\u3041-\u30ff]/;
const NARROW = /[\p{M}\p{Cf}]/u; // take no column
const AMBIGUOUS = /[“”‘’…—–·‰℃°]/; // take two in Chinese and Japanese
const THAI = /[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]/; // and Lao, Burmese and Khmer, where blanks part phrases
const UNSPACED = /[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40]/;
const CLOSING = /^[，。、；：？！）》」』】〕〉｝］”’…·—～．,.;:?!)\]}%»›‰％℃°ー々،؛؟۔।॥ๆฯໆຯ។៕៖ៗ၊။]/;
const OPENING = /[（《「『【〔〈｛［“‘([{«‹¿¡$€£¥￥＄#＃] ?$/;
const SENTENCE_END = /[.!?。！？…؟۔।॥។៕။]$/;
const CLAUSE_END = /[,;:，；：、—)）》」』】”’»،؛៖၊]$/;

function script(text) {
  const letters = text.match(/[\p{L}\p{N}]/gu) ?? [];
  const isWide = letters.length && 8 * letters.filter((each) => WIDE.test(each)).length >= letters.length;
  return !isWide ? "other" : KANA.test(text) ? "japanese" : "chinese";
}

function columns(text, kind) {
  let count = 0;
  for (const point of text) count += NARROW.test(point) ? 0 : WIDE.test(point) || (kind !== "other" && AMBIGUOUS.test(point)) ? 2 : 1;
  return count;
}

// How long it takes to read a text.
export function readingMs(text) {
  const kind = script(text);
  const full = A_SECOND[kind === "other" ? "chinese" : kind];
  let seconds = 0;
  for (const point of text) seconds += columns(point, kind) === 2 ? 1 / full : columns(point, kind) / A_SECOND.other;
  return Math.round(1000 * seconds);
}

// The lines of each subtitle of a text that takes so long to say.
export function layout(text, spokenMs = 0) {
  const kind = script(text);
  const limit = COLUMNS[kind];
  const widest = spokenMs > LONGEST_MS ? Math.max(limit / 2, (columns(text, kind) * LONGEST_MS) / spokenMs) : Infinity;
  return cheapest(pieces(text, kind, limit), limit, widest);
}

// Text without a break in it, each with its columns, those of the blank at its end, and the cost of a break after it.
function pieces(text, kind, limit) {
  const found = [];
  for (const atom of atoms(text)) {
    const parts = columns(atom.trimEnd(), kind) <= limit ? [atom] : cut(atom, kind, limit);
    for (const [at, part] of parts.entries()) {
      const width = columns(part, kind);
      const cost = at < parts.length - 1 ? INSIDE : breakCost(atom);
      found.push({ text: part, width, trailing: width - columns(part.trimEnd(), kind), cost });
    }
  }
  return found;
}

// Where a line may end: at blanks, and between the words of a script that has none.
function atoms(text) {
  const words = Intl.Segmenter ? [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)].map(({ segment }) => segment) : text.match(/ |[^ ]+/g);
  const found = [];
  let atom = "";
  for (const word of words) {
    if (atom && mayBreak(atom, word)) {
      found.push(atom);
      atom = "";
    }
    atom += word;
  }
  return [...found, atom];
}

function mayBreak(before, after) {
  if (after === " " || CLOSING.test(after) || OPENING.test(before)) return false;
  if (before.endsWith(" ")) return !/\d $/.test(before) || !/^\d/.test(after);
  return UNSPACED.test([...before].at(-1)) || UNSPACED.test([...after][0]);
}

function breakCost(atom) {
  const before = atom.trimEnd();
  if (SENTENCE_END.test(before)) return 0;
  if (CLAUSE_END.test(before)) return CLAUSE;
  if (before === atom) return WORD;
  return THAI.test(before.at(-1)) ? PHRASE : /^\p{L}{1,3}$/u.test(before) ? SHORT_WORD : WORD;
}

// A word that is wider than a line.
function cut(word, kind, limit) {
  const parts = [""];
  for (const point of word) {
    if (parts.at(-1) && columns(parts.at(-1) + point, kind) > limit && !NARROW.test(point)) parts.push("");
    parts[parts.length - 1] += point;
  }
  return parts;
}

function cheapest(all, limit, widest) {
  const upto = [0];
  for (const { width } of all) upto.push(upto.at(-1) + width);
  const span = (i, j) => upto[j] - upto[i] - all[j - 1].trailing;

  // The lowest cost of the pieces i to j in so many lines, and where the last line begins.
  function split(i, j, lines) {
    const width = span(i, j);
    if (width <= limit) return [0, i];
    let best = [Infinity, i];
    if (lines === 1 || width > limit * lines + 2 * lines) return best;
    for (let k = j - 1; k > i; k--) {
      const last = span(k, j);
      if (last > limit) break;
      const ragged = (Math.abs(last - width / lines) / limit) * RAGGED_COST;
      const cost = split(i, k, lines - 1)[0] + ragged + all[k - 1].cost + LINE_COST;
      if (cost < best[0]) best = [cost, k];
    }
    return best;
  }

  function cueCost(i, j) {
    const tooWide = j - i > 1 ? Math.max(0, span(i, j) / widest - 1) * TOO_WIDE_COST : 0;
    return CUE_COST + split(i, j, MOST_LINES)[0] + tooWide + CUE_BREAK_WEIGHT * (j < all.length ? all[j - 1].cost : 0);
  }

  const best = [[0, 0]]; // of the first j pieces: the lowest cost, and where the last subtitle begins
  for (let j = 1; j <= all.length; j++) {
    best[j] = [Infinity, 0];
    for (let i = j - 1; i >= 0; i--) {
      const cost = cueCost(i, j);
      if (cost === Infinity) break;
      if (best[i][0] + cost < best[j][0]) best[j] = [best[i][0] + cost, i];
    }
  }
  const found = [];
  for (let j = all.length; j > 0; j = best[j][1]) found.unshift(linesOf(best[j][1], j));
  return found;

  function linesOf(i, j) {
    const lines = [];
    for (let left = MOST_LINES; j > i; left--) {
      const k = split(i, j, left)[1];
      lines.unshift(all.slice(k, j).map(({ text }) => text).join("").trimEnd());
      j = k;
    }
    return lines;
  }
}
