"""How uvicorn serves the application, with limits on connections that it does not have itself."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from weakref import WeakKeyDictionary

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from pipeline.server.options import ServerLimits

# How often connections are looked at.
_SWEEP_S = 1.0
_READ_BYTES = 1 << 14
# The most frames of one message. Each may be empty, and uvicorn counts their bytes only.
_MOST_FRAMES = 1024


class HttpConnection(H11Protocol):
    """A connection before it becomes a WebSocket. One too many is closed before anything is read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio reads 256 KiB at once, and 40,000 empty frames in it hold the loop for 0.5 s (measured). Not with TLS, where
        # the transport does not have this attribute.
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        assert isinstance(self.config, Settings)
        limits, address = self.config.limits, _address(self)
        same = sum(_address(each) == address for each in self.connections)
        too_many = same > limits.connections_of_address and address not in self.config.proxies
        if too_many or len(self.connections) > limits.connections:
            transport.abort()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket whose memory is bounded, whatever the other side sends and however little it reads."""

    _frames = 0

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:  # the other side does not read: do not let answers pile up
            self.conn.data_to_send()

    def handle_text(self, event: Frame) -> None:
        self._frames = 1
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._frames = 1
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._frames += 1
        if self._frames > _MOST_FRAMES:
            self.transport.abort()
        else:
            super().handle_cont(event)


Connection = HttpConnection | SocketConnection


class Settings(uvicorn.Config):
    """The settings of the command, which the tests use too."""

    def __init__(self, app: ASGIApp, limits: ServerLimits, proxies: Sequence[str] = (), graceful_s: int = 5) -> None:
        """``proxies``: addresses of reverse proxies, whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed.

        ``graceful_s``: how long connections may take to close when the server ends.
        """
        super().__init__(
            app,
            http=HttpConnection,
            ws=SocketConnection,
            ws_max_size=limits.message_bytes,
            ws_ping_interval=20.0,
            ws_ping_timeout=20.0,
            ws_per_message_deflate=False,  # audio gets no smaller, and each connection would hold a window
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            timeout_graceful_shutdown=graceful_s,
        )
        self.limits, self.proxies = limits, frozenset(proxies)


class Overdue:
    """Finds connections that have been in a state without progress for too long. uvicorn has no limits for these."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._since: WeakKeyDictionary[Connection, tuple[Hashable, float]] = WeakKeyDictionary()

    def among(self, connections: Iterable[Connection], now_s: float) -> list[Connection]:
        """Those that are overdue, of all connections."""
        found = []
        for connection in connections:
            state, limit_s = self._state(connection)
            before, since_s = self._since.get(connection, (None, now_s))
            if state is None or state != before:
                self._since[connection] = (state, now_s)
            elif now_s - since_s >= limit_s:
                found.append(connection)
        return found

    def _state(self, connection: Connection) -> tuple[Hashable, float]:
        """What the connection waits for, and how long it may; None: nothing in particular."""
        limits = self._limits
        if connection.transport.is_closing():  # the other side does not take what is left
            return "closing", limits.closing_s
        if isinstance(connection, HttpConnection):
            cycle = connection.cycle
            if cycle is None or cycle.response_complete:
                return ("request", id(cycle)), limits.request_s
            if connection.transport.get_write_buffer_size():
                return ("answer", id(cycle)), limits.answer_s
        return None, 0.0


async def sweep(server: uvicorn.Server, limits: ServerLimits) -> None:
    """Abort overdue connections, for ever."""
    overdue = Overdue(limits)
    while True:
        await asyncio.sleep(_SWEEP_S)
        connections = [each for each in server.server_state.connections if isinstance(each, Connection)]
        for connection in overdue.among(connections, asyncio.get_running_loop().time()):
            connection.transport.abort()


def _address(connection: object) -> str:
    client = getattr(connection, "client", None)
    return client[0] if client else ""
