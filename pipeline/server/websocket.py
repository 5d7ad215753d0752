"""The server's own WebSocket: a speaker's audio and events, or a reader's events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from ..core import Changes, EndOfInput
from ..glossary import Glossary
from .access import Access, same_secret
from .chains import loaded_voice_model
from .feed import Feed, Snapshot, Targets
from .glossary import read_glossary
from .guard import counted_as
from .protocol import (
    VERSION,
    AddTarget,
    Correct,
    End,
    Listen,
    Mask,
    NewGlossary,
    Pause,
    ProtocolError,
    Resume,
    Speaker,
    Start,
    Watch,
    event_text,
    kind_of,
    message_text,
    read_message,
    sendable,
    snapshot_text,
)
from .service import Service
from .session import Session
from .shares import Pace
from .sockets import LATER, NORMAL, REFUSED, TRY_LATER, while_open

log = logging.getLogger(__name__)

# How often all are told how much of the speaker's audio has arrived, and how far the text is behind. A client that is told
# nothing for several times as long knows that its connection is dead.
_STATUS_S = 1.0
# Languages that one connection may have asked for and that are not added yet.
_MOST_ASKED = 4
# A message that the other side does not take for so long ends the connection.
_SEND_S, _CLOSE_S = 20.0, 5.0

CLOSING = "speech.closing"
"""An extension of the ASGI scope with two of ``asyncio.Event``: ``answered`` is set when the other side has answered the close
frame, so that it has everything that was sent before; ``ended`` then, or when the connection is lost."""


class Connection:
    """One WebSocket from its first message to its end."""

    def __init__(self, socket: WebSocket, service: Service, access: Access) -> None:
        self._socket, self._service, self._access = socket, service, access
        self._asked: asyncio.Queue[str] = asyncio.Queue(_MOST_ASKED)
        self._pace = Pace(service.limits.messages_a_second)
        self._told_pushes: str | None = None
        """What the speaker was told last of what is not sent elsewhere; None to others, and in the end."""

    @classmethod
    def endpoint(cls, service: Service, access: Access) -> Callable[[WebSocket], Awaitable[None]]:
        """The ASGI endpoint of the WebSocket."""
        return lambda socket: cls(socket, service, access).run()

    @property
    def _address(self) -> str:
        """The address of the client, or its network."""
        return counted_as(self._socket.client.host) if self._socket.client is not None else ""

    async def run(self) -> None:
        """Accept the WebSocket and serve it until either side has finished. The guard has checked where it comes from."""
        await self._accept()
        try:
            try:
                await self._serve()
            except ProtocolError as error:
                await self._refuse(error)
            except WebSocketDisconnect:
                raise
            except Exception:
                log.exception("a connection failed")
                await self._refuse(ProtocolError("failed", "the server made a mistake; its log says which"))
        except WebSocketDisconnect:
            with suppress(WebSocketDisconnect):
                await self._close(NORMAL)

    async def _accept(self) -> None:
        await self._socket.accept()

    async def _serve(self) -> None:
        try:
            async with asyncio.timeout(self._service.limits.first_message_s):
                first = read_message(await self._text())
        except TimeoutError:
            raise ProtocolError("no-message", "no message came; begin with start, resume or watch") from None
        if (directory := self._service.directory) is not None:
            directory.check(first, self._access, self._socket.query_params)
        match first:
            case Start(token=token) | Resume(token=token) if not self._access.knows_token(token):
                raise ProtocolError("wrong-token", "the token is missing or wrong")
            case Start(glossary=text):
                glossary = None if text is None else await asyncio.to_thread(read_glossary, text)
                # The chain is found while somebody holds it.
                held = await self._service.obtained(first.source, first.targets, self._tell_step)
                voices = await loaded_voice_model(self._service.speakers, wanted=first.speakers)
                session = self._service.start(first, glossary, voices)
                del held
                await self._speak(session, "started", glossary)
            case Resume():
                session = self._service.index.with_id(first.session)
                if not same_secret(session.key, first.key):
                    raise ProtocolError("wrong-key", "the key is not that of the session")
                await self._speak(session, "resumed")
            case Watch():
                session = self._service.index.find(first.session)
                feed, served = session.attach(first.language, self._address), False
                try:
                    await self._send(_described("watching", session))
                    adding = self._add_targets(session, by_reader=True)
                    await self._both(self._deliver(session, feed), self._heed("watch"), self._report(session), adding)
                    served = True
                finally:
                    session.readers.detach(feed, served)
                await session.readers.confirm(self._acknowledged())
            case Listen():
                session = self._service.index.find(first.session)
                await self._both(self._sound(session, first.language), self._heed("listen"), self._report(session))
            case _:
                raise ProtocolError("bad-message", f"{kind_of(first)} came first; begin with start, resume or watch")

    async def _tell_step(self, doing: str, part: float) -> None:
        """Tell the client how far languages beyond the configured ones are."""
        await self._send(message_text("preparing", doing=doing, part=round(part, 3)))

    async def _speak(self, session: Session, kind: str, glossary: Glossary | None = None) -> None:
        feed, served = session.connect(self), False
        try:
            taken = {} if glossary is None else {"glossary": await _taken(session, glossary)}
            state = {"key": session.key, "received": session.intake.received, "speaker": session.operator.speakers.name}
            await self._send(_described(kind, session, **state, **taken))
            adding = self._add_targets(session, by_reader=False)
            reporting = self._report(session), self._report_pushes(session)
            await self._both(self._deliver(session, feed), self._hear(session), adding, *reporting)
            served = True
        finally:
            session.disconnect(self, feed, served)
        await session.readers.confirm(self._acknowledged())

    async def _both(self, delivering: Awaitable[None], *others: Awaitable[None]) -> None:
        """Deliver to the end, or until one of the others fails: the connection is lost or a message is not understood."""
        tasks = [asyncio.ensure_future(work) for work in (delivering, *others)]
        raised: BaseException | None = None
        try:
            pending = set(tasks)
            while tasks[0] in pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                # When everything is delivered and the connection is closed, the others fail.
                for task in tasks[:1] if tasks[0] in done else done:
                    task.result()
        except BaseException as error:
            raised = error
            raise
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                expected = result is raised or isinstance(result, ProtocolError | WebSocketDisconnect)
                if isinstance(result, Exception) and not expected:
                    log.error("a connection failed while it ended", exc_info=result)

    async def _deliver(self, session: Session, feed: Feed) -> None:
        changes = Changes()
        while (item := await feed.take()) is not None:
            if isinstance(item, Snapshot):
                changes = Changes()
                await self._send(await asyncio.to_thread(_written, changes, item))  # 0.2 s for a thousand sentences
            elif isinstance(item, Targets):
                await self._send(message_text("targets", targets=item.languages, voices=_voices(session)))
            else:
                if isinstance(item, EndOfInput):  # nothing comes after it
                    await self._tell_pushes(session)
                    self._told_pushes = None
                await self._send(event_text(changes.push(item)))
        if (failure := feed.failure or session.state.failure) is not None:
            raise failure
        await self._close(NORMAL)

    async def _sound(self, session: Session, language: str) -> None:
        """Send speech, an utterance a message, until it ends."""
        if (voices := session.voices) is None:
            raise ProtocolError("unknown-target", "this server has no voice; start it with --speak")
        async with voices.listener(language, self._address) as listener:
            await self._send(message_text("listening", session=session.id, language=language, sample_rate=voices.rate))
            while (item := await listener.take()) is not None:
                if isinstance(item, int):
                    await self._send(message_text("skipped", sentences=item))
                else:
                    await while_open(self._socket.send_bytes(item), _SEND_S)
        if listener.failure is not None:
            raise listener.failure
        await self._send(message_text("end"))
        await self._close(NORMAL)

    async def _hear(self, session: Session) -> None:
        while True:
            message = await self._received()
            if session.state.speaker is not self:  # the speaker sends this audio again over the new connection
                raise ProtocolError("replaced", "the speaker has connected again elsewhere")
            if (data := message.get("bytes")) is not None:
                await session.hear(data, self)
                continue
            match read_message(message["text"]):
                case End():
                    session.end()
                case NewGlossary(text):
                    await self._replace_glossary(session, text)
                case Correct(sentence=number, language=language) | Mask(sentence=number, language=language) as wanted:
                    async with self._told_if_refused("not_corrected", sentence=number, language=sendable(language)):
                        await session.operator.correct(wanted)
                case Speaker(name):
                    async with self._told_if_refused("speaker"):
                        await self._send(message_text("speaker", name=session.operator.name_speaker(name)))
                case Pause(on):
                    await session.operator.pause(on)
                case AddTarget(language):
                    await self._ask(language)
                case first:
                    raise ProtocolError("bad-message", f"{kind_of(first)} came in a session; it may only come first")
            await asyncio.sleep(self._pace.wait_s())

    @asynccontextmanager
    async def _told_if_refused(self, kind: str, **values: object) -> AsyncIterator[None]:
        """Tell the client of a ProtocolError in the block. What it asked for changes nothing, and the session goes on."""
        try:
            yield
        except ProtocolError as error:
            await self._send(message_text(kind, **values, code=error.code, message=str(error)))

    async def _ask(self, language: str) -> None:
        """Have a language added, while this connection goes on."""
        async with self._told_if_refused("not_added", language=sendable(language)):
            if self._asked.full():
                raise ProtocolError("busy", f"{_MOST_ASKED} other languages are being added; wait for these")
            self._asked.put_nowait(language)

    async def _add_targets(self, session: Session, *, by_reader: bool) -> None:
        """Add the languages that are asked for."""
        fetch = not by_reader or self._access.token is None
        while True:
            language = await self._asked.get()
            async with self._told_if_refused("not_added", language=sendable(language)):
                asked = session, language, self._tell_step
                if not await self._service.add_target(*asked, by_reader=by_reader, fetch=fetch):
                    targets = session.config.languages.targets
                    await self._send(message_text("targets", targets=targets, voices=_voices(session)))

    async def _replace_glossary(self, session: Session, text: str) -> None:
        """Take another glossary, unless it has mistakes."""
        async with self._told_if_refused("glossary"):
            glossary = await asyncio.to_thread(read_glossary, text)
            session.glossary.replace(glossary)
            await self._send(message_text("glossary", **await _taken(session, glossary)))

    async def _heed(self, first: str) -> None:
        """Read what a reader or listener sends: readers may ask for languages. Notice its end."""
        while True:
            text = (await self._received()).get("text")
            message = read_message(text) if text is not None and first == "watch" else None
            if not isinstance(message, AddTarget):
                more = " but add_target" if first == "watch" else ""
                raise ProtocolError("bad-message", f"nothing may come after {first}{more}")
            await self._ask(message.language)
            await asyncio.sleep(self._pace.wait_s())

    async def _report(self, session: Session) -> None:
        while True:
            await asyncio.sleep(_STATUS_S)
            told = {"received": session.intake.received, "lag_s": round(session.stats.lag_s, 2)}
            told |= {"viewers": session.readers.count, "recorded": session.recorded}
            await self._send(message_text("status", **told))

    async def _report_pushes(self, session: Session) -> None:
        """Tell the speaker what is not sent elsewhere, each time that this changes."""
        self._told_pushes = ""
        while True:
            await self._tell_pushes(session)
            await asyncio.sleep(_STATUS_S)

    async def _tell_pushes(self, session: Session) -> None:
        problem = session.pushed.problem if session.pushed is not None else ""
        if self._told_pushes not in (None, problem):
            self._told_pushes = problem
            await self._send(message_text("push", message=problem))

    async def _text(self) -> str:
        message = await self._received()
        if (text := message.get("text")) is None:
            raise ProtocolError("bad-message", "audio came first; begin with start, resume or watch")
        return str(text)

    async def _received(self) -> dict[str, Any]:
        message = await while_open(self._socket.receive())
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", NORMAL))
        return {key: message[key] for key in ("bytes", "text") if message.get(key) is not None}

    async def _send(self, text: str) -> None:
        await while_open(self._socket.send_text(text), _SEND_S)

    async def _close(self, code: int, reason: str = "") -> None:
        await while_open(self._socket.close(code, reason), _CLOSE_S)  # it waits while the other side does not read

    async def _acknowledged(self) -> bool:
        """Whether the other side has answered the close frame, so that it has got everything."""
        closing = self._socket.scope.get("extensions", {}).get(CLOSING)
        if closing is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await closing["ended"].wait()
        return bool(closing["answered"].is_set())

    async def _refuse(self, error: ProtocolError) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            await self._send(message_text("error", code=error.code, message=str(error), **error.more))
            await self._close(TRY_LATER if error.code in LATER else REFUSED, error.code)


async def _taken(session: Session, glossary: Glossary) -> dict[str, object]:
    """What the speaker is told of a glossary that is used from now on."""
    unspellable = await asyncio.to_thread(session.unspellable, glossary)
    return {"terms": len(glossary.terms), **({"unspellable": unspellable} if unspellable else {})}


def _written(changes: Changes, snapshot: Snapshot) -> str:
    return snapshot_text([changes.push(event) for event in snapshot.events])


def _voices(session: Session) -> list[str]:
    return session.voices.languages if session.voices is not None else []


def _described(kind: str, session: Session, **values: object) -> str:
    languages = session.config.languages
    described = {"version": VERSION, "session": session.id, "room": session.room, "recorded": session.recorded}
    described |= {"source": languages.source, "targets": list(languages.targets), "voices": _voices(session)}
    return message_text(kind, **described, sample_rate=session.sample_rate, **values)
