// Terms as the text of a glossary file (TSV), and back. docs/glossary.md describes it.

import { sameLanguage } from "./languages.js";

const COLUMNS = ["source", "target", "variants", "target_variants", "case"];
const KEPT = "="; // the term keeps its spelling
export const HEADER_LINES = 1; // of what tsv() returns

// rows: cells in the order of the columns; an empty target keeps the spelling. languages: those of the first two columns, or null.
// Each row has one line, which is blank for a blank row.
export function tsv(rows, languages) {
  const header = COLUMNS.map((name, at) => (languages?.[at] ? `${name}:${languages[at]}` : name));
  const lines = rows.map((cells) => {
    const [source, target, ...rest] = cells.map((cell) => cell.replaceAll(/[\s\x1c-\x1f\x85]+/g, " ").trim());
    if (!source && !target && rest.slice(0, -1).every((cell) => !cell)) return "";
    const first = source.startsWith("#") ? ` ${source}` : source; // a line with # is a comment
    return [first, target || KEPT, ...rest].map((cell) => (cell.includes('"') ? `"${cell.replaceAll('"', '""')}"` : cell)).join("\t");
  });
  return [header.join("\t"), ...lines, ""].join("\n");
}

// The rows of a text: of a glossary file, or columns out of a spreadsheet. languages: [spoken, translated into]; a file for the
// other direction is turned round.
export function terms(text, languages) {
  let columns = COLUMNS;
  let turned = false;
  let first = true;
  const rows = [];
  for (const line of table(text)) {
    const cells = line.map((cell) => cell.trim());
    if (!cells.some(Boolean) || line[0].startsWith("# ") || cells.join("") === "#") continue;
    const names = cells.map((cell) => cell.split(":")[0].trim().toLowerCase());
    if (first && (names[0] === "source" || (names.includes("source") && names.every((name) => COLUMNS.includes(name))))) {
      columns = [...names, ...COLUMNS.filter((name) => !names.includes(name))];
      const [source, target] = ["source", "target"].map((name) => cells[names.indexOf(name)]?.split(":")[1] ?? "");
      turned = Boolean(languages[1]) && sameLanguage(source, languages[1]) && sameLanguage(target, languages[0]);
    } else {
      const row = COLUMNS.map((name) => cells[columns.indexOf(name)] ?? "");
      if (row[1] === KEPT) row[1] = "";
      rows.push(turned && row[1] ? [row[1], row[0], row[3], row[2], row[4]] : row);
    }
    first = false;
  }
  return rows;
}

// The cells of each line. A cell may be quoted, as spreadsheets write those with quotation marks, tabs and line breaks.
function table(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^\t\r\n]*))(\t|\r\n?|\n|$)/g)) {
    rows.at(-1).push(quoted?.replaceAll('""', '"') ?? plain);
    if (!end) break;
    if (end !== "\t") rows.push([]);
  }
  return rows;
}
