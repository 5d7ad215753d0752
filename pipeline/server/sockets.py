"""Operations of a WebSocket that the other side may have closed, and the codes with which it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.websockets import WebSocketDisconnect

# WebSocket close codes (RFC 6455, 7.4.1).
NORMAL, LOST, REFUSED, TRY_LATER = 1000, 1006, 1008, 1013
LATER = ("busy", "stopping")

Result = TypeVar("Result")


async def while_open(operation: Awaitable[Result], limit_s: float | None = None) -> Result:
    """The result of an operation of a socket.

    Raises:
        WebSocketDisconnect: the socket is closed, for which Starlette and uvicorn have RuntimeError too, or the time is over.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await operation
    except (RuntimeError, TimeoutError):
        raise WebSocketDisconnect(LOST) from None
