"""Clients for a measured server: speakers and readers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from ..core import SAMPLE_RATE, Samples
from ..errors import PipelineError

_CHUNK = SAMPLE_RATE // 10
LOST = (OSError, TimeoutError, WebSocketException)
"""The errors that end a connection."""


class ServerError(PipelineError):
    """The server refuses a speaker or reader, or does not do what it should."""


@dataclass
class Reception:
    """Texts and delays that a speaker or reader received."""

    session: str = ""
    shown_s: list[float] = field(default_factory=list)
    """For each change of a translation that shows more: the age of the newest audio in it when it was received."""
    steady_s: list[float] = field(default_factory=list)
    """For each change by which more is steady: the age of the newest audio in the change that had shown it first."""
    final_s: list[float] = field(default_factory=list)
    """For each final translation: the age of the newest audio in it."""
    texts: dict[tuple[int, str], str] = field(default_factory=dict)
    """(sentence, language) → the final text."""
    duration_s: float | None = None
    """Audio of the session by the end event; None: it did not come."""
    failure: str = ""
    _shown: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    """(sentence, language) → for each character that is shown: the end of the audio of the change that showed it."""
    _steady: dict[tuple[int, str], int] = field(default_factory=dict)

    def take(self, record: dict[str, Any], elapsed_s: float) -> None:
        """Take a message. ``elapsed_s``: since the first sample was spoken."""
        kind = record["type"]
        if kind == "snapshot":
            for event in record["events"]:
                self.take(event, elapsed_s)
        elif kind == "delta":
            key, heard_s = (record["sentence"], record["language"]), record.get("heard_s", 0.0)
            if record["text"]:
                self.shown_s.append(elapsed_s - heard_s)
            shown, steady = self._shown.setdefault(key, []), record.get("steady", 0)
            del shown[len(shown) - record.get("withdrawn", 0) :]
            shown += [heard_s] * len(record["text"])
            if self._steady.get(key, 0) < steady <= len(shown):
                self.steady_s.append(elapsed_s - shown[steady - 1])
            self._steady[key] = steady
        elif kind in ("source_sentence", "translation"):
            if kind == "translation":
                self.final_s.append(elapsed_s - record.get("heard_s", 0.0))
            self.texts[record["sentence"], record["language"]] = record["text"]
        elif kind == "end":
            self.duration_s = record["duration_s"]
        elif kind == "error":
            self.failure = record["message"]


@asynccontextmanager
async def opened(url: str, first: dict[str, Any]) -> AsyncIterator[tuple[ClientConnection, Reception]]:
    """A connection whose first message was accepted.

    Raises:
        ServerError: it was refused; the message is the server's.
    """
    async with connect(url, max_size=None, proxy=None, close_timeout=1) as socket:
        await socket.send(json.dumps(first))
        answer = json.loads(await socket.recv())
        if answer["type"] == "error":
            raise ServerError(answer["message"])
        yield socket, Reception(answer["session"])


async def listen(socket: ClientConnection, heard: Reception, began_s: Callable[[], float]) -> None:
    """Take all messages until the server closes the connection."""
    with suppress(ConnectionClosed):
        async for message in socket:
            heard.take(json.loads(message), time.monotonic() - began_s())


async def speak(url: str, samples: Samples, began: asyncio.Future[float], heard: asyncio.Future[Reception]) -> None:
    """Speak at real pace, and set ``began`` to when the first sample was spoken and ``heard`` when the session exists."""
    async with opened(url, {"type": "start"}) as (socket, mine):
        began.set_result(time.monotonic())
        heard.set_result(mine)
        listening = asyncio.create_task(listen(socket, mine, began.result))
        with suppress(ConnectionClosed):
            for begin in range(0, len(samples), _CHUNK):
                chunk = samples[begin : begin + _CHUNK]
                await asyncio.sleep(began.result() + (begin + len(chunk)) / SAMPLE_RATE - time.monotonic())
                await socket.send(chunk.astype("<i2").tobytes())
            await socket.send('{"type": "end"}')
        await listening


async def read(url: str, session: str, began: asyncio.Future[float]) -> Reception:
    """Read a session to its end."""
    async with opened(url, {"type": "watch", "session": session}) as (socket, mine):
        await listen(socket, mine, began.result)
        return mine


@dataclass(frozen=True)
class PlayedSession:
    """One speaker and its readers."""

    speaker: Reception
    readers: list[Reception]
    seconds: float

    @property
    def losses(self) -> list[str]:
        """What was not delivered, a line for each failure; empty if everything was."""
        failures = [self.speaker.failure] if self.speaker.failure else []
        if self.speaker.duration_s is None:
            failures.append("the speaker got no end")
        elif abs(self.speaker.duration_s - self.seconds) > 0.001:
            failures.append(f"{self.seconds - self.speaker.duration_s:.1f} s of audio are missing")
        different = sum(reader.texts != self.speaker.texts for reader in self.readers)
        return [*failures, *([f"{different} readers got other text"] if different else [])]


async def played(url: str, samples: Samples, speakers: int, readers: int, apart_s: float) -> list[PlayedSession]:
    """Speak with several speakers, ``apart_s`` seconds after each other, with readers shared out among them.

    Raises:
        ServerError: a speaker or reader was refused.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        sessions: list[tuple[Reception, list[asyncio.Task[Reception]]]] = []
        for number in range(speakers):
            began: asyncio.Future[float] = loop.create_future()
            heard: asyncio.Future[Reception] = loop.create_future()
            group.create_task(speak(url, samples, began, heard))
            mine = await heard
            count = readers // speakers + (number < readers % speakers)
            sessions.append((mine, [group.create_task(read(url, mine.session, began)) for _ in range(count)]))
            await asyncio.sleep(apart_s)
    seconds = len(samples) / SAMPLE_RATE
    return [PlayedSession(mine, [task.result() for task in tasks], seconds) for mine, tasks in sessions]
