"""Attacks on a server that take more than half a minute: more connections than it takes, and than its machine has descriptors for."""

import asyncio
import socket
from contextlib import suppress

import pytest

from tests.conftest import HANG_S
from tests.server.attacks.attacking import attacked
from tests.server.attacks.test_requests import test_no_request_of_a_stranger_to_any_route_holds_the_others

__all__ = ["test_no_request_of_a_stranger_to_any_route_holds_the_others"]


@pytest.fixture
def step():
    """Each header is sent to each route."""
    return 1


@pytest.mark.parametrize("count", [3_000, 10_000])
async def test_thousands_of_half_open_handshakes_take_little_memory_beside_a_talk(count, tmp_path, monkeypatch):
    """Of 40 addresses; a thousand of them are open at once, which is the limit."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    async with attacked("--tls", "auto") as server:
        await server.talk()
        before, most_mb = await server.figures(), 0.0

        def open_some(first: int) -> None:
            sockets = []
            for number in range(first, first + 1_000):
                with suppress(OSError):
                    source = f"127.2.0.{1 + number % 40}", 0
                    sockets.append(socket.create_connection(("127.0.0.1", server.port), HANG_S, source))
                    sockets[-1].sendall(b"\x16\x03\x01\x02\x00\x01")
            held.append(sockets)

        held: list[list[socket.socket]] = []

        async def attack() -> None:
            nonlocal most_mb
            for first in range(0, count, 1_000):
                await asyncio.to_thread(open_some, first)
                most_mb = max(most_mb, (await server.figures()).memory_mb)
                for each in held.pop():
                    each.close()

        await server.loses_nothing_beside(attack)
        assert 0.0 < most_mb - before.memory_mb < 300.0
        await server.gives_back(before, 30.0)
        assert not server.log
