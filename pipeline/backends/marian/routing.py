"""Where the models of a language pair are decided: the table of pairs (pairs.tsv), routes, and what a configuration says."""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...languages import known_language, language_tag
from ...store import PREFIX, cached_student, is_student, known_translator, model_from_packages
from ..nmt_options import NmtConfig

AUTO = "auto"
"""Model name in a configuration that means: look up the languages in the table."""
NO_VIA = "none"
"""Value of ``via`` that forbids routes of two models."""
_TABLE = Path(__file__).with_name("pairs.tsv")
_NAMES = {"en": "English"}
# Languages that the table lists under the common code sh. The model into sh has a target code for each of them and for
# each script.
_COMMON_CODES = {"bs": "sh", "hr": "sh", "sr": "sh"}
_TARGET_CODE = re.compile(r">>([^<>]+)<<")
LanguagePair = tuple[str, str]
"""(source, target)."""


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
def student_routes(via: str = "en") -> Mapping[LanguagePair, tuple[Pair, ...]]:
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


def resolve(pair: LanguagePair, nmt: NmtConfig, *, one_of_several: bool = False) -> NmtConfig:
    """``nmt`` with the models that translate a pair of languages: its own, or those of the table if it says "auto".

    ``one_of_several``: its model may be for another one of several pairs; then the table has that of this one.
    """
    asks_table = nmt.model == AUTO or (one_of_several and not _is_for(nmt, pair))
    return looked_up(pair, nmt) if asks_table and not nmt.plugged_in else nmt


def looked_up(pair: LanguagePair, nmt: NmtConfig) -> NmtConfig:
    """``nmt`` with the one or two models that the table has for a pair."""
    first, *second = (step.repository for step in route(*pair, nmt.via))
    suffix = nmt.file_suffix if nmt.model == AUTO else ""
    return dataclasses.replace(
        nmt, model=first, revision=None, second=second[0] if second else None, second_revision=None, file_suffix=suffix
    )


def _is_for(nmt: NmtConfig, pair: LanguagePair) -> bool:
    """Whether the names of a model, or its files, say that it translates the pair."""
    code = "-".join(_codes(pair))
    return nmt.second is None and (names_pair(nmt.model, pair) or nmt.model in (PREFIX + code, f"{PREFIX}{code}-tiny"))


def is_same_pair(one: LanguagePair, other: LanguagePair) -> bool:
    """Whether two pairs name the same languages; scripts and regions may differ."""
    return _codes(one) == _codes(other)


def may_translate(model: str, pair: LanguagePair) -> bool:
    """Whether a model is a directory whose files do not name a different language pair."""
    return os.path.isdir(model) and _translates(Path(model), _codes(pair), unnamed=True)


def names_pair(model: str, pair: LanguagePair) -> bool:
    """Whether a model is a directory whose files name the target and do not name another source."""
    return os.path.isdir(model) and _translates(Path(model), _codes(pair), unnamed=False)


def translates_all(nmt: NmtConfig, pairs: Sequence[LanguagePair]) -> bool:
    """Whether one choice of models may serve several language pairs.

    It may if the pairs differ only in script or region, if the model is "auto", or if the (second) model is a directory
    whose files name all the targets.
    """
    if nmt.plugged_in or nmt.model == AUTO or len({_codes(pair) for pair in pairs}) < 2:
        return True
    if nmt.second is None:
        return all(names_pair(nmt.model, pair) for pair in pairs)
    return len({source for source, _ in pairs}) == 1 and all(
        names_pair(nmt.second, (nmt.via, target)) for _, target in pairs
    )


def check_shared(nmt: NmtConfig, pairs: Sequence[LanguagePair]) -> None:
    """Raise UsageError if the targets that share the model of [nmt] need more than one model."""
    if translates_all(nmt, pairs):
        return
    targets = [target for _, target in pairs]
    sections = " and ".join(f"[nmt.{target}] model = …" for target in targets)
    raise UsageError(
        f"{nmt.second or nmt.model} is the only translation model for the targets {' and '.join(targets)}, and it is not "
        f"the directory of a model that translates into all of them; name one for each, with {sections}, or write "
        '[nmt] model = "auto" to look them up in the table of pairs'
    )


def _codes(pair: LanguagePair) -> LanguagePair:
    return language_code(pair[0]), language_code(pair[1])


def _translates(directory: Path, pair: LanguagePair, *, unnamed: bool) -> bool:
    """Whether the files of a model fit a language pair. ``unnamed``: the result if they name no target."""
    from .decode.settings import read_json  # slow: imports ONNX Runtime

    source, target = pair
    names = read_json(directory / "tokenizer_config.json", required=False)
    if known_language(names.get("source_lang")) not in (None, source):
        return False
    vocabulary = read_json(directory / "vocab.json", required=False)
    codes = [match.group(1) for token in vocabulary if (match := _TARGET_CODE.fullmatch(token))]
    if codes:
        return any(target in (code, language_tag(code).language) for code in codes)
    named = known_language(names.get("target_lang"))
    return unnamed if named is None else named == target
