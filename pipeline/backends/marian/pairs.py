"""The table of language pairs (pairs.tsv), and routes of one model or two."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...languages import language_tag
from ...store import PREFIX, cached_student, is_student, known_translator, model_from_packages

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
    """"recurrent" (a student), "merged" or "split"; see ``pipeline.backends.marian.decode.layout.Kind``."""
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


def licence_of(model: str) -> str | None:
    """The licence of a model of the table."""
    return next((pair.licence for pair in all_pairs() if pair.repository == model), None)


def _code(language: str) -> str:
    return language_tag(language).language


def direct(source: str, target: str) -> Pair | None:
    """Return the preferred model that translates ``source`` into ``target``, if the table has one."""
    first, last = _code(source), _code(target)
    rows = [pair for pair in all_pairs() if pair.source == first and pair.target in (last, _COMMON_CODES.get(last))]
    return min(rows, key=lambda pair: pair.target != last, default=None)


def route(source: str, target: str, via: str = "en") -> tuple[Pair, ...]:
    """Return the route from ``source`` to ``target``: one direct model, or two models through the language ``via``.

    Students of Firefox Translations come first, two of them also before another direct model.
    ``via`` = "none" forbids two models.
    """
    pair = direct(source, target)
    pivoting = via != NO_VIA and not (pair is not None and pair.is_student)
    first, second = (direct(source, via), direct(via, target)) if pivoting else (None, None)
    if first is not None and second is not None and (pair is None or (first.is_student and second.is_student)):
        return first, second
    if pair is not None:
        return (pair,)
    raise UsageError(_no_route_message(source, target, via))


@functools.cache
def student_routes(via: str = "en") -> Mapping[tuple[str, str], tuple[Pair, ...]]:
    """The routes of students alone, of which ``route`` takes the same: one of them, or two through ``via``."""
    students = {(pair.source, pair.target): pair for pair in reversed(all_pairs()) if pair.is_student}
    into = [pair for pair in students.values() if pair.target == via]
    out_of = [pair for pair in students.values() if pair.source == via]
    steps = [(first, second) for first in into for second in out_of if first.source != second.target]
    pivoting = {(first.source, second.target): (first, second) for first, second in steps}
    return pivoting | {languages: (pair,) for languages, pair in students.items()}


def route_line(pairs: tuple[Pair, ...]) -> str:
    """Describe the models of a route in one line."""
    source, target = pairs[0].source, pairs[-1].target
    models = ", then ".join(weights(pair.repository, pair.note) for pair in pairs)
    if len(pairs) == 1:
        return f"{source} → {target}: {models}"
    via = _NAMES.get(pairs[0].target, pairs[0].target)
    return f"{source} → {target}: no direct model; in two steps through {via}: {models}"


def weights(model: str, note: str = "") -> str:
    """The model that runs for a name, with ``note`` or what else is known: of a student, the smaller one of an installed
    package until it is fetched."""
    known = known_translator(model)
    if known is None and is_student(model) and cached_student(model) is None:
        smaller = known_translator(f"{model}-tiny")
        known = smaller if smaller is not None and model_from_packages(smaller) is not None else None
    if known is not None:
        model, note = known.hub_id, known.note
    return f"{model} ({note})" if note else model


def _no_route_message(source: str, target: str, via: str) -> str:
    source, target = _code(source), _code(target)
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
