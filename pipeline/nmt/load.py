"""The translation model that a configuration names: found or fetched, loaded, its languages checked."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import NmtConfig, PipelineConfig
from pipeline.hub import FileSet, resolve_model
from pipeline.nmt.model import MarianModel

_FILES = ("source.spm", "target.spm", "vocab.json", "config.json")
_OPTIONAL_FILES = ("target_vocab.json", "generation_config.json", "tokenizer_config.json")


def find_translation_model(config: NmtConfig) -> Path:
    """The directory of the configured translation model, fetched if it is not in the cache.

    Raises:
        ModelError, DownloadError: see ``resolve_model``.
    """
    return resolve_model(config.model, config.revision, *translation_files(config))


def translation_files(config: NmtConfig) -> tuple[FileSet, ...]:
    """What of a hub repository is needed."""
    graphs = (f"onnx/encoder_model{config.file_suffix}.onnx", f"onnx/decoder_model_merged{config.file_suffix}.onnx")
    return (FileSet((*_FILES, *graphs), _OPTIONAL_FILES),)


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
