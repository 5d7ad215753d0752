"""Places that captions are sent to, and what they may answer: no other address is asked, nothing is kept, the talk goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.server.attacks.attacking import attacked

pytestmark = pytest.mark.slow

ANSWERS: dict[str, list[bytes]] = {
    "a redirection": [b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n"],
    "an endless body": [b"HTTP/1.1 200 OK\r\n\r\n", *[b"a" * 65_536] * 3_000],
    "endless headers": [b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"a" * 60_000 + b"\r\n"] * 3_000],
    "a line without end": [b"HTTP/1.1 200 OK\r\nX: ", *[b"a" * 65_536] * 3_000],
    "a failure": [b"HTTP/1.1 503 x\r\nRetry-After: 999999\r\nContent-Length: 0\r\n\r\n"],
    "no HTTP": [b"\x16\x03\x01garbage\r\n\r\n"],
    "nothing": [],
}


@asynccontextmanager
async def place(answer: list[bytes], elsewhere: int = 0) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers each request so: its port, and the requests."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            for part in answer:
                writer.write(part % elsewhere if b"%d" in part else part)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_place_that_answers_so_costs_a_talk_nothing(name):
    async with place([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]) as (other, others):  # noqa: SIM117
        async with place(ANSWERS[name], other) as (port, asked):
            async with attacked("--push", f"webhook=http://127.0.0.1:{port}/") as server:
                await server.talk()
                before = await server.figures()
                for _ in range(3):
                    assert (await server.talk())[0, "zh"]
                while not asked:
                    await asyncio.sleep(0.01)
                after = await server.figures()
                assert after.memory_mb - before.memory_mb < 60.0, "each answer has 180 MB"
                assert after.held_ms < 10.0
                assert not others
                assert "Traceback" not in server.log
                assert len(server.log) < 4_000
