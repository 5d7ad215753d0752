"""A part of what a client says, from its first audio to its end, which is a session of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..feed import Feed
from ..session import Session


@dataclass(frozen=True)
class ClientSpeech:
    """The session, and the task that answers it."""

    session: Session
    feed: Feed
    delivering: asyncio.Task[None]

    async def close(self, connection: object) -> None:
        """End the session, and answer no more."""
        self.session.end()
        self.delivering.cancel()
        try:
            await asyncio.gather(self.delivering, return_exceptions=True)
        finally:  # also if the server ends meanwhile
            self.session.disconnect(connection, self.feed)
