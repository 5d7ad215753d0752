"""The models of a chain, fetched where they are missing, and loaded."""

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
    """Fetch what is not in the cache, one model after the other, then load them at the same time; blocks.

    Raises:
        ModelError, DownloadError, UsageError: see the adapters.
    """
    config = resolved(config)  # a pair that no model is known for is said before anything is fetched
    if config.vad.detector != "webrtc":
        load_silero()  # a few ms; every stream uses the same
    speech, text = find_recognizer(config.asr), find_translation_models(config)
    with ThreadPoolExecutor(2) as pool:
        recognizer = pool.submit(WhisperRecognizer, config.asr, config.languages.source, speech)
        translation = pool.submit(load_translation_model, config, *text)
        return Models(recognizer.result(), translation.result())
