"""Whisper on CTranslate2, with faster-whisper's features and tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..asr_options import AsrConfig
from .files import find_recognizer as find_model
from .files import model_ref
from .recognizer import WhisperRecognizer

__all__ = ["WhisperRecognizer", "find_model", "load_model", "model_ref"]


def load_model(
    config: AsrConfig, languages: Sequence[str], directory: Path, sharing: WhisperRecognizer | None, several_calls: bool
) -> WhisperRecognizer:
    """Load the model of a folder. All languages share it."""
    if sharing is None:
        return WhisperRecognizer(config, languages, directory, several_calls=several_calls)
    weights = sharing.engine.weights
    return WhisperRecognizer(config, languages, weights.directory, weights=weights)
