"""Strangers before their first request: connections that say nothing, too little, or are many; a talk beside them loses nothing."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.conftest import HANG_S
from tests.server.attacks.attacking import HELD_MS, Server, attacked, elsewhere
from tests.server.attacks.test_requests import request, routes

pytestmark = pytest.mark.slow

EACH_MB = 0.3
"""That a connection may take; there are 1,000 at most."""
CROWD = 200
BEGUN = {
    "nothing": b"",
    "half a handshake": b"\x16\x03\x01\x02\x00\x01",
    "half a line": b"GET /healthz HTTP/1.1\r\nHost: 127",
    "half a body": b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n",
}


@contextmanager
def crowd(server: Server, begun: bytes) -> Iterator[Callable[[], None]]:
    """Opens connections of four addresses, more than the server takes, in the place of those before."""
    sockets: list[socket.socket] = []

    def close() -> None:
        while sockets:
            sockets.pop().close()

    def open_all() -> None:
        close()
        for number in range(CROWD * 5 // 4):
            with suppress(OSError):
                source = f"127.2.0.{1 + number % 4}", 0
                sockets.append(socket.create_connection(("127.0.0.1", server.port), HANG_S, source))
                sockets[-1].sendall(begun)

    try:
        yield open_all
    finally:
        close()


@pytest.mark.parametrize("begun", BEGUN)
async def test_a_crowd_that_sends_no_request_takes_little_memory_and_a_talk_goes_on(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    options = ["--tls", "auto"] if begun == "half a handshake" else []
    async with attacked(*options, request_s=2.0, connections=CROWD) as server:
        await server.talk()
        before, most = await server.figures(), (await server.figures())
        with crowd(server, BEGUN[begun]) as open_all:

            async def attack() -> None:
                nonlocal most
                await asyncio.to_thread(open_all)
                for _ in range(3):  # of another address
                    await server.talk_a_little()  # it is accepted after those
                    most = max(most, await server.figures(), key=lambda each: each.files)

            await server.loses_nothing_beside(attack)
        assert CROWD // 2 < most.files < 1.4 * CROWD  # some are being closed, or are taken at once
        assert most.memory_mb - before.memory_mb < EACH_MB * CROWD
        await server.gives_back(before)
        assert not server.log


@pytest.mark.parametrize("files", [0, 256])
async def test_a_burst_of_connections_holds_nobody_and_is_told_in_a_line(files):
    async with attacked(files=files) as server:
        await server.talk()
        before = await server.figures()

        def burst() -> None:
            sockets, source = [], elsewhere()
            for _ in range(1_000):
                each = socket.socket()
                each.setblocking(False)
                each.bind(source)
                with suppress(BlockingIOError):
                    each.connect(("127.0.0.1", server.port))
                sockets.append(each)
            for each in sockets:
                each.close()

        assert await server.holds(lambda: asyncio.to_thread(burst)) <= HELD_MS
        await server.loses_nothing_beside(lambda: asyncio.to_thread(burst))
        await server.gives_back(before, 30.0)
        assert len(server.log.splitlines()) <= 2, server.log


async def test_a_body_that_comes_too_slowly_ends_the_connection_on_every_route(tmp_path):
    """A byte now and then, or nothing, of what was announced."""
    async with attacked(request_s=0.5, upload_s=1.0) as server:

        async def closes(method: str, path: str, kind: str, trickles: bool) -> None:
            reader, writer = await server.opened()
            data = request(method, path, {"Content-Type": kind, "Content-Length": "100000", "Connection": "keep-alive"})
            writer.write(data)
            reading = asyncio.create_task(reader.read())
            while not reading.done():
                await asyncio.sleep(0.1)
                if trickles:
                    writer.write(b"a")
            with suppress(ConnectionError):
                await reading
            writer.transport.abort()

        kinds = "application/json", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
        targets = [(method, path) for method, path, needed in routes() if not needed]
        async with asyncio.TaskGroup() as group:
            for method, path in targets:
                for kind in kinds if method == "POST" else kinds[:1]:
                    for trickles in (True, False):
                        group.create_task(closes(method, path, kind, trickles))
        await server.talk()
        assert not server.log
