"""Reads what the application has left of a request's body, so that its early answer reaches the client."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.server.options import ServerLimits

# Without more of the body for so long, the client waits for the answer.
_IDLE_S = 0.5


class Unread:
    """Drops the rest of the body, for a bounded time and number of bytes: before the answer while it comes, and after it.

    A connection that is closed with bytes unread is reset: a reverse proxy that is still sending answers 502 itself, or, if it has
    the answer, resets the client's connection.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        unread, left = True, self._limits.upload_bytes

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = bool(message.get("more_body"))
            return message

        async def drop(idle_s: float | None) -> None:
            nonlocal left
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.request_s):
                    while unread and left > 0:
                        async with asyncio.timeout(idle_s):
                            left -= len((await receiving()).get("body", b""))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await drop(_IDLE_S)
            if not unread or message["type"] != "http.response.body" or message.get("more_body"):
                await send(message)
                return
            await send({**message, "more_body": True})
            await drop(None)
            await send({"type": "http.response.body", "body": b""})

        await self._app(scope, receiving, sending)
