"""A part of what a client says, from its first audio to its end, which is a session of its own."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from starlette.websockets import WebSocketDisconnect

from ..feed import Feed
from ..protocol import ProtocolError
from ..session import Session

log = logging.getLogger(__name__)


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
            for result in await asyncio.gather(self.delivering, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, WebSocketDisconnect | ProtocolError):
                    log.error("a connection failed", exc_info=result)
        finally:  # also if the server ends meanwhile
            self.session.disconnect(connection, self.feed)
