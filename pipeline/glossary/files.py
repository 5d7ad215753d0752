"""Glossary files: TSV and CSV, checked. docs/glossary.md describes them."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError, UsageError
from ..languages import normalized_code, same_language
from ..names import escaped
from .table import DELIMITERS, DELIMITERS_OF, Head, TableError, read_head, rows
from .terms import Glossary, Term

KEPT = "="
"""The mark in the target column of a TSV file for a term that keeps its spelling."""
MOST_TERMS = 5_000
MOST_BYTES = 1 << 20
_LONGEST = 100  # characters of a form: longer text is no term
_MOST_NAMED = 20  # mistakes in one message
_BETWEEN_VARIANTS = "|"


Mistake = tuple[int, str]
"""The line, 0 for the whole file, and what is wrong there."""
_Entry = tuple[int, Term]
"""A term and its line."""


def load_glossary(path: Path) -> Glossary:
    """Read a glossary file: TSV or CSV, in UTF-8 or, with a byte order mark, UTF-16."""
    suffix = path.suffix.lower()
    if suffix == ".toml":
        raise ConfigError(f"the glossary {path} is TOML; give a table with a term a row instead, as TSV or CSV")
    text = read_text(path, "glossary")
    return parse_glossary(text, str(path), delimiters=DELIMITERS_OF.get(suffix, DELIMITERS))


def read_text(path: Path, what: str) -> str:
    """The text of a file with terms. ``what`` it is appears in errors, which are ConfigErrors."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"the {what} {path} has more than {MOST_BYTES >> 20} MiB; give a list of terms")
    utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"the {what} {path} is not {'UTF-16' if utf16 else 'UTF-8'}: line {line}; save it as UTF-8, out of a "
            "spreadsheet as CSV in UTF-8"
        ) from None


def parse_glossary(text: str, name: str, *, delimiters: str = DELIMITERS, most_terms: int = MOST_TERMS) -> Glossary:
    """The glossary in the text of a table. ``name`` appears in errors; ``delimiters``: see ``rows``."""
    mistakes: list[Mistake] = []
    languages, entries = _read_table(text.removeprefix("\ufeff"), delimiters, mistakes)
    terms = _unique(entries, mistakes)
    if len(terms) > most_terms:
        mistakes.append((0, f"{len(terms)} terms; {most_terms} are allowed"))
    check_mistakes(f"glossary {name}", mistakes)
    return Glossary(terms, languages)


def check_mistakes(name: str, mistakes: Sequence[Mistake]) -> None:
    """Raise a ConfigError that names the mistakes of a file, if it has any."""
    if mistakes:
        named = [f"line {line}: {said}" if line else said for line, said in sorted(mistakes, key=lambda each: each[0])]
        more = len(mistakes) - _MOST_NAMED
        shown = [*named[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
        raise ConfigError(f"the {name} has mistakes: {'; '.join(shown)}")


def _read_table(text: str, delimiters: str, mistakes: list[Mistake]) -> tuple[tuple[str, str] | None, list[_Entry]]:
    """The languages and terms of a table."""
    head: Head | None = None
    languages: tuple[str, str] | None = None
    entries: list[_Entry] = []
    for line, cells in rows(text, delimiters):
        try:
            if isinstance(cells, TableError):
                raise cells
            if head is None:
                head, given = Head(), read_head(cells)
                if given is not None:
                    head = given
                    languages = _languages(given.languages) if given.languages is not None else None
                    continue
            entries.append((line, _row(head.values(cells))))
        except TableError as mistake:
            mistakes.append((line, str(mistake)))
    return languages, entries


def _row(values: dict[str, str]) -> Term:
    """The term of a row, its forms normalised (NFC, single blanks)."""
    source, target = values["source"], values.get("target")
    if target is None:
        raise TableError(f"no translation; write it in the next column, or {KEPT} to keep the spelling")
    case = values.get("case", "")
    if case not in ("", "any", "exact"):
        raise TableError(f"the case rule is {_shown(case)}; it must be exact, any or empty")
    exact_case = case == "exact"
    first, *others = [_form(form, exact_case=exact_case) for form in (source, *_variants(values, "variants"))]
    if not target:
        raise TableError(f"{_shown(source)} has an empty translation; write one, or keep its spelling with {KEPT}")
    others = [form for form in dict.fromkeys(others) if form != first]
    target_variants = _variants(values, "target_variants")
    if target == KEPT:
        return Term(first, None, tuple(others), tuple(map(normalized_form, target_variants)), exact_case)
    preferred, *more = map(normalized_form, (target, *target_variants))
    return Term(first, preferred, tuple(others), tuple(dict.fromkeys(more)), exact_case)


def _variants(values: dict[str, str], column: str) -> list[str]:
    cell = values.get(column)
    return [form.strip() for form in cell.split(_BETWEEN_VARIANTS)] if cell else []


def _form(form: str, *, exact_case: bool) -> str:
    """A form of the spoken language, which is looked for in text."""
    form = normalized_form(form)
    if len(form) == 1 and not (exact_case and form.isascii()):
        raise TableError(
            f"{_shown(form)} is one letter, which other text has everywhere; write out the term, or make a Latin "
            "letter's case rule exact"
        )
    return form


def normalized_form(form: str) -> str:
    """A form, normalised (NFC, single blanks).

    Raises:
        TableError: it cannot be one.
    """
    if len(form) <= 4 * _LONGEST:  # a letter may be written as several characters, which are one when normalised
        form = " ".join(unicodedata.normalize("NFC", form).split())
    if len(form) > _LONGEST:
        raise TableError(f"{_shown(form)} has {len(form)} characters; a term has {_LONGEST} at most")
    if not any(character.isalnum() for character in form):
        raise TableError(f"{_shown(form)} has no letters or digits" if form else "an empty term")
    if form != escaped(form):
        raise TableError(f"{_shown(form)} has control or invisible characters; remove them")
    return form


def _languages(value: tuple[str, str]) -> tuple[str, str]:
    try:
        source, target = map(normalized_code, value)
    except UsageError as error:
        raise TableError(str(error)) from None
    if same_language(source, target):
        raise TableError(f"the languages are {source} and {target}; they must be two different ones")
    return source, target


def _unique(entries: Sequence[_Entry], mistakes: list[Mistake]) -> tuple[Term, ...]:
    """The terms, each once. A form of two terms with different translations is a mistake."""
    owners: dict[str, _Entry] = {}
    unique: list[Term] = []
    for line, term in entries:
        earlier = [owners.get(_key(form, term)) for form in term.sources]
        clash = next((other for other in earlier if other is not None and other[1].targets[0] != term.targets[0]), None)
        if clash is not None:
            mistakes.append((
                line, f"{_shown(term.source)} is translated as {_shown(term.targets[0])} and, in line {clash[0]}, as "
                f"{_shown(clash[1].targets[0])}; keep one, and make the other a target variant",
            ))  # fmt: skip
        if earlier[0] is None:
            unique.append(term)
        for form in term.sources:
            owners.setdefault(_key(form, term), (line, term))
    return tuple(unique)


def _key(form: str, term: Term) -> str:
    return form if term.exact_case else form.casefold()


def _shown(text: str) -> str:
    return f'"{escaped(text)}"' if len(text) <= _LONGEST else f'"{escaped(text[:20])}"…'
