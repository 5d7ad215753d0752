"""Programs of this machine that reach ``--wyoming``, which has no token: lines, lengths and events that are wrong, or too many."""

import asyncio
import json
import random

import pytest

from tests.server.attacks.attacking import HELD_MS, Server, attacked
from tests.server.test_deploy import free_port

pytestmark = pytest.mark.slow


def event(kind: object, data: object = None, **more: object) -> bytes:
    return json.dumps({"type": kind, **({"data": data} if data is not None else {}), **more}).encode() + b"\n"


SOUND = {"rate": 16_000, "width": 2, "channels": 1}
MANY = {
    "empty lines": b"\n" * 40_000,
    "pings": event("ping", {"text": "a" * 100}) * 10_000,
    "descriptions": event("describe") * 500,
    "unknown events": event("x") * 40_000,
    "lists": b'{"type": "ping", "data": {"text": [' + b"[]," * 21_000 + b"[]]}}\n",
    "lists beside the line": event("ping", data_length=60_004) + b"[" + b"[]," * 20_000 + b"[]]",
    "depth": b"[" * 60_000 + b"\n",
}


async def sent(server: Server, port: int, data: bytes) -> bytes:
    """Send bytes, and what ends a connection that is left open; return what comes."""
    reader, writer = await server.opened(port)
    writer.write(data)
    try:
        writer.write_eof()
        return await reader.read()
    except OSError:  # the server has closed it
        return b""
    finally:
        writer.transport.abort()


async def test_many_and_mutated_events_hold_nobody_and_leave_nothing():
    port, chance = free_port(), random.Random(1)
    kinds = "describe", "audio-start", "audio-chunk", "transcribe", "audio-stop", "ping"
    async with attacked("--wyoming", f"tcp://127.0.0.1:{port}", messages_a_second=1e6) as server:
        await server.talk()
        before = await server.figures()
        for data in MANY.values():
            assert await server.holds(lambda data=data: sent(server, port, data)) <= HELD_MS
        for _ in range(200):
            mutated = bytearray(
                event(chance.choice(kinds), SOUND, payload_length=chance.choice((0, 2, 100))) + b"ab" * 50
            )
            for _ in range(chance.randint(1, 6)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            await sent(server, port, bytes(mutated))
        await server.loses_nothing_beside(lambda: sent(server, port, MANY["unknown events"]))
        await server.gives_back(before, 15.0)
        assert not server.log


async def test_idle_connections_leave_no_room_and_that_is_told():
    port = free_port()
    async with attacked("--wyoming", f"tcp://127.0.0.1:{port}") as server:
        await server.talk()
        before = await server.figures()
        held = [await server.opened(port) for _ in range(130)]
        assert sum([b"busy" in await reader.read() for reader, _ in held[100:]]) == 30
        await server.talk()
        for _, writer in held:
            writer.transport.abort()
        while b'"info"' not in await sent(server, port, event("describe")):
            await asyncio.sleep(0.01)
        await server.gives_back(before, 15.0)
