"""Which sessions there are, by ids and rooms, and what else may begin: places, and reasons to refuse."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .limits import ServerLimits
from .protocol import ProtocolError

if TYPE_CHECKING:
    from .session import Session
    from .unanswered import ModelCalls

# Sessions that have ended and are kept for readers who come again.
_MOST_ENDED = 100


class SessionIndex:
    """The sessions of one server: those in progress, those that have just ended, the newest of each room. Pure."""

    def __init__(self) -> None:
        self.in_progress: dict[str, Session] = {}
        """By their ids."""
        self.rooms: dict[str, Session] = {}
        """The newest session of each room, by the rooms' names; for ``resume_s`` after its end, too."""
        self._ended: dict[str, Session] = {}  # whose last text not every reader has confirmed

    def enter(self, room: str) -> str:
        """A session is to begin in this room; one there whose speaker has gone ends.

        Raises:
            ProtocolError: somebody speaks there.
        """
        if (earlier := self.rooms.get(room)) is not None:
            if earlier.state.has_speaker:
                raise ProtocolError("room-busy", "somebody speaks in this room already; stop there first")
            earlier.stop()
        return room

    def begin(self, session: Session) -> None:
        """A session has begun, perhaps in a room."""
        self.in_progress[session.id] = session
        if session.room is not None:
            self.rooms[session.room] = session

    def end(self, session: Session, *, keep: bool) -> bool:
        """A session has ended. ``keep``: readers may come again for its last text until it is forgotten; return that."""
        del self.in_progress[session.id]
        if keep:
            self._ended[session.id] = session
            while len(self._ended) > _MOST_ENDED:
                del self._ended[next(iter(self._ended))]
        return keep

    def forget(self, session: Session) -> None:
        """No reader comes again for the last text of a session that was kept."""
        self._ended.pop(session.id, None)

    def leave(self, session: Session) -> None:
        """A session that has ended is not that of its room any more, if a newer one has not taken its place."""
        if session.room is not None and self.rooms.get(session.room) is session:
            del self.rooms[session.room]

    def with_id(self, session_id: str) -> Session:
        """A session in progress, or one that has just ended and was kept. Raises ProtocolError: there is none."""
        return _existing(self.in_progress.get(session_id) or self._ended.get(session_id))

    def find(self, name: str) -> Session:
        """What readers name: a session by its id, or the newest one in a room. Raises ProtocolError: there is none."""
        return _existing(self.in_progress.get(name) or self._ended.get(name) or self.rooms.get(name))


def _existing(session: Session | None) -> Session:
    if session is None:
        raise ProtocolError("no-session", "there is no such session; it may have ended")
    return session


class ServerPlaces:
    """The places of one server, for sessions and recordings."""

    def __init__(self, limits: ServerLimits, sessions: Mapping[str, Session]) -> None:
        """``sessions``: those in progress."""
        self.draining = False
        """Whether nothing is begun any more."""
        self.recordings: list[asyncio.Task[Any]] = []
        """The tasks that translate recordings."""
        self.refused: Counter[str] = Counter()
        """Sessions and recordings that were refused, by the code of the reason."""
        self.texts_hung: Callable[[], bool] = lambda: False
        """Whether a translator of texts gives no answer."""
        self._limits, self._sessions = limits, sessions
        self._ended: list[ModelCalls] = []  # of sessions and recordings that have ended

    @property
    def closed(self) -> bool:
        """Whether nothing is begun, whatever is free."""
        return self.draining or self.hung

    @property
    def ready(self) -> bool:
        """Whether another session could be started."""
        return not self.closed and self.taken < self._limits.max_sessions

    @property
    def taken(self) -> int:
        """How many places for sessions are taken. One whose text is final needs none, but closes its record and waits for readers:
        of these, there may be as many again.
        """
        return max(sum(not session.state.over for session in self._sessions.values()), len(self._sessions) // 2)

    @property
    def hung(self) -> bool:
        """Whether a model still gives no answer for which sessions, a language of one, or texts were given up."""
        self._ended = [calls for calls in self._ended if calls.lost]
        return self.texts_hung() or bool(self._ended) or any(session.calls.lost for session in self._sessions.values())

    def leave(self, calls: ModelCalls) -> None:
        """A session or recording has ended, perhaps since one of these calls has no answer."""
        self._ended.append(calls)

    def check(self) -> None:
        """Raise ProtocolError if no session may be started."""
        if self.draining:
            raise ProtocolError("stopping", "the server is stopping; try again later")
        if self.hung:
            raise ProtocolError("busy", "a model of the server does not answer; the server has to be restarted")
        if (taken := self.taken) >= self._limits.max_sessions:
            raise ProtocolError(
                "busy", f"the server has {taken} sessions, which is as many as it can serve in time; try again later"
            )

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Make room for a recording, which the current task translates in the block.

        Raises:
            ProtocolError: the server translates as many as it may, or it is stopping.
        """
        if self.closed or len(self.recordings) >= self._limits.max_recordings:
            self.refused["busy"] += 1
            reason = f"it is translating {len(self.recordings)} recordings"
            reason = "the server is stopping" if self.draining else reason
            reason = "a model of the server does not answer" if self.hung else reason
            raise ProtocolError("busy", f"{reason}; try again later")
        task = asyncio.current_task()
        assert task is not None
        self.recordings.append(task)
        try:
            yield
        finally:
            self.recordings.remove(task)
