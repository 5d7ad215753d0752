"""One recogniser for several sessions: the order in which they have their turns."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from pipeline.asr.context import Heard
from pipeline.asr.options import AsrConfig
from pipeline.asr.recognizer import DraftRecognizer, Recognizer
from pipeline.asr.terms import HeardTerms, with_terms
from pipeline.events import SpeechSegment, Transcript

FINAL, DRAFT, RECORDING = 0, 1, 2
"""Urgencies: the end of a stretch of live speech, speech in progress, a recording that nobody waits for."""


class Turns:
    """Lets one thread at a time work; of those that wait, the most urgent first, then whoever came first.

    A session waits with one call at most, so no session gets a second turn while another waits with the same urgency.
    """

    def __init__(self, at_once: int = 1) -> None:
        """``at_once``: threads that may work at the same time."""
        self._free = at_once
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, threading.Event]] = []
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, urgency: int) -> Iterator[None]:
        """Wait for a turn, and hold it inside the block."""
        ready = threading.Event()
        with self._lock:
            heapq.heappush(self._waiting, (urgency, next(self._numbers), ready))
            self._next()
        ready.wait()
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._next()

    @property
    def waiting(self) -> int:
        """Number of threads that wait."""
        return len(self._waiting)

    def _next(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            heapq.heappop(self._waiting)[2].set()


class SharedRecognizer:
    """A recogniser whose calls take turns."""

    def __init__(self, recognizer: Recognizer, turns: Turns, urgency: int = FINAL) -> None:
        """``urgency``: of all calls but drafts."""
        self._recognizer, self._turns, self._urgency = recognizer, turns, urgency

    @property
    def config(self) -> AsrConfig:
        return self._recognizer.config

    def with_terms(self, terms: HeardTerms) -> Self:
        """The same turns, with the glossary of one session."""
        return type(self)(with_terms(self._recognizer, terms), self._turns, self._urgency)

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None) -> Transcript:
        with self._turns.turn(self._urgency):
            return self._recognizer.transcribe(segment, beam_size, before)

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]:
        with self._turns.turn(self._urgency):
            return self._recognizer.transcribe_packed(segments, beam_size, before)

    def transcribe_after(self, *arguments: Any, **options: Any) -> Transcript:
        """See ``Recognizer`` and ``DraftRecognizer``."""
        with self._turns.turn(self._urgency):
            return self._recognizer.transcribe_after(*arguments, **options)


class SharedDrafter:
    """A recogniser of drafts whose calls take turns."""

    def __init__(self, drafter: DraftRecognizer, turns: Turns) -> None:
        self._drafter, self._draft_turns = drafter, turns

    def with_terms(self, terms: HeardTerms) -> Self:
        """The same turns, with the glossary of one session."""
        return type(self)(with_terms(self._drafter, terms), self._draft_turns)

    def draft(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript | None:
        """See ``DraftRecognizer``."""
        with self._draft_turns.turn(DRAFT):
            return self._drafter.draft(context, segment, before, language)


class SharedDraftingRecognizer(SharedRecognizer, SharedDrafter):
    """Both in one."""

    def __init__(self, recognizer: Recognizer, turns: Turns, urgency: int = FINAL) -> None:
        SharedRecognizer.__init__(self, recognizer, turns, urgency)
        assert isinstance(recognizer, DraftRecognizer)
        SharedDrafter.__init__(self, recognizer, turns)


def shared(recognizer: Recognizer, turns: Turns, urgency: int = FINAL) -> SharedRecognizer:
    """``recognizer`` for several sessions."""
    kind = SharedDraftingRecognizer if isinstance(recognizer, DraftRecognizer) else SharedRecognizer
    return kind(recognizer, turns, urgency)
