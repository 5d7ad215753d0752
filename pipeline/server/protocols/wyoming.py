"""The Wyoming protocol of Home Assistant: audio over TCP up, a transcript or its translation down.

https://github.com/OHF-Voice/wyoming. The protocol knows no translation, so each language that is translated into is a program
of its own for recognising speech, whose transcript is the translation. It has no token either: for loopback only.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from socket import socket
from typing import Any

import numpy as np
from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.info import AsrModel, AsrProgram, Attribution, Info
from wyoming.ping import Pong

from ...core import (
    AppendOnlyText,
    PipelineEvent,
    SourceSentence,
    SourceText,
    TargetText,
    Translation,
    TranslationLost,
    joined_text,
)
from ...languages import AUTO_SOURCE, same_language
from ..feed import Feed
from ..languages.served import ServedLanguages
from ..protocol import ProtocolError, Start, check_rate, sendable, shown
from ..service import Service
from ..session import Session
from ..shares import Pace
from .client_speech import ClientSpeech

log = logging.getLogger(__name__)

_PACKAGE = "streaming-speech-translation"
_LINE_BYTES = 1 << 16
"""The longest header of an event, and the most data beside it."""
_MAX_CONNECTIONS = 100
# An event that the client does not take for so long ends the connection.
_SEND_S = 20.0
_MOST_BYTES, _MOST_CHANNELS = 4, 64  # of a sample; of audio
_TRANSLATES = "translate-"


@dataclass(frozen=True)
class Program:
    """What the server offers under one name, which clients use as name of the program or of its model."""

    name: str
    description: str
    spoken: tuple[str, ...]
    """The languages that it recognises."""
    translates: bool = False
    target: str | None = None
    """The language translated into; None in a conversation: that of the other."""


def programs(languages: ServedLanguages) -> list[Program]:
    """The programs of a server; clients that name none get the first."""
    offered = [Program("transcribe", f"Speech in {', '.join(languages.spoken)} to text", languages.spoken)]
    one_way = [config for config in languages.configured if not config.conversation]
    for config in languages.configured:
        if config.conversation:
            offered.append(Program("translate", "Speech to text in the other language", config.spoken, True))
    for target in dict.fromkeys(target for config in one_way for target in config.targets):
        spoken = tuple(language for config in one_way if target in config.targets for language in config.spoken)
        offered.append(Program(f"{_TRANSLATES}{target}", f"Speech to text in {target}", spoken, True, target))
    return offered


def info_of(languages: ServedLanguages) -> Info:
    """The answer to ``describe``."""
    try:
        release = version(_PACKAGE)
    except PackageNotFoundError:
        release = None
    common: dict[str, Any] = {"attribution": Attribution(_PACKAGE, ""), "installed": True, "version": release}
    return Info(
        asr=[
            AsrProgram(
                name=one.name,
                description=one.description,
                models=[AsrModel(name=one.name, description=one.description, languages=list(one.spoken), **common)],
                supports_transcript_streaming=True,
                **common,
            )
            for one in programs(languages)
        ]
    )


async def next_event(reader: asyncio.StreamReader, limit: int) -> Event | None:
    """The next event; None at the end. The package's own function accepts a payload of any size.

    Args:
        limit: the largest payload, in bytes.

    Raises:
        ProtocolError: it is no event, or too large.
    """
    try:
        if not (line := await reader.readline()):
            return None
        header = json.loads(line)
    except (ValueError, RecursionError):  # ValueError: also a line that is too long
        raise ProtocolError("bad-message", "the line is not JSON, or too long; this is a Wyoming server") from None
    if not isinstance(header, dict) or not isinstance(kind := header.get("type"), str):
        raise ProtocolError("bad-message", "the line is no event; send an object with a type")
    data = header.get("data") or {}
    if length := _length(header, "data_length", _LINE_BYTES):
        try:
            data = json.loads(await reader.readexactly(length))
        except (ValueError, RecursionError):
            raise ProtocolError("bad-message", "the data of the event is not JSON") from None
    if not isinstance(data, dict):
        raise ProtocolError("bad-message", "the data of the event is no object")
    length = _length(header, "payload_length", limit)
    return Event(kind, data, await reader.readexactly(length) if length else None)


def _length(header: dict[str, Any], name: str, limit: int) -> int:
    value = header.get(name) or 0
    if type(value) is not int or not 0 <= value <= limit:
        raise ProtocolError("bad-message", f"{name} is {shown(value)}; at most {limit} are allowed")
    return value


class WyomingConnection:
    """One client, which may send several recordings one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service) -> None:
        self._reader, self._writer, self._service = reader, writer, service
        self._program = programs(service.languages)[0]
        self._spoken: str | None = None
        self._speech: ClientSpeech | None = None
        self._pace = Pace(service.limits.messages_a_second)

    async def run(self) -> None:
        """Serve the client until either side has finished."""
        limits = self._service.limits
        try:
            try:
                while True:
                    async with asyncio.timeout(limits.idle_s):
                        event = await next_event(self._reader, limits.message_bytes)
                    if event is None:
                        break
                    await self._obey(event)
                    # Events that have come already are read without waiting: let the others go on between them.
                    await asyncio.sleep(0.0 if event.type == "audio-chunk" else self._pace.wait_s())
            except (OSError, EOFError):
                raise
            except Exception as error:
                await self.refuse(_told(error))
        except (OSError, EOFError, TimeoutError):  # EOFError: the connection ended within an event
            pass
        finally:
            await self._end_speech()
            await self._close()

    async def turn_away(self) -> None:
        """Say that there are too many connections, and close this one."""
        message = f"the server has {_MAX_CONNECTIONS} Wyoming connections, which is the limit; try again later"
        with suppress(OSError):
            await self._write_error(ProtocolError("busy", message))
        self._writer.close()

    async def refuse(self, error: ProtocolError) -> None:
        """Say why the connection ends."""
        await self._write_error(error)
        await self._end_speech()
        await self._drop()

    async def _end_speech(self) -> None:
        if self._speech is not None:
            await self._speech.close(self)
            self._speech = None

    async def _drop(self) -> None:
        """Read what the client still sends: a connection that is closed with unread data is reset, and the client may lose the answer."""
        self._writer.write_eof()
        async with asyncio.timeout(self._service.limits.closing_s):
            while await self._reader.read(_LINE_BYTES):
                pass

    async def _close(self) -> None:
        """Close the connection, whether or not the client takes what was written."""
        self._writer.close()
        try:
            async with asyncio.timeout(self._service.limits.closing_s):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    async def _obey(self, event: Event) -> None:
        match event.type:
            case "describe":
                await self._write(info_of(self._service.languages))
            case "ping":
                text = event.data.get("text")
                await self._write(Pong(sendable(text) if isinstance(text, str) else None))
            case "select-program" | "transcribe":
                self._choose(event.data)
            case "audio-start":
                await self._start(event.data)
            case "audio-chunk":
                if self._speech is None:
                    raise ProtocolError("bad-message", "audio-chunk came before audio-start")
                rate, width, channels = _format(event.data)
                self._speech.session.intake.go_on_at(rate)
                if (width, channels) != (2, 1):
                    self._speech.session.intake.resume()  # half a sample of the chunk before belongs to nothing
                await self._speech.session.hear(mono_16_bit(event.payload or b"", width, channels))
            case "audio-stop":
                if self._speech is None:
                    raise ProtocolError("bad-message", "audio-stop came before audio-start")
                self._speech.session.end()
                await self._speech.delivering
                await self._end_speech()
            # Others are ignored, as the protocol demands.

    def _choose(self, data: dict[str, Any]) -> None:
        spoken, name, more = data.get("language"), data.get("name"), self._service.offers is not None
        if name is not None:
            offered = {program.name: program for program in programs(self._service.languages)}
            if more and isinstance(name, str) and name not in offered and name.startswith(_TRANSLATES):
                target = name.removeprefix(_TRANSLATES)
                offered[name] = Program(name, "", self._service.languages.spoken, True, target)
            if not isinstance(name, str) or name not in offered:
                raise ProtocolError(
                    "unknown-program", f"there is no program {shown(name)}; choose from {', '.join(offered)}"
                )
            self._program = offered[name]
        recognised = self._program.spoken
        if spoken is not None and not (
            isinstance(spoken, str) and (more or any(same_language(spoken, language) for language in recognised))
        ):
            raise ProtocolError(
                "unknown-language",
                f"{self._program.name} does not recognise {shown(spoken)}; it recognises {', '.join(recognised)}",
            )
        self._spoken = spoken

    async def _start(self, data: dict[str, Any]) -> None:
        if self._speech is not None:
            raise ProtocolError("bad-message", "audio-start came twice; send audio-stop first")
        wanted = self._wanted(_format(data)[0])
        held = await self._service.obtained(wanted.source, wanted.targets)  # found while somebody holds it
        session = self._service.start(wanted)
        del held
        feed = session.connect(self)
        self._speech = ClientSpeech(session, feed, asyncio.create_task(self._deliver(session, feed, self._program)))

    def _wanted(self, rate: int) -> Start:
        """The session for the program and language that were chosen."""
        program, source = self._program, self._spoken
        if program.translates and program.target is None:
            return Start(rate, AUTO_SOURCE)
        if program.target is not None:
            return Start(rate, source or program.spoken[0], (program.target,))
        if captions := self._service.languages.of_transcript(source):
            return Start(rate, source, captions)
        languages = self._service.chosen(source, ()).config.languages
        return Start(rate, source, languages.targets[:1] if not languages.conversation else ())

    async def _deliver(self, session: Session, feed: Feed, program: Program) -> None:
        """Send steady text as it comes, then the whole, which is final."""
        lost: ProtocolError | None = None
        try:
            text, final, whole = AppendOnlyText(), AppendOnlyText(), ""
            languages = session.config.languages
            language = program.target if program.translates else languages.only_spoken
            await self._write(TranscriptStart(language=language))
            async for event in feed.news():
                kinds = TargetText | Translation if program.translates else SourceText | SourceSentence
                if isinstance(event, kinds) and (piece := joined_text(text.push(event))):
                    await self._write(TranscriptChunk(piece))
                if isinstance(event, kinds) and isinstance(event, SourceSentence | Translation):
                    whole += joined_text(final.push(event))
                if program.translates and (reason := _why_lost(event)):
                    lost = ProtocolError("failed", reason)
            session.stats.appended_otherwise += text.differing
            if (failure := session.state.failure or lost) is not None:
                await self._write_error(failure)
            else:
                await self._write(Transcript(whole, language=language))
                await self._write(TranscriptStop())
        except (OSError, TimeoutError):
            self._writer.transport.abort()  # the client does not read: end the connection
        except Exception as error:
            await self._write_error(_told(error))
            self._writer.close()  # the client may be waiting
        finally:
            if session.state.failure or lost or self._service.places.draining:
                self._writer.close()  # the client may be waiting

    async def _write_error(self, error: ProtocolError) -> None:
        await self._write(Error(str(error), error.code))

    async def _write(self, event: Eventable) -> None:
        async with asyncio.timeout(_SEND_S):
            await async_write_event(event.event(), self._writer)


def _why_lost(event: PipelineEvent) -> str | None:
    """Why a translation is not complete."""
    if isinstance(event, TranslationLost):
        return event.reason
    return event.error if isinstance(event, Translation) else None


def _told(error: Exception) -> ProtocolError:
    """What the client is told of an error. One of ours is logged, also if the client has hung up meanwhile."""
    if isinstance(error, ProtocolError):
        return error
    log.error("a Wyoming connection failed", exc_info=error)
    return ProtocolError("failed", "the server made a mistake; its log says which")


def _format(data: dict[str, Any]) -> tuple[int, int, int]:
    """The samples a second, the bytes of a sample, and the number of channels."""
    rate, width, channels = (data.get(name) for name in ("rate", "width", "channels"))
    if type(rate) is not int:
        raise ProtocolError("bad-sample-rate", f"the rate is {shown(rate)}; it must be a number")
    check_rate(rate)
    if type(width) is not int or not 1 <= width <= _MOST_BYTES:
        raise ProtocolError("bad-audio", f"the width is {shown(width)}; it must be 1 to {_MOST_BYTES} bytes")
    if type(channels) is not int or not 1 <= channels <= _MOST_CHANNELS:
        raise ProtocolError("bad-audio", f"the channels are {shown(channels)}; there may be 1 to {_MOST_CHANNELS}")
    return rate, width, channels


def mono_16_bit(data: bytes, width: int, channels: int) -> bytes:
    """Little-endian PCM of 16 bits in one channel, the mean of all, from samples of ``width`` bytes; those of 1 have no sign."""
    if (width, channels) == (2, 1):  # may end within a sample
        return data
    if len(data) % (width * channels):
        raise ProtocolError(
            "bad-audio", f"audio-chunk has {len(data)} bytes; send whole frames, of {channels} × {width} bytes each"
        )
    if width == 1:
        samples = (np.frombuffer(data, np.uint8).astype("<i2") - 128) * 256
    else:  # the highest bytes of each
        samples = np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(-1, width)[:, -2:]).view("<i2")
    by_channel = samples.reshape(-1, channels).T.copy()  # whose mean NumPy computes ten times as fast
    return bytes(by_channel.mean(axis=0).astype("<i2"))


@asynccontextmanager
async def serving_wyoming(service: Service, listener: socket) -> AsyncIterator[None]:
    """Serve Wyoming clients on a socket that listens, for the time of the block."""
    serving: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = WyomingConnection(reader, writer, service)
        if len(serving) >= _MAX_CONNECTIONS:
            await connection.turn_away()
            return
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            with suppress(asyncio.CancelledError):  # asyncio logs it as an error
                await connection.run()
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, sock=listener, limit=_LINE_BYTES)
    try:
        yield
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
