"""Compare what two revisions made of the same inputs. Pure: results in, changes and a table out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher

from sacrebleu import corpus_chrf

from pipeline.bench.texts import NOTABLE_CHRF, is_lost_question
from pipeline.bench.words import edits, scored_units

COLUMNS = ("", "texts", "changed", "better", "worse", "chrF", "wrong", "lost ?", "CPU s", "MB", "lines")


@dataclass(frozen=True)
class Item:
    """A text that a revision made: a translation with its source, or a subtitle."""

    id: str
    """Where it is from. Items with the same words before a colon are parts of one text, and are scored as a whole."""
    source: str
    text: str
    reference: str = ""
    """A known translation."""
    said: str = ""
    """The known words of speech; then ``source`` is what was recognised."""


@dataclass(frozen=True)
class InputSet:
    """What a revision made of a set of inputs, and what that took."""

    items: Sequence[Item] = ()
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    lines: int = 0
    """Lines of the package's modules that were loaded."""
    failed: str = ""
    """Why there is no result."""


Result = dict[str, InputSet]
"""Name of a set → its result. A name ends with the languages, as in ``names en→pt``."""
Change = tuple[Item | None, Item | None]
"""An old and a new item; None: there is none in its place."""


def as_json(result: Result) -> str:
    return json.dumps({name: asdict(one) for name, one in result.items()}, ensure_ascii=False, indent=1)


def from_json(text: str) -> Result:
    return {
        name: InputSet(**{**one, "items": [Item(**item) for item in one["items"]]})
        for name, one in json.loads(text).items()
    }


def changes(old: Sequence[Item], new: Sequence[Item]) -> list[Change]:
    """The items whose text or source differs. A sentence or subtitle more does not change those after it."""
    keys = [[(item.source, item.text) for item in items] for items in (old, new)]
    found: list[Change] = []
    for kind, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if kind != "equal":
            length = max(b - a, d - c)
            before, after = ([*items, *[None] * (length - len(items))] for items in (old[a:b], new[c:d]))
            found += zip(before, after, strict=True)
    return found


def chrf(items: Iterable[Item]) -> float | None:
    """Of the corpus; None without references."""
    pairs = _whole((item.id, item.text, item.reference) for item in items)
    return corpus_chrf([ours for ours, _ in pairs], [[theirs for _, theirs in pairs]]).score if pairs else None


def words_wrong(items: Iterable[Item], language: str) -> float | None:
    """The word error rate of what was recognised; None without speech whose words are known."""
    pairs = [
        [scored_units(text, language) for text in pair]
        for pair in _whole((item.id, item.source, item.said) for item in items)
    ]
    return sum(edits(said, heard) for heard, said in pairs) / sum(len(said) for _, said in pairs) if pairs else None


def _whole(parts: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """The texts and what they should be, of those where that is known."""
    texts: dict[str, tuple[list[str], list[str]]] = {}
    for place, ours, theirs in parts:
        for some, text in zip(texts.setdefault(place.partition(":")[0], ([], [])), (ours, theirs), strict=True):
            some.append(text)
    pairs = [(" ".join(ours), " ".join(theirs).strip()) for ours, theirs in texts.values()]
    return [pair for pair in pairs if pair[1]]


def as_text(old: Result, new: Result, names: tuple[str, str]) -> str:
    """All changes, each once, and the table. ``names``: of the revisions."""
    places: dict[tuple[object, ...], tuple[Change, list[str]]] = {}
    rows = [COLUMNS]
    notes = []
    for name in dict.fromkeys([*old, *new]):
        pair = old.get(name, InputSet(failed="not run")), new.get(name, InputSet(failed="not run"))
        for one, revision in zip(pair, names, strict=True):
            notes += [f"{name}: failed in {revision}: {one.failed}"] if one.failed else []
        compared = [] if any(one.failed for one in pair) else changes(pair[0].items, pair[1].items)
        for change in compared:
            key = tuple((item.source, item.text) if item else None for item in change)
            places.setdefault(key, (change, []))[1].append(f"{name}, {(change[1] or change[0]).id}")  # type: ignore[union-attr]
        rows.append(row(name, *pair, compared))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    shown = [_shown(change, where) for change, where in places.values()]
    title = f"{names[0]} → {names[1]}: {len(places) or 'no'} text{'' if len(places) == 1 else 's'} changed"
    return "\n\n".join([*shown, title, "\n".join(table), *notes, _LEGEND])


_LEGEND = (
    f"better, worse: by more than {NOTABLE_CHRF:g} chrF; wrong: word error rate of transcripts; lost ?: questions without a "
    "question mark or, in English, with the order of a statement; lines: of the modules that were loaded"
)


def row(name: str, old: InputSet, new: InputSet, compared: Sequence[Change]) -> tuple[str, ...]:
    """The cells of a set."""
    languages = name.rpartition(" ")[2].partition("→")
    gains = [_gain(change) for change in compared]

    def both(what: list[float | None], form: str = "{:,.0f}") -> str:
        old_cell, new_cell = (
            "–" if value is None or one.failed else form.format(value)
            for value, one in zip(what, (old, new), strict=True)
        )
        return old_cell if old_cell == new_cell else f"{old_cell} → {new_cell}"

    return (
        name,
        both([len(old.items), len(new.items)]),
        str(len(compared)) if not old.failed and not new.failed else "–",
        str(sum(gain > NOTABLE_CHRF for gain in gains)),
        str(sum(gain < -NOTABLE_CHRF for gain in gains)),
        both([chrf(old.items), chrf(new.items)], "{:.1f}"),
        both([words_wrong(one.items, languages[0]) for one in (old, new)], "{:.1%}"),
        both([sum(is_lost_question(item.source, item.text, languages[2]) for item in one.items) for one in (old, new)]),
        both([old.cpu_s, new.cpu_s], "{:.1f}"),
        both([old.peak_mb, new.peak_mb]),
        both([old.lines, new.lines]),
    )


def _gain(change: Change) -> float:
    """How much better the new text is, in chrF; 0 where there is no reference, or another one."""
    old, new = change
    if old is None or new is None or old.reference != new.reference:
        return 0.0
    return (chrf([new]) or 0.0) - (chrf([old]) or 0.0)


def _shown(change: Change, where: Sequence[str]) -> str:
    """A change with its old and new text, one above the other."""
    old, new = change
    gain = _gain(change)
    lines = [("; ".join(where) + (f"  (chrF {gain:+.0f})" if gain else ""))]
    parts = [("old", old.text if old else "(none)"), ("new", new.text if new else "(none)")]
    if old and new and old.source == new.source:
        parts.insert(0, ("source", new.source))
    else:
        parts = [
            ("old source", old.source if old else ""), parts[0], ("new source", new.source if new else ""), parts[1]
        ]  # fmt: skip
    parts.append(("reference", (new or old).reference))  # type: ignore[union-attr]
    lines += [f"  {label:10}  " + text.replace("\n", "\n" + " " * 14) for label, text in parts if text]
    return "\n".join(lines)
