"""OpenAI's realtime translation session: audio in JSON messages up, steady text and its speech down.

https://platform.openai.com/docs/api-reference/realtime. A session cannot be resumed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from ...core import AppendOnlyText, SourceSentence, SourceText, TargetText, Translation, TranslationLost, joined_text
from ...languages import LONGEST_CODE, Convert, nearest, needed_conversion, normalized_code, same_text
from ..access import Access, bearer_token
from ..feed import Feed
from ..guard import Rate
from ..languages.served import MODEL
from ..protocol import ProtocolError, Start, check_length, read_object, sendable, shown
from ..service import Service
from ..session import Session
from ..sockets import LATER, NORMAL, REFUSED, TRY_LATER
from ..websocket import Connection

SAMPLE_RATE = 24_000
# How browsers, which cannot set headers, send the token: as one of the subprotocols that they offer.
_SUBPROTOCOL, _KEY_PREFIX = "realtime", "openai-insecure-api-key."
# elapsed_ms is a multiple of this, and speech has frames of this length.
_FRAME_MS = 200
_LONGEST_ECHO = 512  # characters of what a client gets back
# Characters of audio: 2.5 ms. Messages with less are read at the pace of those beside audio.
_SHORT_AUDIO = 160
_FRAME_BYTES = 2 * SAMPLE_RATE * _FRAME_MS // 1000


class RealtimeConnection(Connection):
    """One session, from the handshake to its end."""

    audio_type = "session.input_audio_buffer.append"

    def __init__(self, socket: WebSocket, service: Service, access: Access) -> None:
        super().__init__(socket, service, access)
        self._language: str | None = None
        self._convert: Convert | None = None  # into the script of the language, if the session writes it in another
        self._written = ""  # the language as it was asked for, then
        self._captions = False  # the language spoken is wanted, into which the session does not translate
        self._transcription: dict[str, Any] | None = None
        self._speaking: asyncio.Task[None] | None = None
        self._event_ids = map("event_{}".format, itertools.count())

    async def run(self) -> None:
        """Refuse a wrong token in the handshake; then as ``Connection.run``."""
        offered = self._socket.scope.get("subprotocols", [])
        keys = [name.removeprefix(_KEY_PREFIX) for name in offered if name.startswith(_KEY_PREFIX)]
        token = bearer_token(self._socket.headers.get("authorization")) or next(iter(keys), None)
        if self._access.knows_token(token):
            await super().run()
        elif "websocket.http.response" in self._socket.scope.get("extensions", {}):
            error = ProtocolError("wrong-token", "the token is missing or wrong; give it as the API key")
            await self._socket.send_denial_response(JSONResponse({"error": details(error)}, 401))
        else:
            await self._close(REFUSED)

    async def _accept(self) -> None:
        offered = self._socket.scope.get("subprotocols", [])
        await self._socket.accept(_SUBPROTOCOL if _SUBPROTOCOL in offered else None)

    async def _serve(self) -> None:
        source = self._service.languages.models.get(self._model)
        session = self._service.start(Start(sample_rate=SAMPLE_RATE, source=source))
        languages = session.config.languages
        # In a conversation, each sentence is translated into the language of the other.
        self._language = languages.targets[0] if not languages.conversation else None
        feed = session.connect(self)
        try:
            await self._tell("session.created", session=self._described(session))
            await self._both(self._deliver(session, feed), self._obey_each(partial(self._obey, session)))
        finally:
            session.disconnect(self, feed)
            session.end()
            if self._speaking is not None:
                self._speaking.cancel()

    @property
    def _model(self) -> str:
        return self._socket.query_params.get("model", MODEL)

    async def _obey_each(self, obey: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        while True:
            message = await self._next()
            record: dict[str, Any] = {}
            try:
                record = read_object(message.get("text") or "")
                await obey(record)
                if record["type"] == self.audio_type and len(record["audio"]) >= _SHORT_AUDIO:
                    continue
            except ProtocolError as error:  # the session goes on
                await self._tell("error", error=details(error, record.get("event_id")))
            await asyncio.sleep(self._pace.wait_s())

    async def _next(self) -> dict[str, Any]:
        return await self._received()

    async def _obey(self, session: Session, record: dict[str, Any]) -> None:
        match record.get("type"):
            case self.audio_type:
                if self._speaking is None:  # from now on the language stays
                    self._speaking = asyncio.create_task(self._say(session))
                await session.hear(decoded_audio(record.get("audio")))
            case "session.update":
                await self._update(record, session)
                await self._tell("session.updated", session=self._described(session))
            case "session.close":
                session.end()
            case other:
                raise ProtocolError(
                    "bad-message",
                    f"the type is {shown(other)}; it must be session.update, session.input_audio_buffer.append or session.close",
                )

    async def _update(self, record: dict[str, Any], session: Session) -> None:
        audio = object_in(object_in(record, "session"), "audio")
        given, output = object_in(audio, "input"), object_in(audio, "output")
        language, targets = output.get("language", self._written or self._language), session.config.languages.targets
        if isinstance(language, str):
            check_length("language", language, LONGEST_CODE)
        written, convert = "", None
        if isinstance(language, str) and (target := same_text(language, targets)) is not None:
            language = target
        elif (
            isinstance(language, str)
            and (near := nearest(language, targets))
            and (convert := needed_conversion(language, None)) is not None
        ):
            written, language = normalized_code(language), near[0]
        if (language, written) != (self._language, self._written):
            is_offered = language in targets or self._is_caption(language, session)
            if not is_offered and (self._service.offers is None or not isinstance(language, str)):
                raise ProtocolError("unknown-target", self._unknown(language, targets))
            if session.intake.received:
                raise ProtocolError("too-late", "audio has come; the language can only be chosen before")
            if not is_offered and isinstance(language, str):
                await self._service.add_target(session, language)
                targets = session.config.languages.targets
                language = same_text(language, targets)
        if "transcription" in given:
            self._transcription = transcription_of(given)
        self._language, self._captions = language, language not in (None, *targets)
        self._written, self._convert = written, convert

    def _is_caption(self, language: object, session: Session) -> bool:
        """Whether the language is that spoken, and none of the model's configurations translates into it."""
        if not isinstance(language, str) or not session.config.languages.is_spoken(language):
            return False
        source = self._service.languages.models.get(self._model)
        return self._service.chosen(source, [language]).config.languages == session.config.languages

    def _unknown(self, language: object, targets: Sequence[str]) -> str:
        """Why a session with these targets does not translate into ``language``."""
        with suppress(ProtocolError):
            languages = self._service.languages
            number = languages.find(None, [language] if isinstance(language, str) else [""])
            source = languages.configured[number].source
            return f"this session is translated into {', '.join(targets)}; for {language}, connect with the model {MODEL}-{source}"
        return f"this server does not translate into {shown(language)}; choose from {', '.join(targets)}"

    async def _say(self, session: Session) -> None:
        """Send the speech of the translations, if there is a voice for them."""
        if session.voices is None or self._language not in session.voices.languages:
            return
        async with session.voices.listener(self._language, self._address) as listener:
            while (item := await listener.take()) is not None:
                sound = item + bytes(-len(item) % _FRAME_BYTES) if isinstance(item, bytes) else b""
                for begin in range(0, len(sound), _FRAME_BYTES):
                    delta = base64.b64encode(sound[begin : begin + _FRAME_BYTES]).decode()
                    await self._tell(
                        "session.output_audio.delta", delta=delta, sample_rate=SAMPLE_RATE, channels=1, format="pcm16"
                    )

    async def _deliver(self, session: Session, feed: Feed) -> None:
        source, translation = AppendOnlyText(), AppendOnlyText()
        async for event in feed.news():
            match event:
                case SourceText() | SourceSentence():
                    text = joined_text(source.push(event))
                    kinds = ["input"] * (self._transcription is not None) + ["output"] * self._captions
                case TargetText() | Translation() if self._language in (None, event.language):
                    text, kinds = joined_text(translation.push(event, self._convert)), ["output"]
                case TranslationLost(language, reason) if self._language in (None, language):
                    await self._tell("error", error=details(ProtocolError("failed", reason)))
                    continue
                case _:
                    continue
            elapsed_ms = int(event.heard_s * 1000 / _FRAME_MS) * _FRAME_MS
            for kind in kinds if text else ():
                await self._tell(f"session.{kind}_transcript.delta", delta=text, elapsed_ms=elapsed_ms)
        session.readers.detach(feed)
        session.stats.appended_otherwise += source.differing + translation.differing
        if self._speaking is not None:
            await self._speaking
        if session.state.failure is not None:
            await self._tell("error", error=details(session.state.failure))
        await self._tell("session.closed")
        await self._close(NORMAL)

    async def _refuse(self, error: ProtocolError) -> None:
        await self._tell("error", error=details(error))
        await self._close(TRY_LATER if error.code in LATER else REFUSED, error.code)

    async def _tell(self, kind: str, **values: object) -> None:
        record = {"type": kind, "event_id": next(self._event_ids), **values}
        await self._send(sendable(json.dumps(record, ensure_ascii=False)))

    def _described(self, session: Session) -> dict[str, Any]:
        return {
            "id": session.id,
            "type": "translation",
            "model": self._model,
            "expires_at": round(time.time() + self._service.limits.session_s),
            "audio": {
                "input": {"transcription": self._transcription, "noise_reduction": None},
                "output": {"language": self._written or self._language},
            },
        }


def transcription_of(given: dict[str, Any]) -> dict[str, Any] | None:
    """What a client wrote of the transcription of its audio, as it is told to it again."""
    wanted = object_in(given, "transcription")
    named = {name: wanted.get(name) for name in ("model", "language", "prompt")}
    kept = {name: value[:_LONGEST_ECHO] for name, value in named.items() if isinstance(value, str)}
    return kept if wanted else None


def object_in(record: dict[str, Any], name: str) -> dict[str, Any]:
    """The object in a field; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProtocolError("bad-message", f"{name} must be an object")
    return value


def decoded_audio(text: object) -> bytes:
    """The audio of a message. Raises ProtocolError: it has none."""
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ProtocolError("bad-audio", "audio is no base64; send 16-bit mono PCM at 24 kHz in base64")


def details(error: ProtocolError, event_id: object = None) -> dict[str, Any]:
    """An error as it is told. ``event_id``: of the client's message."""
    kind = "server_error" if error.code in (*LATER, "failed") else "invalid_request_error"
    event = event_id if isinstance(event_id, str) and len(event_id) <= _LONGEST_ECHO else None
    return {"type": kind, "code": error.code, "message": str(error), "param": None, "event_id": event}


def routes(service: Service, access: Access, _rate: Rate) -> list[BaseRoute]:
    """``/v1/realtime/translations``."""
    return [WebSocketRoute("/v1/realtime/translations", RealtimeConnection.endpoint(service, access))]
