"""Streaming speech translation: the names that an embedding app imports.

``SpeechTranslator`` is the whole chain; ``NmtStage`` with a ``MarianModel`` is the translation stage alone. Modules are
imported on first use of a name, so that an app that only translates text does not load a speech recogniser.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if sys.version_info < (3, 11):  # noqa: UP036 (from a clone, where pip has not looked at requires-python)
    raise ImportError(
        f"{__name__} {__version__} needs Python 3.11 or newer, but this is {sys.version.split()[0]}; "
        "make a virtual environment with a newer one, such as python3.12 -m venv .venv"
    )

# ONNX Runtime 1.29 and later sends usage telemetry with a machine id, unless this is set before it is imported. A host
# app that wants telemetry sets the variable itself.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from .asr.recognizer import PartialText, RecognitionOptions, RecognitionStream, Recognizer, StreamingRecognizer
    from .captions.changes import Changes, States
    from .captions.states import TextChangeError
    from .config import PipelineConfig, load_config
    from .errors import PipelineError, StageError
    from .events import (
        AudioLost,
        Delta,
        DeviceBack,
        DeviceLost,
        EndOfInput,
        LoadChanged,
        Notice,
        Paused,
        PipelineEvent,
        Resumed,
        SourceDelta,
        SourceSentence,
        SourceText,
        SpeechSegment,
        TargetText,
        Transcript,
        Translation,
        TranslationLost,
    )
    from .loading import Models, load_models
    from .nmt.load import load_translation_model
    from .nmt.model import MarianModel
    from .nmt.stage import NmtStage
    from .nmt.translator import TextTranslator
    from .run.stats import PipelineStats
    from .stages import standard_stages, with_stage
    from .translator import SpeechTranslator

_MODULES = {
    "asr.recognizer": "PartialText RecognitionOptions RecognitionStream Recognizer StreamingRecognizer",
    "captions.changes": "Changes States",
    "captions.states": "TextChangeError",
    "config": "PipelineConfig load_config",
    "errors": "PipelineError StageError",
    "events": "AudioLost Delta DeviceBack DeviceLost EndOfInput LoadChanged Notice Paused PipelineEvent Resumed "
    "SourceDelta SourceSentence SourceText SpeechSegment TargetText Transcript Translation TranslationLost",
    "loading": "Models load_models",
    "nmt.load": "load_translation_model",
    "nmt.model": "MarianModel",
    "nmt.stage": "NmtStage",
    "nmt.translator": "TextTranslator",
    "run.stats": "PipelineStats",
    "stages": "standard_stages with_stage",
    "translator": "SpeechTranslator",
}
"""Module → the public names that it defines."""

__all__ = [
    "AudioLost",
    "Changes",
    "Delta",
    "DeviceBack",
    "DeviceLost",
    "EndOfInput",
    "LoadChanged",
    "MarianModel",
    "Models",
    "NmtStage",
    "Notice",
    "PartialText",
    "Paused",
    "PipelineConfig",
    "PipelineError",
    "PipelineEvent",
    "PipelineStats",
    "RecognitionOptions",
    "RecognitionStream",
    "Recognizer",
    "Resumed",
    "SourceDelta",
    "SourceSentence",
    "SourceText",
    "SpeechSegment",
    "SpeechTranslator",
    "StageError",
    "States",
    "StreamingRecognizer",
    "TargetText",
    "TextChangeError",
    "TextTranslator",
    "Transcript",
    "Translation",
    "TranslationLost",
    "load_config",
    "load_models",
    "load_translation_model",
    "standard_stages",
    "with_stage",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
