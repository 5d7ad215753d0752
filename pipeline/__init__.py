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
    from .asr.options import AsrConfig as AsrConfig
    from .asr.recognizer import PartialText as PartialText
    from .asr.recognizer import RecognitionOptions as RecognitionOptions
    from .asr.recognizer import RecognitionStream as RecognitionStream
    from .asr.recognizer import Recognizer as Recognizer
    from .asr.recognizer import StreamingRecognizer as StreamingRecognizer
    from .captions.changes import Changes as Changes
    from .captions.changes import Delta as Delta
    from .captions.changes import SourceDelta as SourceDelta
    from .captions.changes import States as States
    from .captions.states import TextChangeError as TextChangeError
    from .config import PipelineConfig as PipelineConfig
    from .config import QueueConfig as QueueConfig
    from .config import load_config as load_config
    from .errors import InputEndedError as InputEndedError
    from .errors import PipelineError as PipelineError
    from .errors import StageError as StageError
    from .events import Correction as Correction
    from .events import EndOfInput as EndOfInput
    from .events import PipelineEvent as PipelineEvent
    from .events import SourceSentence as SourceSentence
    from .events import SourceText as SourceText
    from .events import SpeechSegment as SpeechSegment
    from .events import TargetText as TargetText
    from .events import Transcript as Transcript
    from .events import Translation as Translation
    from .languages.options import LanguageConfig as LanguageConfig
    from .loading import Models as Models
    from .loading import load_models as load_models
    from .nmt.load import load_translation_model as load_translation_model
    from .nmt.model import MarianModel as MarianModel
    from .nmt.options import NmtConfig as NmtConfig
    from .nmt.stage import NmtStage as NmtStage
    from .nmt.translator import TextTranslator as TextTranslator
    from .nmt.translator import TranslationRequest as TranslationRequest
    from .notices import AudioLost as AudioLost
    from .notices import DeviceBack as DeviceBack
    from .notices import DeviceLost as DeviceLost
    from .notices import InputLevel as InputLevel
    from .notices import LoadChanged as LoadChanged
    from .notices import Notice as Notice
    from .notices import Paused as Paused
    from .notices import Resumed as Resumed
    from .notices import TranslationLost as TranslationLost
    from .run.options import CaptionOptions as CaptionOptions
    from .run.options import DraftOptions as DraftOptions
    from .run.options import GlossaryOptions as GlossaryOptions
    from .run.options import SentenceOptions as SentenceOptions
    from .run.options import SoundOptions as SoundOptions
    from .run.options import SpeakerOptions as SpeakerOptions
    from .run.overload import OverloadOptions as OverloadOptions
    from .run.stats import PipelineStats as PipelineStats
    from .sinks.srt import SrtSink as SrtSink
    from .sinks.vtt import VttSink as VttSink
    from .stages import standard_stages as standard_stages
    from .stages import with_stage as with_stage
    from .subtitles.rules import SubtitleRules as SubtitleRules
    from .translator import SpeechTranslator as SpeechTranslator
    from .vad.options import VadConfig as VadConfig

_MODULES = {
    "asr.options": "AsrConfig",
    "asr.recognizer": "PartialText RecognitionOptions RecognitionStream Recognizer StreamingRecognizer",
    "captions.changes": "Changes Delta SourceDelta States",
    "captions.states": "TextChangeError",
    "config": "PipelineConfig QueueConfig load_config",
    "errors": "InputEndedError PipelineError StageError",
    "events": "Correction EndOfInput PipelineEvent SourceSentence SourceText SpeechSegment TargetText Transcript Translation",
    "languages.options": "LanguageConfig",
    "loading": "Models load_models",
    "nmt.load": "load_translation_model",
    "nmt.model": "MarianModel",
    "nmt.options": "NmtConfig",
    "nmt.stage": "NmtStage",
    "nmt.translator": "TextTranslator TranslationRequest",
    "notices": "AudioLost DeviceBack DeviceLost InputLevel LoadChanged Notice Paused Resumed TranslationLost",
    "run.options": "CaptionOptions DraftOptions GlossaryOptions SentenceOptions SoundOptions SpeakerOptions",
    "run.overload": "OverloadOptions",
    "run.stats": "PipelineStats",
    "sinks.srt": "SrtSink",
    "sinks.vtt": "VttSink",
    "stages": "standard_stages with_stage",
    "subtitles.rules": "SubtitleRules",
    "translator": "SpeechTranslator",
    "vad.options": "VadConfig",
}
"""Module → the public names that it defines."""

__all__ = sorted(" ".join(_MODULES.values()).split())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
