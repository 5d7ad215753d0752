"""Which session an id or a room stands for: those in progress, those that have just ended, the newest of each room. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocol import ProtocolError

if TYPE_CHECKING:
    from .session import Session

# Sessions that have ended and are kept for readers who come again.
_MOST_ENDED = 100


class SessionIndex:
    """The sessions of one server."""

    def __init__(self) -> None:
        self.in_progress: dict[str, Session] = {}
        """By their ids."""
        self.rooms: dict[str, Session] = {}
        """The newest session of each room, by the rooms' names."""
        self._ended: dict[str, Session] = {}  # whose last text not every reader has confirmed

    def enter(self, room: str) -> str:
        """A session is to begin in this room; one there whose speaker has gone ends.

        Raises:
            ProtocolError: somebody speaks there.
        """
        if (earlier := self.rooms.get(room)) is not None:
            if earlier.has_speaker:
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
        """A session by its id.

        Raises:
            ProtocolError: there is none.
        """
        return _found(self.in_progress.get(session_id) or self._ended.get(session_id))

    def find(self, name: str) -> Session:
        """What readers name: a session by its id, or the newest one in a room.

        Raises:
            ProtocolError: there is none.
        """
        return _found(self.in_progress.get(name) or self._ended.get(name) or self.rooms.get(name))


def _found(session: Session | None) -> Session:
    if session is None:
        raise ProtocolError("no-session", "there is no such session; it may have ended")
    return session
