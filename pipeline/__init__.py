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
    from .backends import AsrConfig as AsrConfig
    from .backends import MarianModel as MarianModel
    from .backends import NmtConfig as NmtConfig
    from .backends import TextTranslation as TextTranslation
    from .backends import load_translation_model as load_translation_model
    from .config import PipelineConfig as PipelineConfig
    from .config import load_config as load_config
    from .config import load_models as load_models
    from .core import AudioLost as AudioLost
    from .core import CaptionOptions as CaptionOptions
    from .core import Changes as Changes
    from .core import Correction as Correction
    from .core import Delta as Delta
    from .core import DeviceBack as DeviceBack
    from .core import DeviceLost as DeviceLost
    from .core import DraftOptions as DraftOptions
    from .core import EndOfInput as EndOfInput
    from .core import GlossaryOptions as GlossaryOptions
    from .core import InputLevel as InputLevel
    from .core import LoadChanged as LoadChanged
    from .core import Models as Models
    from .core import NmtStage as NmtStage
    from .core import Notice as Notice
    from .core import OverloadOptions as OverloadOptions
    from .core import PartialText as PartialText
    from .core import Paused as Paused
    from .core import PipelineEvent as PipelineEvent
    from .core import PipelineStats as PipelineStats
    from .core import QueueConfig as QueueConfig
    from .core import RecognitionOptions as RecognitionOptions
    from .core import RecognitionStream as RecognitionStream
    from .core import Recognizer as Recognizer
    from .core import Resumed as Resumed
    from .core import SentenceOptions as SentenceOptions
    from .core import SoundOptions as SoundOptions
    from .core import SourceDelta as SourceDelta
    from .core import SourceSentence as SourceSentence
    from .core import SourceText as SourceText
    from .core import SpeakerOptions as SpeakerOptions
    from .core import SpeechSegment as SpeechSegment
    from .core import SpeechTranslator as SpeechTranslator
    from .core import States as States
    from .core import StreamingRecognizer as StreamingRecognizer
    from .core import TargetText as TargetText
    from .core import TextChangeError as TextChangeError
    from .core import TextTranslator as TextTranslator
    from .core import Transcript as Transcript
    from .core import Translation as Translation
    from .core import TranslationLost as TranslationLost
    from .core import TranslationRequest as TranslationRequest
    from .core import VadConfig as VadConfig
    from .core import standard_stages as standard_stages
    from .core import with_stage as with_stage
    from .errors import InputEndedError as InputEndedError
    from .errors import PipelineError as PipelineError
    from .errors import StageError as StageError
    from .languages import LanguageConfig as LanguageConfig
    from .media import SrtSink as SrtSink
    from .media import SubtitleRules as SubtitleRules
    from .media import VttSink as VttSink

_MODULES = {
    "backends": "AsrConfig MarianModel NmtConfig TextTranslation load_translation_model",
    "config": "PipelineConfig load_config load_models",
    "core": (
        "AudioLost CaptionOptions Changes Correction Delta DeviceBack DeviceLost DraftOptions EndOfInput "
        "GlossaryOptions InputLevel LoadChanged Models NmtStage Notice OverloadOptions PartialText Paused "
        "PipelineEvent PipelineStats QueueConfig RecognitionOptions RecognitionStream Recognizer Resumed "
        "SentenceOptions SoundOptions SourceDelta SourceSentence SourceText SpeakerOptions SpeechSegment SpeechTranslator "
        "States StreamingRecognizer TargetText TextChangeError TextTranslator Transcript Translation "
        "TranslationLost TranslationRequest VadConfig standard_stages with_stage"
    ),
    "errors": "InputEndedError PipelineError StageError",
    "languages": "LanguageConfig",
    "media": "SrtSink SubtitleRules VttSink",
}
"""Room → the names of its door that are public."""

__all__ = sorted(" ".join(_MODULES.values()).split())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
