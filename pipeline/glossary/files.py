"""Glossary files: TSV and CSV, checked. docs/glossary.md describes them."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, UsageError
from ..languages import normalized_code, same_language
from ..names import escaped
from .table import DELIMITERS, DELIMITERS_OF, Head, TableError, read_head, rows
from .terms import Glossary, Term

KEPT = "="
"""In the target column of a TSV file: the term keeps its spelling."""
MOST_TERMS = 5_000
MOST_BYTES = 1 << 20
_LONGEST = 100  # characters of a form: longer text is no term
_MOST_NAMED = 20  # mistakes in one message
_BETWEEN_VARIANTS = "|"
_LINE = re.compile(r"line (\d+):")


class _TermError(TableError):
    """What is wrong with one term."""


@dataclass(frozen=True)
class _Entry:
    """A term and where the file has it, such as "line 3"."""

    place: str
    term: Term


def load_glossary(path: Path) -> Glossary:
    """Read a glossary file: TSV or CSV, in UTF-8 or, with a byte order mark, UTF-16."""
    suffix = path.suffix.lower()
    if suffix == ".toml":
        raise ConfigError(f"the glossary {path} is TOML; give a table with a term a row instead, as TSV or CSV")
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the glossary {path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"the glossary {path} has more than {MOST_BYTES >> 20} MiB; give a list of terms")
    utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"the glossary {path} is not {'UTF-16' if utf16 else 'UTF-8'}: line {line}; save it as UTF-8, out of a "
            "spreadsheet as CSV in UTF-8"
        ) from None
    return parse_glossary(text, str(path), delimiters=DELIMITERS_OF.get(suffix, DELIMITERS))


def parse_glossary(text: str, name: str, *, delimiters: str = DELIMITERS, most_terms: int = MOST_TERMS) -> Glossary:
    """The glossary in the text of a table. ``name`` appears in errors; ``delimiters``: see ``rows``."""
    mistakes: list[str] = []
    languages, entries = _read_table(text.removeprefix("\ufeff"), delimiters, mistakes)
    terms = _unique(entries, mistakes)
    if len(terms) > most_terms:
        mistakes.append(f"{len(terms)} terms; {most_terms} are allowed")
    if mistakes:
        mistakes.sort(key=lambda mistake: int(found[1]) if (found := _LINE.match(mistake)) else 0)
        more = len(mistakes) - _MOST_NAMED
        shown = [*mistakes[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
        raise ConfigError(f"the glossary {name} has mistakes: {'; '.join(shown)}")
    return Glossary(terms, languages)


def _read_table(text: str, delimiters: str, mistakes: list[str]) -> tuple[tuple[str, str] | None, list[_Entry]]:
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
            entries.append(_Entry(f"line {line}", _row(head.values(cells))))
        except TableError as mistake:
            mistakes.append(f"line {line}: {mistake}")
    return languages, entries


def _row(values: dict[str, str]) -> Term:
    if "target" not in values:
        raise _TermError(f"no translation; write it in the next column, or {KEPT} to keep the spelling")
    case = values.get("case", "")
    if case not in ("", "any", "exact"):
        raise _TermError(f"the case rule is {_shown(case)}; it must be exact, any or empty")
    target = values["target"]
    return _checked(
        values["source"],
        None if target == KEPT else target,
        _variants(values.get("variants", "")),
        _variants(values.get("target_variants", "")),
        exact_case=case == "exact",
    )


def _variants(cell: str) -> tuple[str, ...]:
    return tuple(form.strip() for form in cell.split(_BETWEEN_VARIANTS)) if cell else ()


def _checked(
    source: str, target: str | None, variants: tuple[str, ...], target_variants: tuple[str, ...], *, exact_case: bool
) -> Term:
    """The term with normalised forms (NFC, single blanks)."""
    forms = [_form(form, exact_case=exact_case) for form in (source, *variants)]
    if target is not None and not target.strip():
        raise _TermError(f"{_shown(source)} has an empty translation; write one, or keep its spelling with {KEPT}")
    targets = [_written(form) for form in (*([] if target is None else [target]), *target_variants)]
    others = tuple(dict.fromkeys(form for form in forms[1:] if form != forms[0]))
    if target is None:
        return Term(forms[0], None, others, tuple(targets), exact_case)
    return Term(forms[0], targets[0], others, tuple(dict.fromkeys(targets[1:])), exact_case)


def _form(form: str, *, exact_case: bool) -> str:
    """A form of the spoken language, which is looked for in text."""
    form = _written(form)
    if len(form) == 1 and not (exact_case and form.isascii()):
        raise _TermError(
            f"{_shown(form)} is one letter, which other text has everywhere; write out the term, or make a Latin "
            "letter's case rule exact"
        )
    return form


def _written(form: str) -> str:
    form = " ".join(unicodedata.normalize("NFC", form).split())
    if not any(character.isalnum() for character in form):
        raise _TermError(f"{_shown(form)} has no letters or digits" if form else "an empty term")
    if len(form) > _LONGEST:
        raise _TermError(f"{_shown(form[:20])}… has {len(form)} characters; a term has {_LONGEST} at most")
    if form != escaped(form):
        raise _TermError(f"{_shown(form)} has control or invisible characters; remove them")
    return form


def _languages(value: tuple[str, str]) -> tuple[str, str]:
    try:
        source, target = map(normalized_code, value)
    except UsageError as error:
        raise _TermError(str(error)) from None
    if same_language(source, target):
        raise _TermError(f"the languages are {source} and {target}; they must be two different ones")
    return source, target


def _unique(entries: Sequence[_Entry], mistakes: list[str]) -> tuple[Term, ...]:
    """The terms, each once. A form of two terms with different translations is a mistake."""
    owners: dict[str, _Entry] = {}
    found: list[Term] = []
    for entry in entries:
        known = [owners.get(_key(form, entry.term)) for form in entry.term.sources]
        clash = next(
            (other for other in known if other is not None and other.term.targets[0] != entry.term.targets[0]), None
        )
        if clash is not None:
            mistakes.append(
                f"{entry.place}: {_shown(entry.term.source)} is translated as {_shown(entry.term.targets[0])} and, in "
                f"{clash.place}, as {_shown(clash.term.targets[0])}; keep one, and make the other a target variant"
            )
        if known[0] is None:
            found.append(entry.term)
        for form in entry.term.sources:
            owners.setdefault(_key(form, entry.term), entry)
    return tuple(found)


def _key(form: str, term: Term) -> str:
    return form if term.exact_case else form.casefold()


def _shown(text: str) -> str:
    return f'"{escaped(text)}"'
