"""Programs of this machine that reach ``--wyoming``, which has no token: lines, lengths and events that are wrong, or too many."""

import asyncio
import json
import random
from typing import Any

import pytest

from tests.server.attacks.attacking import HELD_MS, Server, attacked
from tests.server.test_deploy import free_port

pytestmark = pytest.mark.slow


def event(kind: object, data: object = None, **more: object) -> bytes:
    return json.dumps({"type": kind, **({"data": data} if data is not None else {}), **more}).encode() + b"\n"


SOUND = {"rate": 16_000, "width": 2, "channels": 1}
NAMES: list[Any] = ["x", "translate-", "translate-" + "a" * 60_000, "translate-zh\n", 5, [1], {"a": 1}, "\ud800"]
NAMES.append("translate-en-" + "-".join(f"v{number:05d}" for number in range(8_000)))
WRONG = {
    "http": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    "zeros": bytes(1_000) + b"\n",
    "a long line": b"a" * 200_000,
    "depth": b"[" * 60_000 + b"\n",
    "lists": b'{"type": "ping", "data": {"text": [' + b"[]," * 21_000 + b"[]]}}\n",
    "deep data": b'{"type": "describe", "data":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}\n",
    "digits": b'{"type": "audio-start", "data": {"rate": ' + b"9" * 60_000 + b"}}\n",
    "a list": b"[1]\n",
    "no type": b"{}\n",
    "a number": event(1),
    "less than nothing": event("describe", data_length=-1),
    "huge data": event("describe", data_length=1 << 62),
    "a huge payload": event("audio-chunk", payload_length=1 << 40),
    "yes": event("describe", data_length=True),
    "lists as data": event("describe", data_length=60_001) + b"[" + b"[]," * 19_999 + b"[]]\n",
    "data that is no JSON": event("describe", data_length=3) + b"abc",
    "data that is a list": event("describe", [1]),
    "audio first": event("audio-chunk", SOUND),
    "a stop first": event("audio-stop"),
    "two starts": event("audio-start", SOUND) * 2,
    "a fast rate": event("audio-start", SOUND | {"rate": 10**9}),
    **{f"name {str(name)[:20]}": event("transcribe", {"name": name}) + event("audio-start", SOUND) for name in NAMES},
    **{
        f"language {str(name)[:20]}": event("transcribe", {"language": name}) + event("audio-start", SOUND)
        for name in NAMES
    },
}
MANY = {
    "empty lines": b"\n" * 40_000,
    "pings": event("ping", {"text": "a" * 100}) * 10_000,
    "descriptions": event("describe") * 500,
    "unknown events": event("x") * 40_000,
}


async def sent(server: Server, port: int, data: bytes) -> bytes:
    """Send bytes, and what ends a connection that is left open; return what comes."""
    reader, writer = await server.opened(port)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def test_wrong_events_are_answered_and_hold_nobody():
    port = free_port()
    async with attacked("--wyoming", f"tcp://127.0.0.1:{port}") as server:
        wrong, answers = [], {}
        for name, data in WRONG.items():

            async def attack(name: str = name, data: bytes = data) -> None:
                answers[name] = await sent(server, port, data)

            if (held_ms := await server.holds(attack)) > HELD_MS:
                wrong.append(f"{name}: {held_ms:.0f} ms")
        assert not wrong
        told = {name for name, answer in answers.items() if b'"error"' in answer}
        assert set(WRONG) - told <= {"lists", "lists as data", "language x", "name translate-zh\n", "yes"}
        assert not server.log


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
