"""OpenAI's realtime transcription session: audio in JSON messages up, the text of what was said down, an item at a time.

https://platform.openai.com/docs/guides/realtime-transcription. An item is a sentence or, without turn detection, what the client
commits. What it commits is a session of the service.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from typing import Any

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from ...core import AppendOnlyText, SourceSentence, SourceText, joined_text
from ...languages import LONGEST_CODE
from ..access import Access
from ..chains import Chain
from ..feed import Feed
from ..guard import Rate
from ..protocol import ProtocolError, Start, check_length, shown
from ..service import Service
from ..session import Session
from ..sockets import NORMAL
from .client_speech import ClientSpeech
from .realtime import SAMPLE_RATE, RealtimeConnection, decoded_audio, details, object_in, transcription_of

_FORMAT = {"type": "audio/pcm", "rate": SAMPLE_RATE}
_TEXT = "conversation.item.input_audio_transcription"


class TranscriptionConnection(RealtimeConnection):
    """One client, which may commit several parts of what it says one after another."""

    audio_type = "input_audio_buffer.append"

    def __init__(self, socket: WebSocket, service: Service, access: Access) -> None:
        super().__init__(socket, service, access)
        self._chain: Chain | None = None  # held, so that it stays
        self._id = secrets.token_urlsafe(12)
        self._detects_turns = True
        self._utterance: ClientSpeech | None = None
        self._item_ids = map("item_{}".format, itertools.count())
        self._last: str | None = None  # the last item
        self._only_item = ""  # that of all that is said up to the client's commit; "": each sentence has one
        self._completed = 0
        self._silent_until_s = 0.0
        """When a client that says nothing is sent away, by the loop's clock."""

    async def _serve(self) -> None:
        source = self._service.languages.models.get(self._model)
        self._chain = self._service.chosen(source, ())
        self._wait()
        await self._tell("session.created", session=self._session())
        try:
            await self._obey_each(self._take)
        finally:
            await self._end()

    async def _next(self) -> dict[str, Any]:
        if self._utterance is not None:  # whose session has limits of its own
            return await self._received()
        try:
            async with asyncio.timeout_at(self._silent_until_s):
                return await self._received()
        except TimeoutError:
            raise ProtocolError("idle", f"no audio came for {self._service.limits.idle_s:g} s") from None

    async def _take(self, record: dict[str, Any]) -> None:
        match record.get("type"):
            case self.audio_type:
                audio = decoded_audio(record.get("audio"))
                if self._utterance is not None and self._utterance.delivering.done():
                    await self._utterance.delivering  # raises, if the client does not read
                if self._utterance is None:
                    self._begin()
                if self._utterance is not None:
                    await self._utterance.session.hear(audio)
            case "input_audio_buffer.commit":
                if self._utterance is None:
                    raise ProtocolError("input_audio_buffer_commit_empty", "no audio came since the last commit")
                completed = self._completed
                if self._only_item:
                    await self._commit(self._only_item)
                self._utterance.session.end()
                await self._utterance.delivering
                if self._completed == completed:  # the client waits for the text of what it has committed
                    await self._commit(item := next(self._item_ids))
                    await self._complete(item, "", 0.0)
                await self._end()
            case "input_audio_buffer.clear":
                if (utterance := self._utterance) is not None:
                    await self._end()
                    await utterance.session.discard()
                await self._tell("input_audio_buffer.cleared")
            case "session.update":
                await self._configure(object_in(record, "session"))
                await self._tell("session.updated", session=self._session())
            case other:
                raise ProtocolError(
                    "bad-message",
                    f"the type is {shown(other)}; it must be session.update, or input_audio_buffer.append, .commit or .clear",
                )

    async def _configure(self, session: dict[str, Any]) -> None:
        if (kind := session.get("type", "transcription")) != "transcription":
            raise ProtocolError("bad-message", f"the session's type is {shown(kind)}; it must be transcription")
        given = object_in(object_in(session, "audio"), "input")
        if (form := _FORMAT | object_in(given, "format")) != _FORMAT:
            raise ProtocolError("bad-audio", f"the format is {shown(form)}; it must be audio/pcm at {SAMPLE_RATE} Hz")
        language = object_in(given, "transcription").get("language")
        if isinstance(language, str):
            check_length("language", language, LONGEST_CODE)
            targets = self._service.languages.of_transcript(language)
            self._chain = await self._service.obtained(language, targets)
        if "transcription" in given:
            self._transcription = transcription_of(given)
            if not isinstance(language, str):
                self._chain = self._service.chosen(self._service.languages.models.get(self._model), ())
        if "turn_detection" in given:
            self._detects_turns = given["turn_detection"] is not None

    def _begin(self) -> None:
        assert self._chain is not None
        languages = self._chain.config.languages
        targets = (languages.only_spoken,) if languages.only_spoken is not None else ()  # nothing is translated
        session = self._service.start(Start(SAMPLE_RATE, languages.source, targets))
        feed, self._only_item = session.connect(self), "" if self._detects_turns else next(self._item_ids)
        self._utterance = ClientSpeech(session, feed, asyncio.create_task(self._deliver(session, feed)))

    def _wait(self) -> None:
        self._silent_until_s = asyncio.get_running_loop().time() + self._service.limits.idle_s

    async def _end(self) -> None:
        if self._utterance is not None:
            await self._utterance.close(self)
            self._utterance = None
            self._wait()

    async def _deliver(self, session: Session, feed: Feed) -> None:
        """Send steady text as it comes, and that of each item when it is final."""
        text, final, whole, only = AppendOnlyText(), AppendOnlyText(), "", self._only_item
        items: dict[int, str] = {}  # sentence in progress → its item
        async for event in feed.news():
            if not isinstance(event, SourceText | SourceSentence):
                continue
            for piece in text.push(event):
                delta = piece.text if only or piece.sentence in items else piece.text.lstrip()
                name = only or await self._of_sentence(piece.sentence, items)
                await self._tell(f"{_TEXT}.delta", item_id=name, content_index=0, delta=delta)
            if isinstance(event, SourceSentence):
                if only:
                    whole += joined_text(final.push(event))
                elif event.text or event.sentence in items:
                    name = await self._of_sentence(event.sentence, items)
                    await self._complete(name, event.text, event.end_s - event.start_s)
                    del items[event.sentence]
        session.stats.appended_otherwise += text.differing
        if session.state.failure is not None:
            await self._tell("error", error=details(session.state.failure))
        elif only:
            await self._complete(only, whole, session.intake.arrived_s)
        if session.state.failure is not None or self._service.places.draining:
            await self._close(NORMAL)

    async def _of_sentence(self, sentence: int, items: dict[int, str]) -> str:
        """The item of a sentence, which is committed when it begins."""
        if sentence not in items:
            items[sentence] = next(self._item_ids)
            await self._commit(items[sentence])
        return items[sentence]

    async def _commit(self, item: str) -> None:
        await self._tell("input_audio_buffer.committed", item_id=item, previous_item_id=self._last)
        self._last = item

    async def _complete(self, item: str, text: str, seconds: float) -> None:
        self._completed += 1
        usage = {"type": "duration", "seconds": round(seconds, 3)}
        await self._tell(f"{_TEXT}.completed", item_id=item, content_index=0, transcript=text, usage=usage)

    def _session(self) -> dict[str, Any]:
        detection = {"type": "server_vad"} if self._detects_turns else None
        given = {"format": _FORMAT, "transcription": self._transcription, "noise_reduction": None}
        return {
            "id": self._id,
            "object": "realtime.transcription_session",
            "type": "transcription",
            "expires_at": round(time.time() + self._service.limits.session_s),
            "audio": {"input": {**given, "turn_detection": detection}},
        }


def routes(service: Service, access: Access, _rate: Rate) -> list[BaseRoute]:
    """``/v1/realtime``, with ``intent=transcription`` or without."""
    return [WebSocketRoute("/v1/realtime", TranscriptionConnection.endpoint(service, access))]
