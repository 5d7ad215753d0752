"""Sends finished sentences to where people watch, those of one session at a time. docs/server-operation.md says which session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ..config import PipelineConfig
from ..core import PipelineEvent
from ..errors import PipelineError, one_line
from ..media import SINK_FAILURES, FanOut, close_all
from ..push import PushSink
from .session import Session

log = logging.getLogger(__name__)

# Events that a session keeps until the one before it is finished: those of minutes. Older captions would only confuse.
_MOST_WAITING = 5_000
# Of these, so many are sent before others have their turn on the loop.
_AT_ONCE = 50


class Turn:
    """What is sent of one session: all from its beginning, once its turn has come; nothing if that will not be."""

    def __init__(self, session: Session) -> None:
        self.session, self.config = session, session.config  # languages that are added later are not sent
        self.ended, self.sent = asyncio.Event(), asyncio.Event()
        """Set when the session has said everything, and when all of that has been sent."""
        self._reason = ""
        self._sinks: Sequence[PushSink] = ()
        self._out: FanOut | None = None
        self._waiting: deque[PipelineEvent] | None = deque(maxlen=_MOST_WAITING)

    @property
    def problem(self) -> str:
        """What is not sent now, and why; empty: nothing is missing."""
        return self._reason or "; ".join(sink.problem for sink in self._sinks if sink.problem)

    def write(self, event: PipelineEvent) -> None:
        """Send an event, or keep it until the turn has come. Never waits."""
        if self._out is not None:
            self._send(self._out, event)
        elif self._waiting is not None:
            self._waiting.append(event)

    def _send(self, out: FanOut, event: PipelineEvent) -> None:
        try:
            out.write(event)
        except SINK_FAILURES as error:
            self._reason = str(error)
            log.error("session %s: %s", self.session.name, error)

    def refuse(self, reason: str) -> None:
        """Send nothing."""
        self._reason, self._waiting = reason, None

    async def begin(self, sinks: Sequence[PushSink]) -> None:
        """Send what has waited, and from then on each event as it comes."""
        self._sinks, out = sinks, FanOut(sinks)
        while self._waiting:
            for _ in range(min(_AT_ONCE, len(self._waiting))):
                self._send(out, self._waiting.popleft())
            await asyncio.sleep(0)
        self._out = out


class Pushes:
    """One session at a time has its turn, from its beginning to its end.

    One that begins while another one is only being finished is the next, and is sent as a whole. Any other is not sent, and told.
    """

    def __init__(self, open_sinks: Callable[[PipelineConfig], Sequence[PushSink]]) -> None:
        """``open_sinks``: for a session's languages; raises UsageError if it has not those that are sent."""
        self._open = open_sinks
        self._turns: list[Turn] = []  # that of the session that is sent, and the next

    @asynccontextmanager
    async def turn(self, session: Session) -> AsyncIterator[Turn]:
        """Sends the events of a session, if it is its turn or will be."""
        turn = Turn(session)
        if self._turns and (len(self._turns) > 1 or not self._turns[0].session.state.ending):
            log.warning("session %s is not pushed, since another one is", session.name)
            turn.refuse("captions of another session are sent elsewhere now, not of this one")
            yield turn
            return
        before = self._turns[:]
        self._turns.append(turn)
        sending = asyncio.create_task(self._send(turn, before))
        try:
            yield turn
        finally:
            turn.ended.set()
            await sending

    async def _send(self, turn: Turn, before: Sequence[Turn]) -> None:
        name, sinks = turn.session.name, list[PushSink]()
        try:
            for earlier in before:
                await earlier.sent.wait()
            try:
                sinks += await asyncio.to_thread(self._open, turn.config)
                for sink in sinks:
                    sink.begin(lambda: turn.session.stats.stream_s)
            except Exception as error:
                log.warning("session %s is not pushed: %s", name, one_line(error), exc_info=_unexpected(error))
                turn.refuse(one_line(error))
                if not sinks:
                    return
            await turn.begin(sinks)
            await turn.ended.wait()
        finally:
            try:
                await asyncio.to_thread(close_all, sinks)
            except Exception as error:
                log.error("session %s: %s", name, one_line(error), exc_info=_unexpected(error))
            self._turns.remove(turn)
            turn.sent.set()


def _unexpected(error: Exception) -> bool:
    """Whether the log has its traceback."""
    return not isinstance(error, PipelineError)
