"""The translation model that a configuration names: found or fetched, loaded, its languages checked."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import PipelineConfig
from pipeline.nmt.compiled import find_translation_model
from pipeline.nmt.model import MarianModel


def load_translation_model(config: PipelineConfig, directory: Path | None = None) -> MarianModel:
    """Load the translation model alone, and check that it does the configured languages; blocks.

    It is loaded from ``directory``, or found first by ``find_translation_model``.

    Raises:
        ModelError: the directory is incomplete or damaged.
        DownloadError: not in the cache, and it cannot be fetched.
        UsageError: the model does not do this pair of languages.
    """
    nmt = config.nmt
    model = MarianModel.load(
        directory or find_translation_model(nmt),
        suffix=nmt.file_suffix,
        beams=nmt.beam_size,
        max_tokens=nmt.max_tokens,
        no_repeat_ngram=nmt.no_repeat_ngram,
        time_limit_s=nmt.time_limit_s,
        cached_sentences=nmt.cached_sentences,
        threads=nmt.threads,
    )
    model.check_languages(config.languages.source, config.languages.target)
    return model
