"""What the ASR stage needs of a recogniser, and of one that recognises speech in progress; see ``WhisperRecognizer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from pipeline.asr.context import Heard
from pipeline.asr.options import AsrConfig
from pipeline.events import Samples, SpeechSegment, Transcript


class DraftRefusedError(Exception):
    """Others need the recogniser more. Nothing was recognised; ask again with more speech."""


@runtime_checkable
class Waits(Protocol):
    """A recogniser of drafts that others use too."""

    @property
    def waited_s(self) -> float:
        """Seconds that the newest draft waited for others before it was computed."""


class Recognizer(Protocol):
    """Recognises segments that have ended or pause.

    Its calls come one after another, on a thread of the stage's own, so they may block. A transcript has the id and times of
    its segment. Those that are not to be translated are ``rejected``.

    Raises:
        PipelineError: from any method; the run ends.
        Exception: any other costs the segment, which is "failed" then. Three in a row end the run.
    """

    @property
    def config(self) -> AsrConfig:
        """The stage reads ``beam_size``, the most hypotheses that it asks for."""
        ...

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None) -> Transcript:
        """Recognise one segment.

        Args:
            beam_size: number of hypotheses to keep, while behind; None: as configured.
            before: the language of the last segment, if several may be spoken.
        """
        ...

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]:
        """Recognise consecutive segments together; return a transcript for each. Called for recordings, and while behind."""
        ...

    def transcribe_after(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        beam_size: int | None = None,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript:
        """Recognise ``segment`` after the segments of ``context`` and their text, oldest first. It may be ignored.

        Args:
            language: the language spoken, if it is known.
        """
        ...


@runtime_checkable
class PackRecognizer(Protocol):
    """Recognises several windows of speech at once; see ``WhisperRecognizer``."""

    def transcribe_packs(
        self, packs: Sequence[Sequence[SpeechSegment]], beam_size: int | None = None
    ) -> list[list[Transcript]]: ...


@runtime_checkable
class LanguageDetector(Protocol):
    """Tells the languages that may be spoken apart."""

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """The probability of each of them in ``samples`` [n]; their sum is 1. Empty if it is unknown."""
        ...


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
