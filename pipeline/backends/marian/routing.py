"""Where the models of a language pair are decided: what a configuration says, or the table of pairs."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ...errors import UsageError
from ...languages import known_language, language_tag
from ..nmt_options import NmtConfig

AUTO = "auto"
"""Model name in a configuration that means: look up the languages in the table."""
_TARGET_CODE = re.compile(r">>([^<>]+)<<")
LanguagePair = tuple[str, str]
"""(source, target)."""


def language_code(language: str) -> str:
    """Return the table's code for a language: two letters if it has such a code, without script and region."""
    return language_tag(language).language


def resolve(pair: LanguagePair, nmt: NmtConfig, *, one_of_several: bool = False) -> NmtConfig:
    """``nmt`` with the models that translate a pair of languages: its own, or those of the table if it says "auto".

    ``one_of_several``: its model may be for another one of several pairs; then the table has that of this one.
    """
    asks_table = nmt.model == AUTO or (one_of_several and not _is_for(nmt, pair))
    return looked_up(pair, nmt) if asks_table and not nmt.plugged_in else nmt


def looked_up(pair: LanguagePair, nmt: NmtConfig) -> NmtConfig:
    """``nmt`` with the one or two models that the table has for a pair."""
    from .pairs import route  # most configurations name their models

    first, *second = (step.repository for step in route(*pair, nmt.via))
    suffix = nmt.file_suffix if nmt.model == AUTO else ""
    return dataclasses.replace(
        nmt, model=first, revision=None, second=second[0] if second else None, second_revision=None, file_suffix=suffix
    )


def _is_for(nmt: NmtConfig, pair: LanguagePair) -> bool:
    """Whether the names of a model, or its files, say that it translates the pair."""
    from ...store import PREFIX

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
