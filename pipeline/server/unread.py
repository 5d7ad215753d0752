"""Reads what the application has left of a request's body, so that its early answer reaches the client."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.server.options import ServerLimits


class Unread:
    """Drops the rest of the body after the answer, for a bounded time and number of bytes, before the connection may end.

    A connection that is closed with bytes unread is reset. A reverse proxy that is still sending then answers 502 itself.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        unread = True

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = bool(message.get("more_body"))
            return message

        async def sending(message: Message) -> None:
            if not unread or message["type"] != "http.response.body" or message.get("more_body"):
                await send(message)
                return
            await send({**message, "more_body": True})
            left = self._limits.upload_bytes
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.request_s):
                    while unread and left > 0:
                        left -= len((await receiving()).get("body", b""))
            await send({"type": "http.response.body", "body": b""})

        await self._app(scope, receiving, sending)
