"""Play a recording in real time to WhisperLiveKit's server, and keep what it shows and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.bench.peer_messages import Finished, PeerError, PeerState, PeerText, Settings, read_message
from pipeline.bench.processes import is_this_machine, listening_process, usage_of
from pipeline.errors import UsageError, one_line
from pipeline.events import SAMPLE_RATE, Samples

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

START = (
    "start it with: whisperlivekit-server --pcm-input --backend faster-whisper --backend-policy localagreement "
    "--model_dir DIR --lan en"
)
_CONNECT_S = 10.0
"""A server that does not accept a connection within this time is not used."""
_SETTINGS_S = 10.0
"""Nor one that does not send its settings within this time."""
_LARGEST_MESSAGE = 64 * 1024 * 1024  # bytes; each message has the whole text


@dataclass(frozen=True)
class PeerRun:
    """Results of one run."""

    duration_s: float
    drained_s: float | None
    """From the end of the audio until the server said that it had recognised everything; None if it did not."""
    cpu_share: float | None
    """CPU time of the server's processes during the run, of all cores that it may use, 0 to 1; None if they are not known:
    the server runs on another machine, or belongs to another user."""
    memory_mb: float | None
    """Their resident memory at the end."""
    failure: str | None
    """Why the run did not end as it should."""
    states: list[PeerState] = field(repr=False)
    """What was shown, without repetitions."""


async def check_server(url: str) -> None:
    """Connect once and disconnect.

    Raises:
        PeerError: the server cannot be reached, is not WhisperLiveKit's, or does not take PCM.
        UsageError: the package websockets is not installed.
    """
    async with _connected(url):
        pass


async def play_to_peer(samples: Samples, url: str, wait_s: float) -> PeerRun:
    """Play audio at its own pace, then wait until the server has recognised it, ``wait_s`` seconds at most.

    Args:
        samples: [n], mono at 16 kHz.

    Raises:
        PeerError, UsageError: see ``check_server``. A later failure is part of the result.
    """
    duration_s, states = len(samples) / SAMPLE_RATE, list[PeerState]()
    async with _connected(url) as connection:
        process = _server_process(url)
        before, began_s = usage_of(process), time.perf_counter()
        receiver = asyncio.create_task(_receive(connection, began_s, states))
        sender = asyncio.create_task(_send(connection, began_s, samples))
        try:
            await asyncio.wait([receiver], timeout=duration_s + wait_s)
            wall_s, after = time.perf_counter() - began_s, usage_of(process)
            if not receiver.done():
                failure: str | None = (
                    f"the server had not finished {wait_s:g} s after the end of the audio; give more --wait"
                )
            else:
                failure = receiver.result() or (None if sender.done() else "the server finished before the audio ended")
        finally:
            for task in (receiver, sender):
                task.cancel()
            await asyncio.gather(receiver, sender, return_exceptions=True)
    return PeerRun(
        duration_s,
        wall_s - duration_s if failure is None else None,
        (after.cpu_s - before.cpu_s) / wall_s / after.cores if before and after else None,
        after.resident_mb if after else None,
        failure,
        states,
    )


async def _send(connection: ClientConnection, began_s: float, samples: Samples) -> None:
    """Send chunks as a microphone gives them: each when its last sample has been said."""
    for start in range(0, len(samples), CHUNK_SAMPLES):
        chunk = samples[start : start + CHUNK_SAMPLES]
        await asyncio.sleep(began_s + (start + len(chunk)) / SAMPLE_RATE - time.perf_counter())
        await connection.send(chunk.astype("<i2").tobytes())
    await connection.send(b"")  # the end of the audio


async def _receive(connection: ClientConnection, began_s: float, states: list[PeerState]) -> str | None:
    """Collect what is shown; return why that ended too early, or None."""
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            message = read_message(await connection.recv())
            elapsed_s = time.perf_counter() - began_s
            if isinstance(message, Finished):
                return None
            if isinstance(message, PeerText) and not (states and states[-1].shown == message):
                states.append(PeerState(message, elapsed_s))
    except ConnectionClosed as error:
        elapsed_s = time.perf_counter() - began_s
        return f"the server closed the connection after {elapsed_s:.1f} s ({one_line(error)}); see its own messages"
    except PeerError as error:
        return str(error)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[ClientConnection]:
    """A connection whose first message, the settings, has been read. See ``check_server``."""
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import ConnectionClosed, WebSocketException
    except ImportError:
        raise UsageError("playing to a server needs the package websockets; pip install 'websockets>=15'") from None
    try:
        # A server that is busy for long may not answer pings in time; whether it works is seen from its text.
        connection = await connect(
            url, open_timeout=_CONNECT_S, ping_interval=None, close_timeout=2.0, max_size=_LARGEST_MESSAGE, proxy=None
        )
    except TimeoutError:
        raise PeerError(
            f"{url} did not accept a connection within {_CONNECT_S:g} s; is WhisperLiveKit there? If not, {START}"
        ) from None
    except (OSError, WebSocketException) as error:
        raise PeerError(f"no WhisperLiveKit server can be reached at {url} ({one_line(error)}); {START}") from error
    async with connection:
        try:
            settings = read_message(await asyncio.wait_for(connection.recv(), _SETTINGS_S))
        except TimeoutError:
            raise PeerError(
                f"{url} sent no settings within {_SETTINGS_S:g} s; give the address of WhisperLiveKit's /asr"
            ) from None
        except ConnectionClosed as error:
            raise PeerError(
                f"{url} closed the connection at once ({one_line(error)}); see the server's messages"
            ) from error
        if not isinstance(settings, Settings):
            raise PeerError(f"{url} did not begin with its settings; give the address of WhisperLiveKit's /asr")
        if not settings.raw_audio:
            raise PeerError(f"the server at {url} decodes compressed audio; {START}")
        yield connection


def _server_process(url: str) -> int | None:
    """The process of a server on this machine, if it can be found."""
    parts = urlsplit(url)
    port = parts.port or {"ws": 80, "wss": 443}[parts.scheme]
    return listening_process(port) if is_this_machine(parts.hostname or "") else None
