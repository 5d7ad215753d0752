"""Fetch the missing models of a chain, and load them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pipeline.asr.stage import Recognizer
from pipeline.asr.whisper import WhisperRecognizer, find_recognizer
from pipeline.config import PipelineConfig
from pipeline.nmt.load import find_translation_models, load_translation_model
from pipeline.nmt.routing import resolved
from pipeline.nmt.stage import TextTranslator
from pipeline.vad.silero import load_silero


@dataclass(frozen=True)
class Models:
    """Loaded models. Several translators may share them."""

    recognizer: Recognizer
    translation: TextTranslator


def load_models(config: PipelineConfig) -> Models:
    """Fetch models that are not in the cache, one after the other, then load all in parallel. Blocks.

    Raises:
        ModelError, DownloadError, UsageError: see ``find_recognizer`` and ``find_translation_models``.
    """
    config = resolved(config)  # fail before any download if no model is known for the language pair
    if config.vad.detector != "webrtc":
        load_silero()  # takes a few ms; all streams share the session
    speech, text = find_recognizer(config.asr), find_translation_models(config)
    with ThreadPoolExecutor(2) as pool:
        recognizer = pool.submit(WhisperRecognizer, config.asr, config.languages.source, speech)
        translation = pool.submit(load_translation_model, config, *text)
        return Models(recognizer.result(), translation.result())
