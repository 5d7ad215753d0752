"""A server in a process of its own, what an attack costs it, and a talk beside the attack."""

import asyncio
import itertools
import json
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, ROOT, read_wav
from tests.server.running import Texts, ask, final, finish, speak

HELD_MS = 10.0
"""For which a message or request of a stranger may hold the others: the work of one turn of the loop."""
STAYS_MB = 8.0
"""What an attack may leave in memory, of which fragments of others' are a part."""
TRIES = 5
SPEECH = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)]

_LOOKS = 300
_USUAL = ("INFO: ", "serving ", "its certificate", "Translator does not translate the terms")
_hosts = itertools.count(2)


def elsewhere() -> tuple[str, int]:
    """An address that nobody has connected from: limits are those of an address."""
    number = next(_hosts)
    return f"127.1.{number // 250}.{number % 250 + 1}", 0


@dataclass(frozen=True)
class Figures:
    """What a server has done: ``held_ms``, since the last were asked for."""

    held_ms: float
    loop_s: float
    cpu_s: float
    memory_mb: float
    files: int


class Server:
    """The command in its process."""

    def __init__(self, process: asyncio.subprocess.Process, said: bytes) -> None:
        self.process, self.said = process, bytearray(said)
        found = re.search(rb"serving on (https?)://[^/]*:(\d+)/", said)
        assert found is not None, said.decode()
        self.port, self.client_tls = int(found[2]), _unchecked() if found[1] == b"https" else None
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while part := await self.process.stderr.read(1 << 16):
            self.said += part

    @property
    def log(self) -> str:
        """What was logged since the start, but for lines of each session."""
        return "\n".join(line for line in self.said.decode().splitlines() if not line.startswith(_USUAL))

    async def figures(self) -> Figures:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        return Figures(**json.loads(await self.process.stdout.readline()))

    def connect(self, path: str = "/v1/session", **options: Any) -> connect:
        scheme = "wss" if self.client_tls else "ws"
        return connect(
            f"{scheme}://127.0.0.1:{self.port}{path}",
            ssl=self.client_tls, max_size=None, proxy=None, close_timeout=1, open_timeout=HANG_S, **options,
        )  # fmt: skip

    async def opened(self, port: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection from an address of its own, without TLS."""
        return await asyncio.open_connection("127.0.0.1", port or self.port, local_addr=elsewhere(), limit=1 << 22)

    async def sent(self, data: bytes, port: int = 0, whole: bool = True) -> bytes:
        """Send bytes, and return what comes until the connection ends. Without ``whole``: what comes first."""
        reader, writer = await self.opened(port)
        writer.write(data)
        try:
            return await (reader.read() if whole else reader.read(1 << 16))
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()

    async def holds(self, attack: Callable[[], Awaitable[object]]) -> float:
        """For how long an attack holds the loop, in ms of work: the least of some tries."""
        least_ms = float("inf")
        for _ in range(TRIES):
            await self.figures()
            await attack()
            await self.talk_a_little()
            least_ms = min(least_ms, (await self.figures()).held_ms)
            if least_ms <= HELD_MS:
                break
        return least_ms

    async def talk_a_little(self) -> None:
        """Let the server do what is left of an attack: it answers a request in its turn."""
        _, writer = connection = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client_tls)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert b"ok" in await connection[0].read()
        writer.close()

    async def talk(self, **start: Any) -> Texts:
        """A talk from its beginning to its end: its texts."""
        async with self.connect() as speaker:
            assert (await ask(speaker, type="start", **start))["type"] == "started"
            await speak(speaker, SPEECH)
            records = await finish(speaker)
            assert records[-1]["type"] == "end", records[-1]
            return final(records)

    async def loses_nothing_beside(self, attack: Callable[[], Awaitable[object]], **start: Any) -> None:
        """Check that a talk goes on from its beginning to its end while an attack is repeated all the time."""
        alone = await self.talk(**start)
        assert alone
        rounds = 0

        async def attacks() -> None:
            nonlocal rounds
            while True:
                await attack()
                rounds += 1
                await asyncio.sleep(0)

        attacking = asyncio.create_task(attacks())
        try:
            while rounds < 1 and not attacking.done():
                await asyncio.sleep(0.01)
            assert await self.talk(**start) == alone
            assert not attacking.done(), attacking.exception()
        finally:
            attacking.cancel()
            await asyncio.gather(attacking, return_exceptions=True)

    async def gives_back(self, before: Figures, more_mb: float = STAYS_MB) -> None:
        """Check that memory and connections get as they were, once the server has looked at them some times."""
        for _ in range(_LOOKS):
            now = await self.figures()
            if now.files <= before.files + 2 and now.memory_mb <= before.memory_mb + more_mb:
                return
            await self.talk_a_little()
            await asyncio.sleep(0.1)
        raise AssertionError(f"{before} became {now}")


def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@asynccontextmanager
async def attacked(
    *options: str | Path, translators: str = "scripted", files: int = 0, **limits: Any
) -> AsyncIterator[Server]:
    """A server for the time of the block. ``files``: that it may open; ``limits``: other ones than the command's."""
    if sys.platform != "linux":
        pytest.skip("reads memory and files from /proc")
    command = [sys.executable, "-m", "tests.server.attacks.served", translators, json.dumps(limits)]
    command += ["--config", "demo-zh", "--port", "0", *map(str, options)]
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(["prlimit", f"--nofile={files}", *command] if files else command),
        stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(HANG_S):
            assert process.stderr is not None
            said = b""
            while b"serving on" not in said and (line := await process.stderr.readline()):
                said += line
            yield Server(process, said)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def closed(socket: ClientConnection) -> int | None:
    """The code with which the server closes a WebSocket, whatever it says before."""
    with suppress(Exception):
        while True:
            await socket.recv()
    return socket.close_code
