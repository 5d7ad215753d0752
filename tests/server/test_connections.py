"""Connections before their handshake, and bodies and frames that cost more than they carry."""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from pipeline.apps.listening import ShortageError, listening, tls_context
from pipeline.apps.self_signed import self_signed
from pipeline.server.connections import Settings
from pipeline.server.intake import Intake
from pipeline.server.limits import ServerLimits
from tests.server.running import Running, ask, finish, read_response, running, until


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.server.connections._SWEEP_S", 0.01)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(["localhost"], tmp_path_factory.mktemp("tls"))[0]


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The settings of a server."""
    monkeypatch.setattr("asyncio.sslproto.SSLProtocol.max_size", 256 * 1024)  # taken back after the test
    context = tls_context(certificate, certificate)
    assert context is not None
    return context


def client_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    return context


def opened(server: Running) -> Iterator[bool]:
    """For each connection of the server, whether its handshake is done."""
    return (each.scheme in ("https", "wss") for each in server.server.server_state.connections)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_talk_goes_over_tls(new_service, tls, certificate):
    async with running(new_service(), tls=tls) as server:
        address = f"wss://127.0.0.1:{server.port}/v1/session"
        async with connect(address, ssl=client_tls(certificate), proxy=None) as speaker:
            assert (await ask(speaker, type="start"))["type"] == "started"
            await speaker.send(bytes(1 << 20))
            assert (await finish(speaker))[-1]["type"] == "end"


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_connection_that_does_not_finish_the_handshake_is_closed(begun, new_service, tls, caplog):
    async with running(new_service(request_s=0.0), tls=tls) as server:
        await server.raw(begun)
        await until(lambda: not server.server.server_state.connections)
    assert not errors(caplog)


async def test_connections_count_from_their_acceptance(new_service, tls):
    async with running(new_service(connections_of_address=3), tls=tls) as server:
        others = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(10)]
        await until(lambda: sum(reader.at_eof() for reader, _ in others) == 7)
        assert list(opened(server)) == [False] * 3
        for _, writer in others:
            writer.close()
        await until(lambda: not server.server.server_state.connections)


async def test_a_server_ends_although_handshakes_do_not(new_service, tls):
    async with running(new_service(), tls=tls) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await until(lambda: len(server.server.server_state.connections) == 1)
    writer.close()


async def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(new_service, tls, certificate):
    async with running(new_service(), tls=tls) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_tls(certificate).wrap_bio(incoming, outgoing)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(1 << 16))
        client.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n".encode())
        writer.write(outgoing.read())
        answer = b""
        while not answer.endswith(b"ok\n"):
            incoming.write(await reader.read(1 << 16))
            with suppress(ssl.SSLWantReadError):
                while part := client.read():
                    answer += part
        assert read_response(answer).status == 200
        writer.close()


async def test_buffers_of_tls_are_small(new_service, tls):
    async with running(new_service(), tls=tls) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await until(lambda: len(server.server.server_state.connections) == 1)
        (connection,) = server.server.server_state.connections
        await until(lambda: hasattr(connection.transport.get_protocol(), "get_buffer"))
        assert len(connection.transport.get_protocol().get_buffer(-1)) <= 1 << 14
        writer.close()


async def test_a_shortage_of_descriptors_is_told_in_one_line_and_connections_wait(new_service, monkeypatch, caplog):
    accept, tries = socket.socket.accept, 0

    def failing(listener: socket.socket) -> object:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.02)
    monkeypatch.setattr("pipeline.apps.listening._RETRY_S", 0.01)
    async with running(new_service()) as server:
        assert (await server.get("/healthz")).status == 200
    assert tries > 3
    (said,) = errors(caplog)
    assert "Too many open files" in said
    assert "ulimit -n" in said


def test_a_listener_waits_after_a_shortage_and_tells_of_it_once(monkeypatch, caplog):
    def failing(listener: socket.socket) -> None:
        raise OSError(errno.ENFILE, "Too many open files in system")

    monkeypatch.setattr(socket.socket, "accept", failing)
    with listening("127.0.0.1", 0) as listener:
        with pytest.raises(ShortageError):
            listener.accept()
        with pytest.raises(BlockingIOError):  # as if nobody waited
            listener.accept()
        monkeypatch.setattr(listener, "_retry_s", 0.0)
        with pytest.raises(ShortageError):
            listener.accept()
    assert len(errors(caplog)) == 1


def test_few_connections_of_a_burst_are_accepted_at_once():
    # asyncio accepts as many in one turn of its loop.
    assert Settings(Starlette(), ServerLimits()).backlog <= 64


CHUNKED = "Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("request_line", ["POST /translate", "GET /healthz", "POST /missing"])
async def test_a_body_in_tiny_chunks_is_refused(request_line, new_service, caplog):
    async with running(new_service()) as server:
        head = f"{request_line} HTTP/1.1\r\n{CHUNKED}".encode()
        answers = [
            read_response(await server.raw(head + b"1\r\na\r\n" * count + b"0\r\n\r\n")) for count in (1_000, 60)
        ]
        assert [b"Invalid HTTP request" in answer.body for answer in answers] == [True, False]
        assert answers[0].status == 400
        await until(lambda: not server.server.server_state.connections)
    assert not errors(caplog)


async def test_a_long_body_in_short_chunks_is_read(new_service):
    async with running(new_service()) as server:
        parts = [b'{"other": "', *[b"a" * 64] * 2_000, b'"}', b""]
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        answer = await server.raw(f"POST /translate HTTP/1.1\r\n{CHUNKED}".encode() + body)
        assert b"missing q parameter" in answer


async def test_a_malformed_body_after_the_answer_has_begun_ends_the_connection(new_service, caplog, monkeypatch):
    monkeypatch.setattr("pipeline.server.guard._IDLE_S", 0.0)
    async with running(new_service()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"POST /missing HTTP/1.1\r\n{CHUNKED}".encode() + b"1\r\na\r\n")
        assert b"404" in await reader.readline()
        writer.write(b"no chunk\r\n")
        await until(lambda: not server.server.server_state.connections)
        writer.close()
    assert not errors(caplog)


def masked(opcode: int, data: bytes = b"", end: bool = True) -> bytes:
    """A short frame of a client, masked with zeros."""
    return bytes([0x80 * end | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data


FRAMES = {
    "pings": masked(9),
    "long pings": masked(9, bytes(125)),
    "pongs": masked(10),
    "empty audio": masked(2),
    "empty text": masked(1),
    "tiny audio": masked(2, b"ab"),
    "empty fragments": masked(2, end=False) + masked(0, end=False) * 3 + masked(0),
}


@pytest.mark.parametrize("kind", FRAMES)
async def test_many_pings_and_small_frames_end_the_connection(kind, new_service, caplog):
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        async with server.connect() as socket:
            await ask(socket, type="start")
            socket.transport.write(FRAMES[kind] * 300)
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await socket.recv()
            if kind != "empty text":  # the first one is no message
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1008
        assert (await finish(speaker))[-1]["type"] == "end"
    assert not errors(caplog)


async def test_frames_that_came_together_let_others_have_their_turn(new_service, monkeypatch):
    turns, taken, push = 0, list[int](), Intake.push

    def pushing(intake: Intake, data: bytes) -> None:
        taken.append(turns)
        push(intake, data)

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Intake, "push", pushing)
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        turning = asyncio.create_task(turn())
        speaker.transport.write(masked(2, bytes(32)) * 400)
        await until(lambda: len(taken) == 400)
        turning.cancel()
        assert max(Counter(taken).values()) <= 64
        assert (await finish(speaker))[-1]["type"] == "end"
