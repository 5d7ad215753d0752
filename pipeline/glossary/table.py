"""Glossaries as tables: TSV, and CSV with commas or semicolons as spreadsheets write it. Pure."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..languages import named_language
from ..names import escaped

COLUMNS = ("source", "target", "variants", "target_variants", "case")
DELIMITERS = "\t;,"
"""Delimiters to try in a text of unknown kind. A semicolon comes before a comma, which text has more often."""
DELIMITERS_OF = {".tsv": "\t", ".csv": ";,\t"}
"""Delimiters to try, by the suffix of a file."""
_MOST_COLUMNS, _LONGEST_HEAD = 50, 100
_SYNONYMS = {"term": "source", "translation": "target"}
# The head of a column, such as "source:en", "Source term" and "Target (Chinese)": its name and language.
_HEAD = re.compile(r"([^:()]+?)(?:[ _](?:terms?|text|language))?\s*(?:[:(]\s*(.*?)\s*\)?)?", re.IGNORECASE)
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel's


class TableError(Exception):
    """An error in a row of a table."""


@dataclass(frozen=True)
class Head:
    """The first row of a table that names its columns."""

    columns: tuple[str, ...] = COLUMNS
    """The name of each column, one of ``COLUMNS``; "" for a column without a name."""
    languages: tuple[str, str] | None = None
    """The languages of the columns as they are written; "" for one that is not given."""

    def values(self, cells: Sequence[str]) -> dict[str, str]:
        """The cells of a row, by column.

        Raises:
            TableError: there is text outside the columns.
        """
        used = next((n for n in range(len(cells), 0, -1) if cells[n - 1]), 0)
        if used > len(self.columns):
            raise TableError(f"{used} columns; expected {', '.join(filter(None, self.columns))}")
        for name, cell in zip(self.columns, cells, strict=False):
            if cell and not name:
                raise TableError(
                    f'"{escaped(cell[:_LONGEST_HEAD])}" is in a column without a name; name the column or empty it'
                )
        return {name: cell for name, cell in zip(self.columns, cells, strict=False) if name}


def read_head(cells: Sequence[str]) -> Head | None:
    """The head of a table in its first row; None if that is a term.

    Raises:
        TableError: a column has an unknown name, or the columns are not those of a glossary.
    """
    if len(cells) > _MOST_COLUMNS:
        return None
    columns = [_column(cell) for cell in cells]
    certain = columns[0][0] == "source"
    languages = [] if certain else [named_language(cell) for cell in cells]
    if sum(map(bool, languages)) > 1:  # "English" and "Chinese"
        certain, order = True, iter(("source", "target"))
        columns = [
            (next(order, cell), language) if language else column
            for cell, language, column in zip(cells, languages, columns, strict=True)
        ]
    names = [_SYNONYMS.get(name, name) for name, _ in columns]
    unknown = next((cell for name, cell in zip(names, cells, strict=True) if name not in ("", *COLUMNS)), None)
    if not certain and ("source" not in names or unknown is not None):
        return None
    if unknown is not None:
        raise TableError(f'unknown column "{escaped(unknown[:_LONGEST_HEAD])}"; allowed are {", ".join(COLUMNS)}')
    named = [name for name in names if name]
    if "target" not in named or len(set(named)) < len(named):
        raise TableError("the columns must be source, target and any others, each once")
    pair = columns[names.index("source")][1], columns[names.index("target")][1]
    return Head(tuple(names), pair if any(pair) else None)


def _column(cell: str) -> tuple[str, str]:
    """The name of a column and its language, which is "" if it has none."""
    match = _HEAD.fullmatch(cell) if len(cell) <= _LONGEST_HEAD else None
    name, language = match.groups("") if match else (cell, "")
    return re.sub(r"[ -]", "_", name.casefold()), (language and named_language(language)) or language


Table = list[tuple[int, list[str] | TableError]]
"""The line on which each row begins, counted from 1, and its cells or what is wrong with them."""


def rows(text: str, delimiters: str = DELIMITERS) -> Table:
    """The rows of a table, neither blank ones nor comments.

    Args:
        delimiters: those that may be between the cells. The first one with which the table has a head is taken; without a
            head, tabs if there are any and they come first, else the first one with which all rows have several cells.
    """
    lines = ["\n" if line.startswith("# ") or line.strip() == "#" else line for line in io.StringIO(text, newline="")]
    if lines and (named := _SEPARATOR.fullmatch(lines[0])):
        lines[0], delimiters = "\n", named[1]
    tables = [list(_split(lines, delimiter)) for delimiter in delimiters]
    if (table := next(filter(_has_head, tables), None)) is not None:
        return table
    if delimiters[0] == "\t" and "\t" in text:
        return tables[0]
    whole = (table for table in tables if all(isinstance(row, list) and len(row) > 1 for _, row in table))
    return next(whole, max(tables, key=lambda table: sum(len(row) for _, row in table if isinstance(row, list))))


def _split(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str] | TableError]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    for _ in itertools.count():
        line = reader.line_num + 1
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error:
            yield line, TableError('a quotation mark is not closed, or text follows it; write " inside a cell as ""')
            continue
        if any(cells):
            yield line, cells


def _has_head(table: Table) -> bool:
    first = table[0][1] if table else []
    try:
        return isinstance(first, list) and len(first) > 1 and read_head(first) is not None
    except TableError:
        return True
