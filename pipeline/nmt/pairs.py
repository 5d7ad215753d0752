"""The table of language pairs and their hub models (pairs.tsv), and routes of one or two models."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.languages import language_tag
from pipeline.store.firefox import PREFIX

AUTO = "auto"
"""Model name in a configuration that means: look up the languages in the table."""
NO_VIA = "none"
"""Value of ``via`` that forbids routes of two models."""
_TABLE = Path(__file__).with_name("pairs.tsv")
_NAMES = {"en": "English"}
# Languages that the table lists under the common code sh. The model into sh has a target code for each of them and for
# each script.
_COMMON_CODES = {"bs": "sh", "hr": "sh", "sr": "sh"}


@dataclass(frozen=True)
class Pair:
    """One row of the table."""

    source: str
    target: str
    repository: str
    """A hub id."""
    layout: str
    """"recurrent" (a student), "merged" or "split"; see ``pipeline.nmt.layout.Kind``."""
    precision: str
    """Precision of the weights that are downloaded for compilation."""
    megabytes: int | None
    """Size of all graphs and settings in that precision; None if unknown."""
    licence: str
    note: str = ""
    """Architecture and known quality of a student; a warning about unexpected properties of the translations."""

    @property
    def is_student(self) -> bool:
        return self.repository.startswith(PREFIX)


@functools.cache
def all_pairs() -> tuple[Pair, ...]:
    """Return the table, ordered by source and target, with the preferred row of each pair first."""
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
    """Return the table's code for a language: two letters if it has such a code, without script and region."""
    return language_tag(language).language


def direct(source: str, target: str) -> Pair | None:
    """Return the preferred model that translates ``source`` into ``target``, if the table has one."""
    first, last = language_code(source), language_code(target)
    rows = [pair for pair in all_pairs() if pair.source == first and pair.target in (last, _COMMON_CODES.get(last))]
    return min(rows, key=lambda pair: pair.target != last, default=None)


def route(source: str, target: str, via: str = "en") -> tuple[Pair, ...]:
    """Return the route from ``source`` to ``target``: one direct model, or two models through the language ``via``.

    Students of Firefox Translations come first, two of them also before another direct model.
    ``via`` = "none" forbids two models.

    Raises:
        UsageError: the table has no such route.
    """
    pair = direct(source, target)
    pivoting = via != NO_VIA and not (pair is not None and pair.is_student)
    first, second = (direct(source, via), direct(via, target)) if pivoting else (None, None)
    if first is not None and second is not None and (pair is None or (first.is_student and second.is_student)):
        return first, second
    if pair is not None:
        return (pair,)
    raise UsageError(_no_route_message(source, target, via))


def described(pairs: tuple[Pair, ...]) -> str:
    """Describe the models of a route in one line."""
    source, target = pairs[0].source, pairs[-1].target
    models = ", then ".join(f"{pair.repository} ({pair.note})" if pair.note else pair.repository for pair in pairs)
    if len(pairs) == 1:
        return f"{source} → {target}: {models}"
    via = _NAMES.get(pairs[0].target, pairs[0].target)
    return f"{source} → {target}: no direct model; in two steps through {via}: {models}"


def _no_route_message(source: str, target: str, via: str) -> str:
    source, target = language_code(source), language_code(target)
    targets = sorted({pair.target for pair in all_pairs() if pair.source == source})
    sources = sorted({pair.source for pair in all_pairs() if pair.target == target})
    through = f"and two steps are forbidden (via = {NO_VIA!r})" if via == NO_VIA else f"nor two through {via!r}"
    return (
        f"no known model translates from {source!r} into {target!r}, {through}; there are models from "
        f"{source!r} into {', '.join(targets) or 'nothing'}, and into {target!r} from "
        f"{', '.join(sources) or 'nothing'}. Choose another language with --source, --target or --via "
        f"(python -m pipeline.models list --pairs shows all), or give a model with --nmt or, in a configuration, with "
        f"[nmt.{target}] model = …"
    )
