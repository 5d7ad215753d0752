"""Load the translation models of a configuration, downloading them if needed, and check their languages."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import PipelineConfig
from pipeline.nmt.compiled import find_translation_model
from pipeline.nmt.model import MarianModel
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.pivot import PivotTranslator
from pipeline.nmt.routing import resolved


def find_translation_models(config: PipelineConfig) -> tuple[Path, ...]:
    """Return the directories of the one or two models; see ``find_translation_model``.

    Raises:
        ModelError, DownloadError: see ``find_translation_model``.
        UsageError: the model is "auto", and no model is known for the languages.
    """
    return tuple(find_translation_model(step) for step in resolved(config).nmt.steps)


def load_translation_model(config: PipelineConfig, *directories: Path) -> MarianModel | PivotTranslator:
    """Load the one or two translation models and check that they support the configured languages. Blocks.

    ``directories`` has one directory per model; by default ``find_translation_models`` finds them.

    Raises:
        ModelError: a directory is incomplete or damaged.
        DownloadError: a model is not in the cache and cannot be downloaded.
        UsageError: a model does not support its language pair; or the model is "auto" and none is known for the pair.
    """
    config = resolved(config)
    found = directories or find_translation_models(config)
    models = [_load(step, directory) for step, directory in zip(config.nmt.steps, found, strict=True)]
    model = models[0] if len(models) == 1 else PivotTranslator(models[0], models[1], config.nmt.via)
    model.check_languages(config.languages.source, config.languages.target)
    return model


def _load(nmt: NmtConfig, directory: Path) -> MarianModel:
    return MarianModel.load(
        directory,
        suffix=nmt.file_suffix,
        beams=nmt.beam_size,
        max_tokens=nmt.max_tokens,
        max_length_factor=nmt.max_length_factor,
        no_repeat_ngram=nmt.no_repeat_ngram,
        time_limit_s=nmt.time_limit_s,
        cached_sentences=nmt.cached_sentences,
        threads=nmt.threads,
    )
