"""The ASGI middleware: what is checked before any request is looked at, headers of every answer, and unread bodies."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import Access
from .limits import ServerLimits

# Scripts, styles and connections of the pages come from this server only, and no page may frame them.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
        "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self), display-capture=(self)",
}
# Without more of the body for so long, the client waits for the answer.
_IDLE_S = 0.5
_MINUTE_S = 60.0
_MAX_ADDRESSES = 10_000
# Of IPv6 with the name of an interface. A proxy may forward any text.
_LONGEST_ADDRESS = 64


class Rate:
    """Counts what each address does, and says whether that is too much. Pure, with bounded memory."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_minute, self._clock = a_minute, clock
        self._times: dict[str, deque[float]] = {}

    def allows(self, address: str) -> bool:
        """Count one more; False if there were too many in the last minute."""
        now_s, address = self._clock(), counted_as(address)
        times = self._times.pop(address, deque())
        while times and times[0] <= now_s - _MINUTE_S:
            times.popleft()
        allowed = len(times) < self._a_minute
        if allowed:
            times.append(now_s)
        self._times[address] = times  # the newest last
        while len(self._times) > _MAX_ADDRESSES:
            del self._times[next(iter(self._times))]
        return allowed

    def forget(self, address: str) -> None:
        """Take back the newest count of an address."""
        if times := self._times.get(counted_as(address)):
            times.pop()


def counted_as(address: str) -> str:
    """The address, or its network if it is of IPv6, where one host may have 2 ** 64 addresses."""
    return _counted_as(address[:_LONGEST_ADDRESS])


@functools.lru_cache(maxsize=4_096)
def _counted_as(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))


class Guard:
    """Refuses requests for another host, from another site's page, or too many; adds headers to every answer."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        rate: Rate,
        refused: Counter[str],
        uncounted: tuple[str, ...] = (),
        peers: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """``refused``: is told the reason of each refusal. ``uncounted``: paths whose routes count for themselves.

        ``peers``: the addresses of servers that share out sessions with this one: WebSockets may go from one's pages to another.
        """
        self._app, self._access, self._rate, self._refused = app, access, rate, refused
        self._uncounted, self._peers = uncounted, peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        address = scope["client"][0] if scope.get("client") else ""
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        # A token may be guessed with GET too.
        counts = (changes or "authorization" in headers) and path not in self._uncounted
        peers = self._peers()
        if scope["type"] == "websocket" and origin in peers:
            origin = None
        sending = _with_headers(send, peers)
        if not self._access.knows_host(host):
            self._refused["host"] += 1
            await _refuse(scope, receive, sending, 421, f"this server is not called {host!r}; see --allow-host")
        elif changes and not self._access.knows_origin(origin, host):
            self._refused["origin"] += 1
            await _refuse(scope, receive, sending, 403, f"pages of {origin} may not connect; see --allow-origin")
        elif counts and not self._rate.allows(address):
            self._refused["rate"] += 1
            await _refuse(scope, receive, sending, 429, "too many connections; wait a minute")
        else:
            await self._app(scope, receive, sending)


def _with_headers(send: Send, peers: Sequence[str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            for peer in peers:
                policy = headers["content-security-policy"]
                sockets = peer.replace("http", "ws", 1)
                headers["content-security-policy"] = policy.replace(
                    "connect-src 'self'", f"connect-src 'self' {sockets}"
                )
        await send(message)

    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":  # closing before accepting answers the handshake with 403
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    await PlainTextResponse(reason + "\n", status)(scope, receive, send)


class BodyDrain:
    """Reads what the application has left of a request's body, so that its early answer reaches the client.

    Drops it for a bounded time and number of bytes: before the answer while it comes, and after it.

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
        unread, left_bytes = True, self._limits.upload_bytes

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = bool(message.get("more_body"))
            return message

        async def drop(idle_s: float | None) -> None:
            nonlocal left_bytes
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.request_s):
                    while unread and left_bytes > 0:
                        async with asyncio.timeout(idle_s):
                            left_bytes -= len((await receiving()).get("body", b""))

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
