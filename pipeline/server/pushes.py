"""Sends finished sentences to where people watch, those of one session at a time. docs/server.md says which session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ..config import PipelineConfig
from ..errors import PipelineError, one_line
from ..events import PipelineEvent
from ..sinks.push import PushSink
from ..sinks.sink import SINK_FAILURES, FanOut, close_all
from .session import Session

log = logging.getLogger(__name__)


class Pushes:
    """The first session that begins while none is sent has its turn until it ends."""

    def __init__(self, open_sinks: Callable[[PipelineConfig], Sequence[PushSink]]) -> None:
        """``open_sinks``: for a session's languages; raises UsageError if it has not those that are sent."""
        self._open, self._taken = open_sinks, False

    @asynccontextmanager
    async def turn(self, session: Session) -> AsyncIterator[Callable[[PipelineEvent], None]]:
        """Sends the events of a session, if it is its turn."""
        if self._taken:
            log.warning("session %s is not pushed, since another one is", session.name)
            yield lambda _: None
            return
        self._taken = True
        sinks: Sequence[PushSink] = ()
        try:
            try:
                sinks = await asyncio.to_thread(self._open, session.config)
                for sink in sinks:
                    sink.begin(lambda: session.stats.stream_s)
            except Exception as error:
                log.warning("session %s is not pushed: %s", session.name, one_line(error), exc_info=_unexpected(error))
            yield _logging_failures(FanOut(sinks), session.name)
        finally:
            try:
                await asyncio.to_thread(close_all, sinks)
            except Exception as error:
                log.error("session %s: %s", session.name, one_line(error), exc_info=_unexpected(error))
            self._taken = False


def _logging_failures(sinks: FanOut, session: str) -> Callable[[PipelineEvent], None]:
    def write(event: PipelineEvent) -> None:
        try:
            sinks.write(event)
        except SINK_FAILURES as error:
            log.error("session %s: %s", session, error)

    return write


def _unexpected(error: Exception) -> bool:
    """Whether the log has its traceback."""
    return not isinstance(error, PipelineError)
