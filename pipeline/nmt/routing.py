"""Choice of the translation models for a language pair, written into the options of the stage."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.languages import known_language, language_tag
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.pairs import AUTO, Pair, language_code, route

_TARGET_CODE = re.compile(r">>([^<>]+)<<")
LanguagePair = tuple[str, str]
"""(source, target)."""


def routed(
    source: str, target: str, nmt: NmtConfig, pinned: Mapping[str, str | None]
) -> tuple[NmtConfig, tuple[Pair, ...]]:
    """Return ``nmt`` with the one or two models that the table has for the languages, and their table rows.

    Args:
        pinned: model → the revision at which it is used, if it has one.

    Raises:
        UsageError: the table has no route from the source to the target language.
    """
    pairs = route(source, target, nmt.via)
    models = [pair.repository for pair in pairs]
    second = models[1] if len(models) > 1 else None
    found = dataclasses.replace(
        nmt,
        model=models[0],
        revision=pinned.get(models[0]),
        second=second,
        second_revision=pinned.get(second) if second else None,
        file_suffix=nmt.file_suffix if nmt.model == AUTO else "",
    )
    return found, pairs


def resolved(source: str, target: str, nmt: NmtConfig, pinned: Mapping[str, str | None]) -> NmtConfig:
    """Return ``nmt``; if its model is "auto", replace it with the models from the table.

    Raises:
        UsageError: see ``routed``.
    """
    return routed(source, target, nmt, pinned)[0] if nmt.model == AUTO else nmt


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
    if nmt.model == AUTO or len({_codes(pair) for pair in pairs}) < 2:
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
    from pipeline.nmt.settings import read_json  # slow: imports ONNX Runtime

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
