"""A server in the test's own event loop, and clients of its WebSocket."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import av
import numpy as np
import uvicorn
from starlette.routing import BaseRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pipeline import Models, PipelineConfig
from pipeline.apps.listening import listening
from pipeline.apps.serve import serve
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.translator import SpeechTranslator
from pipeline.events import Samples, SourceSentence, TargetText, Translation
from pipeline.server.access import Access
from pipeline.server.app import create_app
from pipeline.server.connections import Settings
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from tests.conftest import HANG_S

CHUNK = 1_600
SPOKEN = slice(168_000, 256_000)
"""The part of ``PHRASES`` that the microphone hears: two sentences, without a number, which a recogniser may write in figures."""


@dataclass(frozen=True)
class Response:
    """An answer; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def read_response(data: bytes) -> Response:
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Response(int(status.split()[1]), {name.lower(): value for name, value in headers.items()}, body)


class Running:
    """A server that runs, and the address of its WebSocket."""

    def __init__(self, service: Service, server: uvicorn.Server, stopping: asyncio.Event, port: int) -> None:
        self.service, self.server, self.port = service, server, port
        self._stopping = stopping

    def stop(self) -> None:
        """Tell the server to stop, as a signal does."""
        self._stopping.set()

    @property
    def address(self) -> str:
        """Of OpenAI's interface."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Response:
        """Send one request, with the path as it is, and read the answer to its end."""
        lines = [f"{method} {path} HTTP/1.1", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items()]
        return read_response(await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1")))

    async def raw(self, data: bytes) -> bytes:
        """Send bytes and read what comes until the server closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    def connect(self, name: str = "127.0.0.1", path: str = "/v1/session", **options: Any) -> connect:
        """A new connection of a client that calls the server ``name``."""
        address = f"ws://{name}:{self.port}{path}"
        return connect(address, host="127.0.0.1", max_size=None, proxy=None, **options)


class Hebrew:
    """Stands for a second translator, which the demo does not have: capitals after a Hebrew word."""

    code = "he"

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        sentence = request.sentence
        text = f"תרגום {sentence.text.upper()}"
        yield TargetText(sentence.sentence, self.code, text, steady=len(text), complete=True)
        yield Translation(sentence.sentence, self.code, text)


def with_hebrew(config: PipelineConfig, models: Models) -> tuple[PipelineConfig, Models]:
    """The demo with a second language, written from right to left."""
    languages = replace(config.languages, targets=(*config.languages.targets, Hebrew.code))
    translations: Mapping[str, Any] = {**models.translations, Hebrew.code: Hebrew()}
    return replace(config, languages=languages), replace(models, translations=translations)


Texts = dict[tuple[int, str], str]
"""(sentence, language) → final text."""
NewService = Callable[..., Service]
"""Makes a service of the demo with limits, by keyword; the fixture ``new_service``."""


def serving(config: PipelineConfig, models: Models, **limits: Any) -> Service:
    """A service with these limits; without them, an address may connect often."""
    return Service(config, models, ServerLimits(**{"connections_a_minute": 10_000, **limits}))


@asynccontextmanager
async def running(
    service: Service,
    access: Access | None = None,
    routes: Sequence[BaseRoute] = (),
    tls: ssl.SSLContext | None = None,
    proxies: Sequence[str] = (),
    shared_at: str | None = None,
) -> AsyncIterator[Running]:
    """Run a server for ``service`` as the command does, on a free port; drain it at the end."""
    app = create_app(service, access, routes, lambda: shared_at)
    settings = Settings(app, service.limits, proxies, tls, graceful_s=1)
    server = uvicorn.Server(settings)
    stopping = asyncio.Event()
    with listening("127.0.0.1", 0) as listener:
        served = asyncio.create_task(serve(server, service, listener, stopping))
        try:
            async with asyncio.timeout(HANG_S):
                yield Running(service, server, stopping, listener.getsockname()[1])
        finally:
            stopping.set()
            await served


def resampled(samples: Samples, rate: int) -> Samples:
    """Audio of 16 kHz at another rate."""
    frame = av.AudioFrame.from_ndarray(samples[None, :], "s16", "mono")
    frame.sample_rate = 16_000
    resampler = av.AudioResampler("s16", "mono", rate)
    parts = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([part.to_ndarray()[0] for part in parts])


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop go on until something is so."""
    while not condition():
        await asyncio.sleep(0.01)


async def say(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))


async def heard(socket: ClientConnection) -> dict[str, Any]:
    """The next message that is no status."""
    while (record := json.loads(await socket.recv()))["type"] == "status":
        pass
    return record


async def ask(socket: ClientConnection, **message: object) -> dict[str, Any]:
    """Send a message, and return the next one that is no status."""
    await say(socket, **message)
    return await heard(socket)


async def finish(socket: ClientConnection) -> list[dict[str, Any]]:
    """End a speaker's session; return all further messages but those of status."""
    await say(socket, type="end")
    return await rest(socket)


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


async def translated(config: PipelineConfig, models: Models, samples: Samples) -> Texts:
    """The text of a recording from a translator in this process."""
    async with SpeechTranslator(config, models, live=True) as translator:
        await translator.feed(samples)
        await translator.end()
        return {
            (event.sentence, event.language): event.text
            async for event in translator.events()
            if isinstance(event, SourceSentence | Translation)
        }


def final(records: Sequence[dict[str, Any]]) -> Texts:
    """The final texts in these messages. A snapshot counts as its events."""
    found = {}
    for record in records:
        for one in record["events"] if record["type"] == "snapshot" else [record]:
            if one["type"] in ("source_sentence", "translation"):
                found[one["sentence"], one["language"]] = one["text"]
    return found
