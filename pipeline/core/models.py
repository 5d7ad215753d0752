"""What a run is given: its options and its models. Nothing here is loaded by the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..languages import LanguageConfig
from .asr.recognizer import DraftRecognizer, Recognizer, StreamingRecognizer
from .nmt.translator import TextTranslator
from .run.options import (
    CaptionOptions,
    DraftOptions,
    GlossaryOptions,
    QueueConfig,
    SentenceOptions,
    SoundOptions,
    SpeakerOptions,
)
from .run.overload import OverloadOptions
from .vad.gate import FrameDetector
from .vad.options import VadConfig

if TYPE_CHECKING:
    from .stages import StageSpec
    from .vad.sounds import SoundDetector

AddSpeakers = Callable[[Sequence["StageSpec"], SpeakerOptions], list["StageSpec"]]
"""(stages of one run, options) → these and the stages that tell its voices apart."""


@dataclass(frozen=True)
class Models:
    """Loaded models. Several translators may share them."""

    recognizer: Recognizer | StreamingRecognizer
    translations: Mapping[str, TextTranslator]
    """Target language → its translator."""
    drafter: DraftRecognizer | None = None
    """A smaller recogniser for drafts, if one is configured."""
    voices: AddSpeakers | None = None
    """Tells voices apart, if that is configured."""
    sounds: SoundDetector | None = None
    """Hears music and singing, if that is configured."""


class RunConfig(Protocol):
    """The options of a run, and the loaders of what they name; ``PipelineConfig`` has them."""

    @property
    def languages(self) -> LanguageConfig: ...
    @property
    def vad(self) -> VadConfig: ...
    @property
    def drafts(self) -> DraftOptions: ...
    @property
    def sentences(self) -> SentenceOptions: ...
    @property
    def queues(self) -> QueueConfig: ...
    @property
    def overload(self) -> OverloadOptions: ...
    @property
    def glossary(self) -> GlossaryOptions: ...
    @property
    def captions(self) -> CaptionOptions: ...
    @property
    def speakers(self) -> SpeakerOptions: ...
    @property
    def sounds(self) -> SoundOptions: ...
    @property
    def has_drafts(self) -> bool:
        """Whether speech in progress is recognised in live runs."""
        ...

    def load_models(self) -> Models:
        """The models of a run that is given none. Blocks. Raises PipelineError: see ``load_models`` of the package."""
        ...

    def speech_detector(self) -> FrameDetector:
        """The detector of one stream. Blocks. Raises ModelError: its model cannot be loaded."""
        ...
