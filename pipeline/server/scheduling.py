"""One recogniser for several sessions: which call comes first, and when drafts give way."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum

from ..core import (
    BatchRecognizer,
    DraftRecognizer,
    DraftRefusedError,
    LanguageDetector,
    Models,
    RecognitionOptions,
    Recognizer,
    Samples,
    SpeechSegment,
    StreamingRecognizer,
    Transcript,
)
from ..errors import PipelineError

# Share of all time in which finals and drafts together may use the recogniser, for each call that it takes at once; drafts
# give way above it. The rest is for voice detection, translation and connections, and keeps finals from waiting for drafts.
_SHARE = 0.9
# Recognition time that may be saved up for drafts, and the most that finals can take from later drafts, in seconds.
# Speech has pauses: with 3 s, one speaker who is alone on a slow machine got half as many drafts as without a budget.
_MOST_S = 10.0
# A session that has had no draft for this long gets one while anything is left. Segments of speech are about as long.
_LONGEST_S = 5.0
# How often a call that waits looks whether any is answered.
_LOOK_S = 1.0
_LEFT = "the session has ended, and its speech is not recognised"


class Priority(IntEnum):
    """What a call recognises; the lowest comes first."""

    FINAL = 0
    """Live speech that has ended or pauses."""
    DRAFT = 1
    """Speech in progress."""
    RECORDING = 2
    """Part of a recording, which nobody waits for: an uploaded one, or one that is sent faster than it plays."""


class DraftBudget:
    """Recognition time left for drafts: a share of all time, without what finals and earlier drafts took. Pure.

    The less is left, the longer a session waits between two drafts. So drafts become rarer for all sessions alike.
    """

    def __init__(self, now_s: float, share: float = _SHARE) -> None:
        self._share, self._left_s, self._at_s = share, _MOST_S, now_s

    def spend(self, now_s: float, work_s: float) -> None:
        """Finals or drafts took ``work_s`` of the recogniser's time."""
        self._left_s = max(-_MOST_S, self._left(now_s) - work_s)
        self._at_s = now_s

    def allows(self, now_s: float, age_s: float) -> bool:
        """Whether a session whose last draft was ``age_s`` ago may have one now."""
        left_s = self._left(now_s)
        return left_s > 0 and left_s >= _MOST_S * (1 - age_s / _LONGEST_S)

    def _left(self, now_s: float) -> float:
        return min(_MOST_S, self._left_s + self._share * (now_s - self._at_s))


@dataclass(eq=False)
class Call:
    """A call that asks for the recogniser."""

    priority: Priority
    since_s: float
    """When what it is to recognise was spoken; of a draft, when the last draft of the session was made."""
    gave_way: bool = False
    """Whether it is a draft that was refused."""
    began_s: float = 0.0
    """When it was let in."""
    ready: threading.Event = field(default_factory=threading.Event)
    """Set when it is let in, or when it has given way."""


class CallQueue:
    """The calls that wait, and how many work. Pure: the caller tells the time.

    At most one draft waits, and none while a final does: a session cannot recognise the end of its speech while it
    waits for a draft, and a draft that comes late shows old speech. A refused draft is asked for again with more speech.
    """

    def __init__(self, now_s: float, at_once: int = 1) -> None:
        """``at_once``: how many calls may work at the same time."""
        self.waiting: list[Call] = []
        """In the order in which they came."""
        self._free, self._budget = at_once, DraftBudget(now_s, at_once * _SHARE)

    def ask(self, call: Call, now_s: float) -> list[Call]:
        """Take a call. Returns the drafts that are refused because of it, which may be the call itself."""
        drafts = [other for other in self.waiting if other.priority == Priority.DRAFT]
        if call.priority == Priority.DRAFT and (
            not self._budget.allows(now_s, now_s - call.since_s)
            or any(other.priority == Priority.FINAL for other in self.waiting)
            or any(other.since_s <= call.since_s for other in drafts)
        ):
            return [call]
        refused = drafts if call.priority != Priority.RECORDING else []
        self.waiting = [*(other for other in self.waiting if other not in refused), call]
        return refused

    def begin(self, now_s: float) -> Call | None:
        """The call that is let in now: of the first priority; of those, the one whose audio was spoken first.

        None: no call waits, or as many work as may.
        """
        if not self._free or not self.waiting:
            return None
        self._free -= 1
        call = min(self.waiting, key=lambda other: (other.priority, other.since_s))  # the first of those that are equal
        self.waiting.remove(call)
        call.began_s = now_s
        return call

    def end(self, call: Call, now_s: float) -> None:
        """A call that was let in has ended."""
        self._free += 1
        if call.priority != Priority.RECORDING:  # which gives way to drafts
            self._budget.spend(now_s, now_s - call.began_s)

    def leave(self, call: Call, now_s: float) -> None:
        """A call gives up, whether it waits, works or has given way."""
        if call in self.waiting:
            self.waiting.remove(call)
        elif not call.gave_way:
            self.end(call, now_s)


class Scheduler:
    """Lets as many threads work as the recogniser takes calls at once, in the order of a ``CallQueue``."""

    def __init__(self, at_once: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        """``at_once``: how many threads may work at the same time. ``clock``: gives seconds."""
        self.clock = clock
        self.refused_drafts = 0
        """How many drafts were refused because others needed the recogniser more."""
        self.answered = 0
        """How many calls that were let in have ended."""
        self._given_up: int | None = None  # how many had then
        self._queue = CallQueue(clock(), at_once)
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, priority: Priority, age_s: float = 0.0, left: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for a slot of the recogniser, and hold it inside the block.

        Args:
            age_s: seconds since what is to be recognised was spoken; of a draft, since the session's last one.
            left: whether nobody wants the result any more.

        Raises:
            DraftRefusedError: a draft, and others need the recogniser more.
            PipelineError: a recording, and the recogniser answers nothing; or ``left``.
        """
        now_s = self.clock()
        call = Call(priority, now_s - age_s)
        with self._lock:
            for refused in self._queue.ask(call, now_s):
                refused.gave_way = True
                refused.ready.set()
                self.refused_drafts += 1
            self._begin(now_s)
        try:
            while not call.ready.wait(_LOOK_S):
                if self.hung and priority == Priority.RECORDING:
                    raise PipelineError("the recogniser does not answer; the server has to be restarted")
                if left():
                    raise PipelineError(_LEFT)
        except BaseException:  # such as KeyboardInterrupt; without this, nobody would be let in again
            with self._lock:
                now_s = self.clock()
                self._queue.leave(call, now_s)
                self._begin(now_s)
            raise
        if call.gave_way:
            raise DraftRefusedError
        try:
            if left():
                raise PipelineError(_LEFT)
            yield
        finally:
            with self._lock:
                now_s = self.clock()
                self.answered += 1
                self._queue.end(call, now_s)
                self._begin(now_s)

    def give_up(self) -> None:
        """A call has had no answer for too long."""
        self._given_up = self.answered

    @property
    def hung(self) -> bool:
        """Whether a call was given up and none has been answered since."""
        return self._given_up == self.answered

    @property
    def waiting(self) -> int:
        """Number of threads that wait."""
        return len(self._queue.waiting)

    def _begin(self, now_s: float) -> None:
        while (call := self._queue.begin(now_s)) is not None:
            call.ready.set()


Age = Callable[[float], float | None]
"""Seconds since the audio of a stream before a time in it, in seconds, was spoken.

None while the stream is a recording that is sent faster than it plays: nobody waits for it."""


class ScheduledRecognizer:
    """A recogniser whose calls a scheduler orders: what was spoken first is recognised first. Serves one session."""

    def __init__(self, recognizer: Recognizer, scheduler: Scheduler, age_s: Age | None) -> None:
        """``age_s``: of the stream; None: a recording, which nobody waits for."""
        self._recognizer, self._scheduler, self._age_s = recognizer, scheduler, age_s
        self._drafted_s = -math.inf  # when the last draft was made
        self.waited_s = 0.0
        """Seconds for which the last draft had to wait for other calls (``SharedRecognizer``)."""
        self.waits = False
        """Whether a call waits for those of others."""
        self.left = False
        """Whether nobody wants what is recognised any more."""

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        """Recognise segments together, in their turn (``Recognizer``)."""
        with self._turn(segments):
            return self._recognizer.transcribe(segments, options)

    def transcribe_batch(
        self, groups: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions
    ) -> list[list[Transcript]]:
        """Recognise groups of segments, in one turn (``BatchRecognizer``)."""
        if not isinstance(self._recognizer, BatchRecognizer):
            return [self.transcribe(segments, options) for segments in groups]
        with self._turn(groups[0]):
            return self._recognizer.transcribe_batch(groups, options)

    def _turn(self, segments: Sequence[SpeechSegment]) -> AbstractContextManager[None]:
        age_s = self._age_s(segments[0].speech_end_s) if self._age_s is not None else None
        priority = Priority.RECORDING if age_s is None else Priority.FINAL
        return self._slot(priority, age_s or 0.0)

    @contextmanager
    def _slot(self, priority: Priority, age_s: float) -> Iterator[None]:
        self.waits = True
        try:
            with self._scheduler.slot(priority, age_s, lambda: self.left):
                self.waits = False
                yield
        finally:
            self.waits = False

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """The languages that may be spoken, with their probabilities (``LanguageDetector``)."""
        return self._recognizer.detect(samples) if isinstance(self._recognizer, LanguageDetector) else {}

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """Recognise speech in progress, in its turn (``DraftRecognizer``).

        Raises:
            DraftRefusedError: others need the recogniser more, nobody waits for the stream, or the recogniser makes no drafts.
        """
        unwanted = self._age_s is not None and self._age_s(segment.speech_end_s) is None
        if unwanted or not isinstance(self._recognizer, DraftRecognizer):
            raise DraftRefusedError
        asked_s = self._scheduler.clock()
        with self._slot(Priority.DRAFT, asked_s - self._drafted_s):
            self.waited_s = self._scheduler.clock() - asked_s
            try:
                return self._recognizer.draft(segment, options)
            finally:
                self._drafted_s = self._scheduler.clock()


def scheduled(models: Models, scheduler: Scheduler, age_s: Age | None = None) -> Models:
    """The models for one session or recording, whose recognition a scheduler shares with others.

    The calls of a ``StreamingRecognizer`` are short and need no order.

    ``age_s``: see ``ScheduledRecognizer``.
    """
    recognizer, drafter = models.recognizer, models.drafter
    if not isinstance(recognizer, StreamingRecognizer):
        recognizer = ScheduledRecognizer(recognizer, scheduler, age_s)
    if drafter is not None:
        drafter = ScheduledRecognizer(drafter, scheduler, age_s)
    return replace(models, recognizer=recognizer, drafter=drafter)
