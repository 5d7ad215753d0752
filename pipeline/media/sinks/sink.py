"""The sink protocol, and fan-out to several sinks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...errors import SinkError, described

if TYPE_CHECKING:
    from ...core import PipelineEvent


class Sink(Protocol):
    """Receives every event of a run, in order."""

    def write(self, event: PipelineEvent) -> None:
        """Take one event."""

    def close(self) -> None:
        """Close the sink. What was written is valid with or without this call."""


def write_all(sinks: Sequence[Sink], event: PipelineEvent) -> None:
    """Write one event to every sink, in order, until one fails."""
    for sink in sinks:
        _write(sink, event)


SINK_FAILURES = (SinkError, BrokenPipeError)
"""The exceptions of a sink's ``write``. BrokenPipeError means that the reader is gone, which needs no message."""


def _write(sink: Sink, event: PipelineEvent) -> None:
    """Write an event to one sink, on a thread that receives no signals."""
    try:
        sink.write(event)
    except SINK_FAILURES:
        raise
    except BaseException as error:
        raise SinkError(f"{type(sink).__name__} failed: {described(error)}") from error


class FanOut:
    """Writes events to several sinks. A sink that fails gets no more events; the others continue."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    def has(self, sink: Sink) -> bool:
        """Whether ``sink`` has neither failed nor been dropped."""
        return sink in self._sinks

    def drop(self, sink: Sink) -> None:
        """Stop writing to ``sink``. Idempotent."""
        if sink in self._sinks:
            self._sinks.remove(sink)

    def write(self, event: PipelineEvent) -> None:
        """Write one event to every sink."""
        failures: list[SinkError | BrokenPipeError] = []
        for sink in list(self._sinks):
            try:
                _write(sink, event)
            except SINK_FAILURES as error:
                if self.has(sink):  # unless dropped meanwhile
                    self.drop(sink)
                    failures.append(error)
        if failures:
            raise failures[0]


def close_all(sinks: Sequence[Sink]) -> None:
    """Close every sink in reverse order, even if one fails."""
    with contextlib.ExitStack() as stack:
        for sink in sinks:
            stack.callback(sink.close)
