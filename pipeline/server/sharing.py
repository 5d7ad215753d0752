"""One recogniser for several sessions, whose calls take turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Self

from pipeline.asr.context import Heard
from pipeline.asr.recognizer import DraftRecognizer, DraftRefusedError, Recognizer
from pipeline.asr.terms import HeardTerms, with_terms
from pipeline.asr.wrapper import Recognise, RecognizerWrapper, Windows
from pipeline.events import SpeechSegment, Transcript
from pipeline.loading import Models
from pipeline.server.turns import Turns, Urgency

Age = Callable[[float], float | None]
"""Seconds since the audio of a stream before a time in it, in seconds, was spoken.

None while the stream is a recording that is sent faster than it plays: nobody waits for it."""


class SharedRecognizer(RecognizerWrapper):
    """A recogniser whose calls take turns: what was spoken first is recognised first."""

    def __init__(self, recognizer: Recognizer, turns: Turns, age_s: Age | None) -> None:
        """``age_s``: of the stream; None: a recording, which nobody waits for."""
        super().__init__(recognizer)
        self._turns, self._age_s = turns, age_s

    def with_terms(self, terms: HeardTerms) -> Self:
        """The same turns, with the glossary of one session."""
        return type(self)(with_terms(self._recognizer, terms), self._turns, self._age_s)

    def _recognised(self, windows: Windows, recognise: Recognise) -> list[list[Transcript]]:
        with self._turn(windows[0][0]):
            return recognise(windows)

    def _turn(self, segment: SpeechSegment) -> AbstractContextManager[None]:
        age_s = self._age_s(segment.speech_end_s) if self._age_s is not None else None
        return self._turns.turn(Urgency.RECORDING) if age_s is None else self._turns.turn(Urgency.FINAL, age_s)


class SharedDrafter:
    """A recogniser of drafts whose calls take turns. Serves one session."""

    def __init__(self, drafter: DraftRecognizer, turns: Turns, age_s: Age | None) -> None:
        """``age_s``: see ``SharedRecognizer``."""
        self._drafter, self._draft_turns, self._draft_age_s = drafter, turns, age_s
        self._drafted_s = -math.inf  # when the last draft was made
        self.waited_s = 0.0
        """See ``Waits``."""

    def with_terms(self, terms: HeardTerms) -> Self:
        """The same turns, with the glossary of one session."""
        return type(self)(with_terms(self._drafter, terms), self._draft_turns, self._draft_age_s)

    def draft(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript | None:
        """See ``DraftRecognizer``.

        Raises:
            DraftRefusedError: others need the recogniser more, or nobody waits for the stream.
        """
        if self._draft_age_s is not None and self._draft_age_s(segment.speech_end_s) is None:
            raise DraftRefusedError
        turns = self._draft_turns
        asked_s = turns.clock()
        with turns.turn(Urgency.DRAFT, asked_s - self._drafted_s):
            self.waited_s = turns.clock() - asked_s
            try:
                return self._drafter.draft(context, segment, before, language)
            finally:
                self._drafted_s = turns.clock()


class SharedDraftingRecognizer(SharedRecognizer, SharedDrafter):
    """Both in one."""

    def __init__(self, recognizer: Recognizer, turns: Turns, age_s: Age | None) -> None:
        SharedRecognizer.__init__(self, recognizer, turns, age_s)
        assert isinstance(recognizer, DraftRecognizer)
        SharedDrafter.__init__(self, recognizer, turns, age_s)


def shared(models: Models, turns: Turns, age_s: Age | None = None) -> Models:
    """The models for one session or recording: recognition in turns with others. ``age_s``: see ``SharedRecognizer``."""
    recognizer = models.recognizer
    kind = SharedDraftingRecognizer if isinstance(recognizer, DraftRecognizer) else SharedRecognizer
    drafter = SharedDrafter(models.drafter, turns, age_s) if models.drafter is not None else None
    return replace(models, recognizer=kind(recognizer, turns, age_s), drafter=drafter)
