"""How uvicorn serves the application, with limits on connections that it does not have itself."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request

from ..backends import give_back_memory
from .guard import counted_as
from .limits import ServerLimits
from .shares import CountInSecond, gives_way
from .websocket import CLOSING

# How often connections are looked at.
_SWEEP_S = 1.0
# How long memory is given back, at each look at the connections, after a long text: until it and its answer are done with; and
# after many connections.
_GIVE_BACK_S = 2.0
# The memory of so many connections is given back once half of them have gone: 300 kB each with TLS (measured).
_MANY_CONNECTIONS = 64
# asyncio reads 256 KiB at once, and 40,000 empty frames in it hold the loop for 0.5 s (measured). With TLS, each connection
# has a buffer of this size from its acceptance.
_READ_BYTES = 1 << 14
# Connections that the system keeps until they are accepted, and that are accepted at once; a burst of 2,048, uvicorn's number,
# holds the loop for half a second (measured).
_BACKLOG = 64
# Chunks of a body, which cost as much each as a long one (30 µs): a few, and one for so many bytes.
_MOST_CHUNKS, _CHUNK_BYTES = 64, 64
# The memory of a longer text is given back. A message of audio, in JSON, is shorter.
_LONG_TEXT_BYTES = 1 << 16
# The most frames of one message. Each may be empty, and uvicorn counts their bytes only.
_MOST_FRAMES = 1024
# Pings and frames with less than so many bytes, of which one connection may send so many in a second (10 ms of work). The
# shortest frames of audio have 2.5 ms.
_SMALL_BYTES, _MOST_SMALL = 32, 200
# What of a WebSocket is parsed before frames are counted.
_PIECE_BYTES = 1 << 11
# Messages that the application takes at once. A turn of the loop may wait for other threads (5 ms).
_TURN_MESSAGES = 32
_TEXT = b"the server has too many connections; try again later\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%b"
) % (len(_TEXT), _TEXT)


class _Parser(h11.Connection):
    """Refuses a body in chunks of a few bytes."""

    _chunks = _bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_end
            self._bytes += len(event.data)
            if self._chunks > _MOST_CHUNKS + self._bytes // _CHUNK_BYTES:
                raise h11.RemoteProtocolError("the chunks of the body are too short")
        return event


class HttpConnection(H11Protocol):
    """A connection, from its acceptance, before it becomes a WebSocket. One too many is closed before anything is read.

    That of a proxy is answered first: a proxy takes a connection without an answer for a failed server, and leaves the
    server out.
    """

    network = ""
    _refused = _answered = False
    _opened = itertools.count()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _Parser(h11.SERVER)
        self._securing: asyncio.Task[None] | None = None
        self._early: list[bytes] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.number = next(self._opened)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        assert isinstance(self.config, Settings)
        limits, self.network = self.config.limits, _network(self)
        same = [connection for connection in self.connections if getattr(connection, "network", None) == self.network]
        too_many = _exceed(self.connections, limits.connections)
        if self.config.is_proxy(self.client):
            self._refused = too_many
        elif _exceed(same, limits.connections_of_address) or (too_many and not self._displaces()):
            transport.abort()
            return
        if self.config.tls is not None:
            self._securing = self.loop.create_task(self._secure(self.config.tls))

    async def _secure(self, context: ssl.SSLContext) -> None:
        """Do the handshake of TLS. asyncio tells of a connection after it, and its own limit is a minute."""
        self._early, secure = [], None
        try:
            secure = await self.loop.start_tls(self.transport, self, context, server_side=True)
        except OSError as error:  # it is not TLS, or the other side has gone
            error.__traceback__ = None  # it would keep the buffers until a collection of garbage
        early, self._early = b"".join(self._early), None
        if secure is None:
            self.connection_lost(None)
            return
        super().connection_made(secure)
        if early:
            self.data_received(early)

    @property
    def waits(self) -> bool:
        """Whether no request has come, or none after the last answer."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing()

    def _displaces(self) -> bool:
        """Whether the oldest connection without a whole request, of the address that has most of them, is closed for this one."""
        assert isinstance(self.config, Settings)
        waiting = [
            other
            for other in self.connections
            if isinstance(other, HttpConnection)
            and (other.waits or (other.cycle is not None and other.cycle.more_body))
            and not other.transport.is_closing()
            and other is not self
            and not self.config.is_proxy(other.client)
        ]
        if (loser := gives_way([other.network for other in waiting], self.network)) is None:
            return False
        min((other for other in waiting if other.network == loser), key=lambda other: other.number).transport.abort()
        return True

    def data_received(self, data: bytes) -> None:
        if self._early is not None:  # it came with the end of the handshake
            self._early.append(data)
        elif not self._refused:
            super().data_received(data)
        elif not self._answered:
            self._answered = True
            self.transport.write(_FULL)
            if self.transport.can_write_eof():  # closed with a request unread, the answer could be lost
                self.transport.write_eof()
            else:
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer is on its way
            self.transport.abort()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket whose memory is bounded, whatever the other side sends and however little it reads."""

    network = ""
    _frames = 0
    _heard = False  # whether anything has come since the last ping

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ended, self._answered = asyncio.Event(), asyncio.Event()  # see CLOSING
        self._small = CountInSecond()  # of pings and small frames

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.network = _network(self)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        for begin in range(0, len(data), _PIECE_BYTES):
            if self.transport.is_closing():
                break
            super().data_received(data[begin : begin + _PIECE_BYTES])
            if self.conn.handshake_exc is not None and not self.handshake_initiated:
                # websockets has refused the request by itself, which uvicorn does not notice.
                self.transport.write(b"".join(self.conn.data_to_send()))
                self.transport.close()

    def handle_events(self) -> None:
        small = sum(isinstance(event, Frame) and _is_small(event) for event in self.conn.events)
        if self._small.add(small, self.loop.time()) > _MOST_SMALL:
            self.conn.fail(CloseCode.POLICY_VIOLATION, f"more than {_MOST_SMALL} pings and small frames in a second")
            self.handle_parser_exception()
        else:
            super().handle_events()

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:  # what came before the handshake was answered makes no frames
            self.transport.close()
        else:
            super().handle_parser_exception()

    async def receive(self) -> Any:
        if self.queue.qsize() % _TURN_MESSAGES == _TURN_MESSAGES - 1:
            await asyncio.sleep(0)  # of messages that came together, so that others get their turn
        return await super().receive()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][CLOSING] = {"ended": self._ended, "answered": self._answered}

    def handle_close(self, event: Frame) -> None:
        if self.close_sent:
            self._answered.set()
            self._ended.set()
        super().handle_close(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        super().connection_lost(exc)

    def send_keepalive_ping(self) -> None:
        self._heard = False
        super().send_keepalive_ping()

    def keepalive_timeout(self) -> None:
        """Fail a connection from which nothing comes. An answer may wait behind audio that is not read yet."""
        if not self._heard and not self.read_paused:
            super().keepalive_timeout()
        elif self.ping_timeout is not None:
            self._heard = False
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # it was refused with an answer; uvicorn would log an error

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            if sum(map(len, self.frames)) > _LONG_TEXT_BYTES and isinstance(self.config, Settings):
                self.config.large_s = self.loop.time()
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log it
                self.conn.fail(CloseCode.INVALID_DATA, "text must be UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

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

    def __init__(
        self,
        app: ASGIApp,
        limits: ServerLimits,
        proxies: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        graceful_s: int = 5,
    ) -> None:
        """``proxies``: addresses or networks of reverse proxies, whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed.

        ``tls``: for https; uvicorn's own setting, ``ssl``, stays None. ``graceful_s``: how long connections may take to close when
        the server ends.
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
            backlog=_BACKLOG,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            timeout_graceful_shutdown=graceful_s,
        )
        self.limits, self.tls = limits, tls
        if tls is not None:
            SSLProtocol.max_size = _READ_BYTES
        self.large_s = -_GIVE_BACK_S
        """When the last long text came, or many connections had gone."""
        self._proxies = [ipaddress.ip_network(network) for network in proxies]

    def is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Whether a client's address is that of a reverse proxy."""
        if client is None or not self._proxies:
            return False
        address = ipaddress.ip_address(client[0])
        return any(address in network for network in self._proxies)


class Overdue:
    """Finds connections that have been in a state without progress for too long. uvicorn has no limits for these."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._since: WeakKeyDictionary[Connection, tuple[Hashable, float]] = WeakKeyDictionary()

    def among(self, connections: Iterable[Connection], now_s: float) -> list[Connection]:
        """Those that are overdue, of all connections."""
        late = []
        for connection in connections:
            state, limit_s = self._state(connection)
            before, since_s = self._since.get(connection, (None, now_s))
            if state is None or state != before:
                self._since[connection] = (state, now_s)
            elif now_s - since_s >= limit_s:
                late.append(connection)
        return late

    def _state(self, connection: Connection) -> tuple[Hashable, float]:
        """What the connection waits for, and how long it may; None: nothing in particular."""
        limits = self._limits
        if connection.transport.is_closing():  # the other side does not take what is left
            return "closing", limits.closing_s
        if isinstance(connection, HttpConnection):
            cycle = connection.cycle
            if connection.waits:
                return ("request", id(cycle)), limits.request_s
            if connection.transport.get_write_buffer_size():
                return ("answer", id(cycle)), limits.answer_s
        return None, 0.0


async def sweep(server: uvicorn.Server, limits: ServerLimits) -> None:
    """Abort overdue connections and give the memory of long texts and of many connections back, for ever."""
    assert isinstance(server.config, Settings)
    overdue, most = Overdue(limits), 0
    while True:
        await asyncio.sleep(_SWEEP_S)
        connections = [opened for opened in server.server_state.connections if isinstance(opened, Connection)]
        for connection in overdue.among(connections, asyncio.get_running_loop().time()):
            connection.transport.abort()
        most = max(most, len(connections))
        if most >= _MANY_CONNECTIONS and len(connections) <= most // 2:
            most, server.config.large_s = len(connections), asyncio.get_running_loop().time()
        if asyncio.get_running_loop().time() - server.config.large_s < _GIVE_BACK_S:
            await asyncio.to_thread(give_back_memory)


def _network(connection: object) -> str:
    """The address of the other side, or its network if it is of IPv6."""
    client = getattr(connection, "client", None)
    return counted_as(client[0]) if client else ""


def _exceed(connections: Collection[object], limit: int) -> bool:
    """Whether there are more connections than the limit, without those that are about to end."""
    over = len(connections) - limit
    return over > 0 and sum(map(_is_gone, connections)) < over


def _is_gone(connection: object) -> bool:
    """Whether a connection ends in this turn of the loop or so: it is closing, and nothing is left to send. One with TLS may stay."""
    transport: asyncio.Transport = connection.transport  # type: ignore[attr-defined]
    closing = transport.is_closing() and transport.get_extra_info("ssl_object") is None
    return closing and not transport.get_write_buffer_size()


def _is_small(frame: Frame) -> bool:
    return frame.opcode in (Opcode.PING, Opcode.PONG) or len(frame.data) < _SMALL_BYTES
