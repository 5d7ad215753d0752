"""Marian models as ONNX files with a tokenizer and settings in JSON, as transformers has them."""

from __future__ import annotations

from pathlib import Path

from ....languages import known_language, language_tag
from ...nmt_options import NmtConfig
from .decoders import load_decoder
from .layout import find_layout
from .parts import ModelParts
from .settings import (
    check_separate_vocabulary,
    check_vocabulary,
    decoding_settings,
    generation_options,
    integer,
    read_json,
)
from .tokenizer import MarianTokenizer


def load(directory: Path, options: NmtConfig) -> ModelParts:
    """The parts of a model. Whatever is in the directory is taken for files of this family.

    Raises:
        ModelError: a file is missing, damaged, or inconsistent with the others.
    """
    layout = find_layout(directory, options.file_suffix)
    tokenizer = MarianTokenizer.load(directory)
    config = read_json(directory / "config.json", required=True)
    settings = decoding_settings(config, read_json(directory / "generation_config.json", required=False))
    names = read_json(directory / "tokenizer_config.json", required=False)
    check_separate_vocabulary(names, directory)
    check_vocabulary(layout.vocabulary, tokenizer, directory)
    positions = max(2, integer(config, "max_position_embeddings", 512, directory))
    generation = generation_options(settings, tokenizer, options, positions, directory)
    decoder = load_decoder(layout, options.threads)
    scores = decoder.check([tokenizer.end_token], generation.start_token, generation.end_token)
    check_vocabulary(scores, tokenizer, directory)
    source, target = names.get("source_lang"), names.get("target_lang")
    languages = known_language(source), known_language(target)
    scripts = _script_of(source), _script_of(target)
    return ModelParts(tokenizer, decoder, generation, languages, positions, scripts)


def _script_of(code: object) -> str | None:
    return language_tag(code).script if isinstance(code, str) else None
