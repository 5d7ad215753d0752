"""Choice of the translation models for a language pair, written into a configuration."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from pipeline.config import PipelineConfig, load_config
from pipeline.languages import language_tag, two_letters
from pipeline.nmt.pairs import AUTO, Pair, language_code, route
from pipeline.resources import named_configs

_TARGET_CODE = re.compile(r">>([^<>]+)<<")


def routed(config: PipelineConfig) -> tuple[PipelineConfig, tuple[Pair, ...]]:
    """Return ``config`` with the one or two models that the table has for its languages, and their table rows.

    If a bundled configuration pins a model to a revision, the same revision is used here.

    Raises:
        UsageError: the table has no route from the source to the target language.
    """
    pairs = route(config.languages.source, config.languages.target, config.nmt.via)
    models = [pair.repository for pair in pairs]
    pinned = {bundled.model: bundled.revision for bundled in (load_config(name).nmt for name in named_configs())}
    second = models[1] if len(models) > 1 else None
    nmt = dataclasses.replace(
        config.nmt,
        model=models[0],
        revision=pinned.get(models[0]),
        second=second,
        second_revision=pinned.get(second) if second else None,
        file_suffix=config.nmt.file_suffix if config.nmt.model == AUTO else "",
    )
    return dataclasses.replace(config, nmt=nmt), pairs


def resolved(config: PipelineConfig) -> PipelineConfig:
    """Return ``config``; if its model is "auto", replace it with the models from the table.

    Raises:
        UsageError: see ``routed``.
    """
    return routed(config)[0] if config.nmt.model == AUTO else config


def needs_route(configured: PipelineConfig, asked: PipelineConfig) -> bool:
    """Whether models have to be looked up for ``asked``: ``configured`` with possibly changed languages."""
    if asked.nmt.model == AUTO:
        return True
    same_pair = _pair(asked) == _pair(configured)
    if asked.nmt.second is not None:
        return not same_pair or asked.nmt.via != configured.nmt.via
    return not same_pair and not _is_directory_for_pair(asked)


def _pair(config: PipelineConfig) -> tuple[str, str]:
    return language_code(config.languages.source), language_code(config.languages.target)


def _is_directory_for_pair(config: PipelineConfig) -> bool:
    """Whether the model is a directory whose files do not name a different language pair."""
    model = config.nmt.model
    return os.path.isdir(model) and _supports_pair(Path(model), *_pair(config))


def _supports_pair(directory: Path, source: str, target: str) -> bool:
    from pipeline.nmt.settings import read_json  # slow: imports ONNX Runtime

    names = read_json(directory / "tokenizer_config.json", required=False)
    if two_letters(names.get("source_lang")) not in (None, source):
        return False
    vocabulary = read_json(directory / "vocab.json", required=False)
    codes = [match.group(1) for token in vocabulary if (match := _TARGET_CODE.fullmatch(token))]
    if codes:
        return any(target in (code, language_tag(code).language) for code in codes)
    return two_letters(names.get("target_lang")) in (None, target)
