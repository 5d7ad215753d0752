"""A server in the test's own event loop, and clients of its WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.routing import BaseRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pipeline import Models, PipelineConfig
from pipeline.apps.serve import listening, serve
from pipeline.events import Samples
from pipeline.server.access import Access
from pipeline.server.app import create_app
from pipeline.server.options import ServerLimits
from pipeline.server.service import Service
from tests.conftest import HANG_S

CHUNK = 1_600


class Running:
    """A server that runs, and the address of its WebSocket."""

    def __init__(self, service: Service, stopping: asyncio.Event, port: int) -> None:
        self.service, self.port = service, port
        self._stopping = stopping

    def stop(self) -> None:
        """Tell the server to stop, as a signal does."""
        self._stopping.set()

    @property
    def address(self) -> str:
        """Of OpenAI's interface."""
        return f"http://127.0.0.1:{self.port}/v1"

    def connect(self, name: str = "127.0.0.1", path: str = "/v1/session", **options: Any) -> connect:
        """A new connection of a client that calls the server ``name``."""
        address = f"ws://{name}:{self.port}{path}"
        return connect(address, host="127.0.0.1", max_size=None, proxy=None, **options)


def serving(config: PipelineConfig, models: Models, **limits: Any) -> Service:
    """A service with these limits; without them, an address may connect often."""
    return Service(config, models, ServerLimits(**{"connections_a_minute": 10_000, **limits}))


@asynccontextmanager
async def running(
    service: Service, access: Access | None = None, routes: Sequence[BaseRoute] = ()
) -> AsyncIterator[Running]:
    """Run a server for ``service`` as the command does, on a free port; drain it at the end."""
    config = uvicorn.Config(
        create_app(service, access, routes),
        lifespan="off",
        log_config=None,
        ws="websockets-sansio",
        ws_max_size=service.limits.message_bytes,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    stopping = asyncio.Event()
    with listening("127.0.0.1", 0) as listener:
        served = asyncio.create_task(serve(server, service, listener, stopping))
        try:
            async with asyncio.timeout(HANG_S):
                yield Running(service, stopping, listener.getsockname()[1])
        finally:
            stopping.set()
            await served


async def say(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))


async def heard(socket: ClientConnection) -> dict[str, Any]:
    """The next message that is no status."""
    while (record := json.loads(await socket.recv()))["type"] == "status":
        pass
    return record  # type: ignore[no-any-return]


async def speak(socket: ClientConnection, samples: Samples) -> None:
    """Send audio, 0.1 s a message."""
    for begin in range(0, len(samples), CHUNK):
        await socket.send(samples[begin : begin + CHUNK].astype("<i2").tobytes())


async def rest(socket: ClientConnection) -> list[dict[str, Any]]:
    """All further messages but those of status, until the server closes the connection."""
    found = []
    try:
        while True:
            found.append(await heard(socket))
    except ConnectionClosed:
        return found


def final(records: Sequence[dict[str, Any]]) -> dict[tuple[int, str], str]:
    """The final texts in these messages: (sentence, language) → text. A snapshot counts as its events."""
    found = {}
    for record in records:
        for one in record["events"] if record["type"] == "snapshot" else [record]:
            if one["type"] in ("source_sentence", "translation"):
                found[one["sentence"], one["language"]] = one["text"]
    return found
