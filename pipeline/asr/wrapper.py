"""Base classes of recognisers that pass calls on to another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeAlias

from pipeline.asr.context import Heard
from pipeline.asr.options import AsrConfig
from pipeline.asr.recognizer import LanguageDetector, PackRecognizer, Recognizer
from pipeline.asr.terms import HeardTerms, with_terms
from pipeline.events import Samples, SpeechSegment, Transcript

Windows: TypeAlias = Sequence[Sequence[SpeechSegment]]
"""Windows of speech, each of consecutive segments."""
Recognise: TypeAlias = Callable[[Windows], list[list[Transcript]]]
"""Returns the transcripts of each window."""


class RecognizerWrapper:
    """Passes the calls of a ``Recognizer`` on to another one, for one stream. Subclasses override ``_recognised``."""

    def __init__(self, recognizer: Recognizer) -> None:
        self._recognizer = recognizer

    @property
    def config(self) -> AsrConfig:
        return self._recognizer.config

    def with_terms(self, terms: HeardTerms) -> Self:
        self._recognizer = with_terms(self._recognizer, terms)
        return self

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None) -> Transcript:
        return self._one(segment, lambda: self._recognizer.transcribe(segment, beam_size, before))

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]:
        (found,) = self._recognised(
            [segments], lambda _: [self._recognizer.transcribe_packed(segments, beam_size, before)]
        )
        return found

    def transcribe_after(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        beam_size: int | None = None,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript:
        return self._one(
            segment, lambda: self._recognizer.transcribe_after(context, segment, beam_size, before, language)
        )

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """See ``LanguageDetector``."""
        return self._recognizer.detect(samples) if isinstance(self._recognizer, LanguageDetector) else {}

    def _one(self, segment: SpeechSegment, recognise: Callable[[], Transcript]) -> Transcript:
        ((found,),) = self._recognised([[segment]], lambda _: [[recognise()]])
        return found

    def _recognised(self, windows: Windows, recognise: Recognise) -> list[list[Transcript]]:
        """The transcripts of each window, which has at least one segment.

        Args:
            recognise: passes the call on, for as many of ``windows`` as are given, at least one.
        """
        return recognise(windows)


class PacksWrapper(RecognizerWrapper):
    """Also passes on several windows at once, or one after another to a recogniser that is not a ``PackRecognizer``."""

    def transcribe_packs(self, packs: Windows, beam_size: int | None = None) -> list[list[Transcript]]:
        recognizer = self._recognizer
        if isinstance(recognizer, PackRecognizer):
            return self._recognised(packs, lambda windows: recognizer.transcribe_packs(windows, beam_size))
        return [
            self.transcribe_packed(pack, beam_size) if len(pack) > 1 else [self.transcribe(pack[0], beam_size)]
            for pack in packs
        ]

    @staticmethod
    def _with_others(
        windows: Windows, known: Sequence[Sequence[Transcript]], recognise: Recognise
    ) -> list[list[Transcript]]:
        """``known``, and the transcripts of the windows that have none there, from ``recognise``."""
        others = [window for window, of_window in zip(windows, known, strict=True) if not of_window]
        found = iter(recognise(others) if others else ())
        return [list(of_window) or next(found) for of_window in known]
