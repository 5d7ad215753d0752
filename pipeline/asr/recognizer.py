"""What the ASR stage needs of a recogniser, and of one that recognises speech in progress; see ``WhisperRecognizer``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pipeline.asr.context import Heard
from pipeline.asr.options import AsrConfig
from pipeline.events import SpeechSegment, Transcript


class DraftRefusedError(Exception):
    """Others need the recogniser more. Nothing was recognised; ask again with more speech."""


@runtime_checkable
class Waits(Protocol):
    """A recogniser of drafts that others use too."""

    @property
    def waited_s(self) -> float:
        """Seconds that the newest draft waited for others before it was computed."""


class Recognizer(Protocol):
    """Recognises segments that have ended or pause."""

    @property
    def config(self) -> AsrConfig: ...

    def transcribe(
        self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None
    ) -> Transcript: ...

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]: ...

    def transcribe_after(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        beam_size: int | None = None,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript: ...


@runtime_checkable
class PackRecognizer(Protocol):
    """Recognises several windows of speech at once; see ``WhisperRecognizer``."""

    def transcribe_packs(
        self, packs: Sequence[Sequence[SpeechSegment]], beam_size: int | None = None
    ) -> list[list[Transcript]]: ...


@runtime_checkable
class DraftRecognizer(Protocol):
    """Recognises a segment in progress. ``draft`` may raise ``DraftRefusedError``."""

    def draft(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript | None: ...
