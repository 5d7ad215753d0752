"""A sink that never makes its writer wait: a slow or stopped terminal does not hold back the stages and the files."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from pipeline.errors import SinkError, described
from pipeline.events import Delta, PipelineEvent
from pipeline.sinks.sink import SINK_FAILURES

_CAPACITY = 1_000


class LatestSink:
    """Delivers events to a sink on a thread of its own.

    Events wait in a bounded queue. Deltas of one sentence that wait become one delta, so that a sink that falls behind
    skips intermediate states and no text. Beyond ``capacity`` the oldest waiting event is dropped and counted.
    """

    def __init__(self, deliver: Callable[[PipelineEvent], None], capacity: int = _CAPACITY) -> None:
        """``deliver`` is the sink's ``write``; it may take any time and is called on one thread only."""
        self.dropped = 0
        """Events that were never delivered, because too many were waiting."""
        self._deliver, self._capacity = deliver, capacity
        self._waiting: deque[PipelineEvent] = deque()
        self._task: Callable[[], None] | None = None
        self._failure: SinkError | BrokenPipeError | None = None
        self._busy = self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)
        self._thread.start()

    def write(self, event: PipelineEvent) -> None:
        """Hand over an event without waiting for its delivery.

        Raises:
            SINK_FAILURES: the sink failed at an earlier event.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            merged = _merged(self._waiting[-1], event) if self._waiting else None
            if merged is not None:
                self._waiting[-1] = merged
            else:
                self._waiting.append(event)
            if len(self._waiting) > self._capacity:
                self._waiting.popleft()
                self.dropped += 1
            self._changed.notify_all()

    def call(self, task: Callable[[], None]) -> None:
        """Run ``task`` on the sink's thread after the waiting events. A task that still waits is replaced."""
        with self._changed:
            self._task = task
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until every event has been delivered.

        Raises:
            SINK_FAILURES: the sink failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or not (self._waiting or self._busy))
            if self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Deliver what is waiting, then end the thread. The sink itself is not closed. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while (action := self._next()) is not None:
            failure: SinkError | BrokenPipeError | None = None
            try:
                action()
            except SINK_FAILURES as error:
                failure = error
            except BaseException as error:
                failure = SinkError(f"the display failed: {described(error)}")
                failure.__cause__ = error
            with self._changed:
                self._busy = False
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
                event = self._waiting.popleft()
                self._busy = True
                return lambda: self._deliver(event)
            task, self._task = self._task, None
            self._busy = task is not None
            return task


def _merged(first: PipelineEvent, second: PipelineEvent) -> Delta | None:
    """Two changes of one sentence as one; None for other events."""
    if not (isinstance(first, Delta) and isinstance(second, Delta)) or first.end_of_sentence:
        return None
    if (first.segment_id, first.sentence) != (second.segment_id, second.sentence):
        return None
    beyond = max(0, second.withdrawn - len(first.text))  # reaches into the text before ``first``
    kept = first.text[: max(0, len(first.text) - second.withdrawn)]
    return replace(second, text=kept + second.text, withdrawn=first.withdrawn + beyond)
