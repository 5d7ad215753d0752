"""Which hub repositories translate which pair of languages: the table in pairs.tsv, and routes of one or two models."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.languages import language_tag

AUTO = "auto"
"""A model's name in a configuration that stands for what the table has for its languages."""
NO_VIA = "none"
"""A language to go through that forbids to go through one."""
_TABLE = Path(__file__).with_name("pairs.tsv")
_NAMES = {"en": "English"}
# Languages that the table has under one code, sh; its model into it has a code for each, and for each script.
_TOGETHER = {"bs": "sh", "hr": "sh", "sr": "sh"}


@dataclass(frozen=True)
class Pair:
    """One row of the table."""

    source: str
    target: str
    repository: str
    """A hub id."""
    layout: str
    """"merged" or "split"; see ``pipeline.nmt.layout.Kind``."""
    precision: str
    """Of the weights that are fetched to be compiled."""
    megabytes: int | None
    """Of all graphs and settings in that precision; None where that is not known."""
    licence: str
    note: str = ""
    """What a user should know of its translations, where that is not what one expects."""


@functools.cache
def all_pairs() -> tuple[Pair, ...]:
    """The table, ordered by source and target, the preferred row of a pair first."""
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return tuple(
        Pair(
            row["source"],
            row["target"],
            row["repository"],
            row["layout"],
            row["precision"],
            int(row["mb"]) if row["mb"] else None,
            row["licence"],
            row["note"],
        )
        for row in csv.DictReader(lines, delimiter="\t")
    )


def language_code(language: str) -> str:
    """The code that the table uses: two letters where a language has such, without script and region."""
    return language_tag(language).language


def direct(source: str, target: str) -> Pair | None:
    """The preferred model that translates ``source`` into ``target``, if the table has one."""
    first, last = language_code(source), language_code(target)
    rows = [pair for pair in all_pairs() if pair.source == first and pair.target in (last, _TOGETHER.get(last))]
    return min(rows, key=lambda pair: pair.target != last, default=None)


def route(source: str, target: str, via: str = "en") -> tuple[Pair, ...]:
    """The models that lead from ``source`` to ``target``: one, or two in a row through ``via``; "none" forbids two.

    Raises:
        UsageError: the table has neither.
    """
    if (pair := direct(source, target)) is not None:
        return (pair,)
    if via != NO_VIA:
        first, second = direct(source, via), direct(via, target)
        if first is not None and second is not None:
            return first, second
    raise UsageError(_not_covered(source, target, via))


def described(pairs: tuple[Pair, ...]) -> str:
    """One line that says which models a route takes."""
    source, target = pairs[0].source, pairs[-1].target
    models = ", then ".join(f"{pair.repository} ({pair.note})" if pair.note else pair.repository for pair in pairs)
    if len(pairs) == 1:
        return f"{source} → {target}: {models}"
    via = _NAMES.get(pairs[0].target, pairs[0].target)
    return f"{source} → {target}: no direct model; in two steps through {via}: {models}"


def _not_covered(source: str, target: str, via: str) -> str:
    source, target = language_code(source), language_code(target)
    targets = sorted({pair.target for pair in all_pairs() if pair.source == source})
    sources = sorted({pair.source for pair in all_pairs() if pair.target == target})
    through = f"and two steps are forbidden (via = {NO_VIA!r})" if via == NO_VIA else f"nor two through {via!r}"
    return (
        f"no model is known that translates from {source!r} into {target!r}, {through}; known are from {source!r} into "
        f"{', '.join(targets) or 'nothing'}, and into {target!r} from {', '.join(sources) or 'nothing'}. Choose another "
        "language with --source, --target or --via (python -m pipeline.models list --pairs shows all), or give a model "
        "with --nmt"
    )
