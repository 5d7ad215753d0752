"""The translation model that a configuration names: found or fetched, loaded, its languages checked."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import NmtConfig, PipelineConfig
from pipeline.hub import resolve_model
from pipeline.nmt.model import MarianModel

_FILES = (
    "source.spm",
    "target.spm",
    "vocab.json",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
)


def find_translation_model(config: NmtConfig) -> Path:
    """The directory of the configured translation model, fetched if it is not in the cache.

    Raises:
        ModelError, DownloadError: see ``resolve_model``.
    """
    graphs = (f"onnx/encoder_model{config.file_suffix}.onnx", f"onnx/decoder_model_merged{config.file_suffix}.onnx")
    return resolve_model(config.model, config.revision, (*_FILES, *graphs))


def load_translation_model(config: PipelineConfig) -> MarianModel:
    """Load the translation model alone, and check that it does the configured languages; blocks.

    Raises:
        ModelError: the directory is incomplete or damaged.
        DownloadError: not in the cache, and it cannot be fetched.
        UsageError: the model does not do this pair of languages.
    """
    nmt = config.nmt
    directory = find_translation_model(nmt)
    model = MarianModel.load(directory, suffix=nmt.file_suffix, max_tokens=nmt.max_tokens, threads=nmt.threads)
    model.check_languages(config.languages.source, config.languages.target)
    return model
