"""The translation model that a configuration names: found or fetched, loaded, its languages checked."""

from __future__ import annotations

from pipeline.config import PipelineConfig
from pipeline.hub import resolve_model
from pipeline.nmt.model import MarianModel


def load_translation_model(config: PipelineConfig) -> MarianModel:
    """Load the translation model alone, and check that it does the configured languages; blocks.

    Raises:
        ModelError: the directory is incomplete or damaged.
        DownloadError: not in the cache, and it cannot be fetched.
        UsageError: the model does not do this pair of languages.
    """
    nmt = config.nmt
    files = ["source.spm", "target.spm", "vocab.json", "config.json", "generation_config.json", "tokenizer_config.json"]
    graphs = [f"onnx/encoder_model{nmt.file_suffix}.onnx", f"onnx/decoder_model_merged{nmt.file_suffix}.onnx"]
    directory = resolve_model(nmt.model, nmt.revision, files + graphs)
    model = MarianModel.load(directory, suffix=nmt.file_suffix, max_tokens=nmt.max_tokens, threads=nmt.threads)
    model.check_languages(config.languages.source, config.languages.target)
    return model
