"""A sink with a queue and a thread of its own, and a policy for what happens when it falls behind."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum

from ...core import EndOfInput, PipelineEvent, State, TranslationLost, place_of
from ...errors import SinkError, described
from .sink import SINK_FAILURES

_CAPACITY = 1_000

_Numbered = tuple[int, PipelineEvent]


class Delivery(Enum):
    """What happens to events when a sink is slower than they come."""

    LOSSLESS = "lossless"
    """Nothing is left out. When the queue is full, the writer waits, and with it the stages. For files and pipes."""
    LATEST = "latest"
    """The writer never waits. A newer state of a text takes the place of one that waits, so that the sink skips states and no text;
    when the queue is full, the oldest sentence is dropped and counted. For displays."""


class QueuedSink:
    """Delivers events to a sink on a thread of its own."""

    def __init__(self, deliver: Callable[[PipelineEvent], None], delivery: Delivery, capacity: int = _CAPACITY) -> None:
        """``deliver`` is the sink's ``write``; it may take any time and is called on one thread only.

        ``capacity``: events that may wait.
        """
        self.dropped = 0
        """Sentences of which something was not delivered, because too much was waiting."""
        self._newest_dropped: deque[int] = deque(maxlen=_CAPACITY)  # the rest of these sentences is dropped too
        self._deliver, self._delivery, self._capacity = deliver, delivery, capacity
        self._waiting: deque[_Numbered] = deque()  # in ascending order of their numbers
        self._written = 0
        """Number of the newest event handed over; events count from 1."""
        self._delivering = 0
        """Number of the newest event whose delivery has begun."""
        self._delivered = 0
        """Number of the newest event delivered."""
        self._stalled_at: int | None = None
        """``_delivered`` when ``drain`` last waited in vain."""
        self._task: Callable[[], None] | None = None
        self._failure: SinkError | BrokenPipeError | None = None
        self._busy = self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="sink", daemon=True)
        self._thread.start()

    def write(self, event: PipelineEvent) -> None:
        """Hand over an event. Waits while the queue of a lossless sink is full."""
        with self._changed:
            if self._delivery is Delivery.LOSSLESS:
                self._changed.wait_for(
                    lambda: len(self._waiting) < self._capacity or self._failure is not None or self._closing
                )
            if self._failure is not None:
                raise self._failure
            if self._delivery is Delivery.LATEST:
                if _sentence(event) in self._newest_dropped:
                    return
                if (index := place_of(event, (waiting for _, waiting in reversed(self._waiting)))) is not None:
                    self._waiting[index] = self._waiting[index][0], event
                    return
            self._written += 1
            self._waiting.append((self._written, event))
            if len(self._waiting) > self._capacity and self._delivery is Delivery.LATEST:
                self._drop_oldest()
            self._changed.notify_all()

    def call(self, task: Callable[[], None]) -> None:
        """Run ``task`` on the sink's thread after the waiting events. A task that still waits is replaced."""
        with self._changed:
            self._task = task
            self._changed.notify_all()

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until the events handed over so far have been delivered; False if that took longer than ``timeout_s``.

        Events handed over meanwhile are not waited for; a waiting state that one replaces counts as that one. A
        sink that lets ``timeout_s`` pass is stalled: until it delivers something, later calls with a limit do not wait.
        """
        with self._changed:
            newest = self._written
            stalled = timeout_s is not None and self._stalled_at == self._delivered
            drained = self._changed.wait_for(
                lambda: self._failure is not None or self._delivered >= newest or not (self._waiting or self._busy),
                0 if stalled else timeout_s,
            )
            if self._failure is not None:
                raise self._failure
            if not drained:
                self._stalled_at = self._delivered
            return drained

    def close(self, timeout_s: float | None = None) -> None:
        """Deliver what is waiting, then end the thread; wait for it at most ``timeout_s``. Idempotent.

        The sink itself is not closed.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    @property
    def is_busy(self) -> bool:
        """Whether an event is being delivered or waits."""
        with self._changed:
            return self._busy or bool(self._waiting)

    def _drop_oldest(self) -> None:
        """Drop all that waits of the oldest sentence, or the oldest event if it belongs to none.

        The end and the loss of a language are never dropped: without them a display would wait for more text.
        """
        droppable = (item for item in self._waiting if not isinstance(item[1], EndOfInput | TranslationLost))
        if (oldest := next(droppable, None)) is None:
            return
        if (sentence := _sentence(oldest[1])) < 0:
            self._waiting.remove(oldest)
            return
        self.dropped += 1
        self._newest_dropped.append(sentence)
        self._waiting = deque(item for item in self._waiting if _sentence(item[1]) != sentence)

    def _work(self) -> None:
        while (action := self._next()) is not None:
            failure: SinkError | BrokenPipeError | None = None
            try:
                action()
            except SINK_FAILURES as error:
                failure = error
            except BaseException as error:
                failure = SinkError(f"the sink failed: {described(error)}")
                failure.__cause__ = error
            with self._changed:
                self._busy, self._delivered = False, self._delivering
                if failure is not None:
                    self._failure = failure
                    self._waiting.clear()
                self._changed.notify_all()
            if failure is not None:
                return

    def _next(self) -> Callable[[], None] | None:
        """Wait for an event or a task; None when the sink was closed and nothing is waiting."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._task is not None or self._closing)
            if self._waiting:
                self._delivering, event = self._waiting.popleft()
                self._busy = True
                self._changed.notify_all()
                return lambda: self._deliver(event)
            task, self._task = self._task, None
            self._busy = task is not None
            return task


def _sentence(event: PipelineEvent) -> int:
    """The sentence that an event belongs to, or -1."""
    return event.sentence if isinstance(event, State) else -1
