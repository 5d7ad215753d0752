"""Clients that send too much, too little, or never read: they are cut, memory is bounded, and the others notice nothing."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
from starlette.applications import Starlette
from uvicorn.server import ServerState
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipeline.events import SourceSentence
from pipeline.server.connections import HttpConnection, Settings, SocketConnection
from pipeline.server.intake import Intake
from pipeline.server.limits import ServerLimits
from pipeline.server.scheduling import Priority
from tests.conftest import HANG_S
from tests.server.running import Running, ask, finish, heard, rest, running, say, speak, until

LARGE = 1 << 20


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.server.connections._SWEEP_S", 0.01)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: local", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n"])
async def test_a_connection_without_a_request_is_closed(begun, new_service):
    async with running(new_service(request_s=0.0)) as server:
        assert await server.raw(begun) == b""


async def test_a_request_whose_body_never_ends_is_closed(new_service):
    async with running(new_service(request_s=0.0)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"POST /x HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 999999\r\n\r\n".encode())
        assert b"404" in await reader.readline()

        async def trickle() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        try:
            await reader.read()  # until the server has closed it
        except ConnectionResetError:
            pass
        finally:
            trickling.cancel()
            writer.close()


@pytest.mark.parametrize("limit", ["connections", "connections_of_address"])
async def test_too_many_connections_at_once_are_closed(limit, new_service):
    async with running(new_service(**{limit: 3})) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        others = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(10)]
        await until(lambda: sum(reader.at_eof() for reader, _ in others) >= 8)
        assert not any(reader.at_eof() for reader, _ in others[:2])
        for _, writer in others:
            writer.close()
        assert (await finish(speaker))[-1]["type"] == "end"
        assert (await server.get("/healthz")).status == 200


class Opened(asyncio.Transport):
    """Stands for a connection from an address that this machine does not have."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 50_000)})
        self.aborted = self.closing = False
        self.left = 0

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted or self.closing

    def get_write_buffer_size(self) -> int:
        return self.left


def opened(
    addresses: list[str], proxies: list[str], limits: ServerLimits, closed: Callable[[Opened], None] = lambda _: None
) -> list[bool]:
    """Which of the connections from these addresses stay open. ``closed``: what happens to the first before the last comes."""

    async def work() -> list[bool]:
        settings = Settings(Starlette(), limits, proxies)
        settings.load()
        state, transports = ServerState(), [Opened(address) for address in addresses]
        for transport in transports:
            if transport is transports[-1]:
                closed(transports[0])
            HttpConnection(settings, state, {}).connection_made(transport)
        return [not transport.aborted for transport in transports]

    return asyncio.run(work())


def test_a_network_of_ipv6_has_the_connections_of_one_address():
    limits = ServerLimits(connections_of_address=2)
    addresses = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert opened(addresses, [], limits) == [True, True, False, True, True, True, True]


def test_a_proxy_has_all_connections():
    limits = ServerLimits(connections_of_address=1)
    addresses = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2", "2001:db8::1", "2001:db8::1"]
    assert opened(addresses, ["192.0.2.0/31", "2001:db8::1"], limits) == [True, True, True, False, True, True]


def test_connections_without_a_request_do_not_keep_others_out():
    """Those of the address that has most of them give way, the oldest first."""
    limits = ServerLimits(connections=5)
    one, two, other, another = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"
    addresses = [two, one, one, one, one, other, one, another]
    assert opened(addresses, [], limits) == [True, False, False, True, True, True, False, True]


@pytest.mark.parametrize("limits", [ServerLimits(connections=1), ServerLimits(connections_of_address=1)])
@pytest.mark.parametrize(
    ("left", "extra", "taken"), [(0, {}, True), (1, {}, False), (0, {"ssl_object": object()}, False)]
)
def test_a_connection_that_ends_in_this_turn_of_the_loop_makes_place(limits, left, extra, taken):
    """A burst that has gone and a newcomer are seen at once. One that has something left to send may stay, or the end of TLS."""

    def closed(transport: Opened) -> None:
        transport.closing, transport.left = True, left
        transport._extra.update(extra)

    assert opened(["192.0.2.1", "192.0.2.1"], [], limits, closed)[-1] == taken


@pytest.mark.parametrize("begun", [b"", b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"])
async def test_requests_are_answered_while_others_hold_unfinished_ones(begun, new_service):
    async with running(new_service(connections=3, request_s=HANG_S)) as server:
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
        for _, writer in held:
            writer.write(begun)
        connections = server.server.server_state.connections
        await until(lambda: sum((each.cycle is not None) is bool(begun) for each in connections) == 3)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=("127.0.0.2", 0))
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        assert b"200" in await reader.readline()
        for _, each in [*held, (reader, writer)]:
            each.close()


async def test_an_address_opens_so_many_a_minute(new_service):
    async with running(new_service(connections_a_minute=2)) as server:
        for _ in range(2):
            async with server.connect():
                pass
        with pytest.raises(InvalidStatus):
            async with server.connect():
                pass
        assert (await server.get("/healthz")).status == 200


@pytest.mark.parametrize("reads", [False, True])
async def test_messages_beside_audio_are_read_at_a_pace(reads, new_service):
    async with (
        running(new_service(messages_a_second=0.1)) as server,
        server.connect() as speaker,
        server.connect() as reader,
    ):
        session = (await ask(speaker, type="start"))["session"]
        await ask(reader, type="watch", session=session)
        socket = reader if reads else speaker
        for _ in range(9):
            await say(socket, type="add_target", language="zh")
        for _ in range(2):
            while (await heard(socket))["type"] != "targets":
                pass
        server.stop()
        assert sum(each["type"] == "targets" for each in await rest(socket)) < 5


async def test_an_address_does_not_keep_all_places_of_readers(new_service):
    async with running(new_service(max_viewers=3)) as server, server.connect() as speaker:
        session = (await ask(speaker, type="start"))["session"]
        readers = [await server.connect() for _ in range(3)]
        for reader in readers:
            assert (await ask(reader, type="watch", session=session))["type"] == "watching"
        async with server.connect(local_addr=("127.0.0.2", 0)) as other:
            assert (await ask(other, type="watch", session=session))["type"] == "watching"
            last = (await rest(readers[2]))[-1]
            assert (last["type"], last["code"], readers[2].close_code) == ("error", "busy", 1013)
            async with server.connect() as one_more:
                assert (await ask(one_more, type="watch", session=session))["code"] == "busy"
            assert (await finish(speaker))[-1]["type"] == "end"
            for reader in (*readers[:2], other):
                assert (await rest(reader))[-1]["type"] == "end"
        for reader in readers:
            await reader.close()


def stalled(socket: ClientConnection) -> None:
    """Read nothing more of a connection."""
    socket.transport.pause_reading()


async def served(server: Running, count: int) -> list[SocketConnection]:
    """The server's side of the WebSockets, once there are ``count``."""
    found: list[SocketConnection] = []

    def there() -> bool:
        found[:] = [each for each in server.server.server_state.connections if isinstance(each, SocketConnection)]
        return len(found) == count

    await until(there)
    return found


async def test_a_reader_that_does_not_read_is_cut(new_service, monkeypatch):
    monkeypatch.setattr("pipeline.server.websocket._SEND_S", 2.0)
    monkeypatch.setattr("pipeline.server.websocket._CLOSE_S", 0.0)
    limits = new_service(closing_s=0.0)
    async with running(limits) as server, server.connect() as speaker, server.connect(close_timeout=0) as reader:
        id = (await ask(speaker, type="start"))["session"]
        await say(reader, type="watch", session=id)
        while (await heard(reader))["type"] != "snapshot":
            pass
        stalled(reader)
        (session,) = server.service.sessions.values()
        sentences = 60
        for number in range(sentences):  # more than the system's buffers take
            session.readers.push(SourceSentence(number, "en", "x" * LARGE))
        largest = 0
        got = 0
        while got < sentences:
            got += (await heard(speaker))["type"] == "source_sentence"
            for each in server.server.server_state.connections:
                largest = max(largest, each.transport.get_write_buffer_size())
        assert largest < 3 * LARGE
        await served(server, 1)
        assert session.readers.count == 0
        assert (await finish(speaker))[-1]["type"] == "end"


@pytest.mark.slow
async def test_answers_to_pings_do_not_pile_up(new_service, monkeypatch):
    monkeypatch.setattr(
        "pipeline.server.connections._MOST_SMALL", 1_000_000
    )  # in a second; a client may send some each second
    async with running(new_service()) as server, server.connect(close_timeout=0) as socket:
        (connection,) = await served(server, 1)
        stalled(socket)
        ping = b"\x89\xfd" + bytes(4) + bytes(125)  # masked with zeros
        largest = 0
        for _ in range(200):
            socket.transport.write(ping * 1_000)
            await until(lambda: not socket.transport.get_write_buffer_size())
            largest = max(largest, connection.transport.get_write_buffer_size())
        assert not connection.writable.is_set()
        assert largest < LARGE


async def test_an_answer_to_a_ping_may_wait_behind_audio(new_service):
    limited = new_service(backlog_s=0.1)
    async with running(limited) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        (connection,) = await served(server, 1)
        with limited.scheduler.slot(Priority.FINAL):  # audio is not taken
            sending = asyncio.create_task(speak(speaker, np.zeros(16_000 * 60, np.int16)))
            await until(lambda: connection.read_paused)
            connection.send_keepalive_ping()
            connection.keepalive_timeout()  # as its timer does
            assert not connection.transport.is_closing()
        await sending
        assert (await finish(speaker))[-1]["type"] == "end"


async def test_a_connection_that_does_not_answer_pings_is_closed(new_service):
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        (connection,) = await served(server, 1)
        connection.send_keepalive_ping()
        connection.keepalive_timeout()
        await rest(speaker)
        assert speaker.close_code == 1011


async def test_what_is_read_at_once_is_small(new_service, monkeypatch):
    sizes: list[int] = []
    receive = SocketConnection.data_received

    def receiving(connection: SocketConnection, data: bytes) -> None:
        sizes.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(SocketConnection, "data_received", receiving)
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        await speaker.send(bytes(LARGE))
        await finish(speaker)
    assert sum(sizes) > LARGE
    assert max(sizes) <= 1 << 14


@pytest.mark.parametrize("fragments", [[b""] * 3_000, [b"x" * LARGE] * 100])
async def test_endless_messages_end_the_connection(fragments, new_service):
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        async with server.connect() as socket:
            await ask(socket, type="start")
            with pytest.raises(ConnectionClosed):
                await socket.send(fragments)
                while True:
                    await socket.recv()
        assert (await finish(speaker))[-1]["type"] == "end"


async def test_the_frames_of_a_message_count_for_that_message_alone(new_service):
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        for _ in range(3):
            await speaker.send([bytes(32)] * 600)
        assert (await finish(speaker))[-1]["type"] == "end"


async def test_audio_that_comes_too_fast_is_taken_as_fast_as_it_is_used(new_service, monkeypatch):
    most_s, push = 0.0, Intake.push

    def pushing(intake: Intake, data: bytes) -> None:
        nonlocal most_s
        push(intake, data)
        most_s = max(most_s, intake.waiting_s)

    monkeypatch.setattr(Intake, "push", pushing)
    async with running(new_service(backlog_s=1.0)) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        reading = asyncio.create_task(rest(speaker))
        await speak(speaker, np.zeros(16_000 * 120, np.int16))
        await say(speaker, type="end")
        assert (await reading)[-1]["duration_s"] == 120.0
    assert 0.0 < most_s <= 1.2


async def test_messages_without_audio_do_not_keep_a_session(new_service):
    async with running(new_service(idle_s=0.5)) as server, server.connect() as speaker:
        await ask(speaker, type="start")

        async def send() -> None:
            while True:
                await speaker.send(b"")
                await asyncio.sleep(0.01)

        sending = asyncio.create_task(send())
        try:
            assert (await rest(speaker))[-1]["code"] in ("idle", "ended")
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def test_what_is_refused_and_reset_is_in_the_figures(new_service):
    def figure(text: str, name: str) -> float:
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(name)))

    limited = new_service(waiting_events=1, max_recordings=0)
    async with running(limited) as server, server.connect() as speaker:
        await server.get("/", {"Host": "evil.example"})
        await server.get("/x", {"Origin": "http://evil.example"}, "POST")
        await server.get("/v1/audio/transcriptions", method="POST")
        limited.scheduler.refused_drafts = 3
        await ask(speaker, type="start")
        (session,) = limited.sessions.values()
        feed = session.attach()
        await feed.take()
        for number in range(2):
            feed.push(SourceSentence(number, "en", "x"))
        for _ in range(2):  # while the reader is there, and after it
            text = (await server.get("/metrics")).body.decode()
            assert figure(text, "speech_reader_resets_total") == 1
            session.readers.detach(feed)
        await finish(speaker)
        await until(lambda: not limited.sessions)
        text = (await server.get("/metrics")).body.decode()
        assert figure(text, "speech_reader_resets_total") == 1
        assert figure(text, 'speech_refused_requests_total{reason="host"}') == 1
        assert figure(text, 'speech_refused_requests_total{reason="origin"}') == 1
        assert figure(text, 'speech_refused_sessions_total{reason="busy"}') == 1
        assert figure(text, "speech_recordings ") == 0
        assert figure(text, "speech_refused_drafts_total") == 3


async def test_a_connection_too_many_of_a_proxy_is_answered(new_service):
    """A proxy takes a connection without an answer for a failed server."""
    limited = new_service(connections=2, request_s=HANG_S)
    async with running(limited, proxies=["127.0.0.1"]) as server:
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        connections = server.server.server_state.connections
        await until(lambda: len(connections) == 2)
        answer = await server.get("/healthz", {"X-Filler": "x" * LARGE})
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert b"too many connections" in answer.body
        for _, writer in held:
            writer.close()
        await until(lambda: not connections)
        assert (await server.get("/healthz")).status == 200
