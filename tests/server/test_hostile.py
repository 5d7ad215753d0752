"""Whatever a client writes into a message: the event loop is held for a moment only, nothing stays, and the answer has a code."""

import asyncio
import gc
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from pipeline.events import SourceSentence, SourceText, TargetText, TargetToken, Translation, Word
from pipeline.server.protocol import _FIELDS
from pipeline.server.protocols.wyoming import serving_wyoming
from tests.server.running import Running, ask, heard, running
from tests.server.test_protocol import long_messages

# Of the loop's thread in one callback: time that other threads and programs take is not counted. The least of some tries counts.
LONGEST_S = 0.01
TRIES = 4
SIZE = 1_000_000
FIRST = ("start", "resume", "watch", "listen")
TEXTS = {
    "letters": '"' + "a" * SIZE + '"',
    "subtags": '"en-' + "12345-" * (SIZE // 6) + '1"',
    "private use": '"en-x-' + "a1b2-" * (SIZE // 5) + '1"',
    "blanks": '"' + " " * SIZE + '"',
    "brackets": '"' + "(" * SIZE + '"',
    "marks": '"a' + "\u0301\u0323" * (SIZE // 4) + '"',
    "halves": '"' + r"\ud800" * (SIZE // 6) + '"',
    "quotes": '"' + r"\"" * (SIZE // 2) + '"',
}
VALUES = {
    "deep": "[" * 900 + "]" * 900,
    "deeper": "[" * 60_000 + "]" * 60_000,
    "wide": "[" + "1," * 60_000 + "1]",
    "wider": "[" + "1," * (SIZE // 2) + "1]",
    "codes": json.dumps([f"q{number}" for number in range(60_000)]),
    "names": json.dumps({str(number): 1 for number in range(60_000)}),
    "digits": "9" * SIZE,
    "many digits": "9" * 4_000,
    "infinity": "1e999",
}


class Hold:
    """How long the loop of a thread was held at most, in seconds of work."""

    def __init__(self) -> None:
        self.longest_s = 0.0


@contextmanager
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    """Measure the callbacks of the loop of this thread."""
    hold, thread, run = Hold(), threading.get_ident(), asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        if threading.get_ident() != thread:
            run(handle)
            return
        began_s = time.thread_time()
        run(handle)
        hold.longest_s = max(hold.longest_s, time.thread_time() - began_s)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    gc.collect()
    gc.disable()
    try:
        yield hold
    finally:
        gc.enable()


class Client:
    """Sends messages to one server, from a thread of its own."""

    def __init__(self, server: Running, hold: Hold) -> None:
        self._server, self._hold = server, hold
        self._speaker: ClientConnection | None = None
        self.session = ""

    async def speaker(self) -> ClientConnection:
        if self._speaker is None or self._speaker.close_code is not None:
            self._speaker = await self._server.connect()
            self.session = (await ask(self._speaker, type="start"))["session"]
        return self._speaker

    async def answered(self, kind: str, text: str) -> dict[str, Any]:
        """Send a message, and return the answer that has a code."""
        socket = await self.speaker() if kind not in FIRST else await self._server.connect()
        self._hold.longest_s = 0.0
        await socket.send(text)
        answer = await heard(socket)
        while "code" not in answer:
            answer = await heard(socket)
        if kind in FIRST or answer["type"] == "error":
            await socket.close()
        return answer

    async def check(self, kind: str, name: str, values: dict[str, str]) -> list[str]:
        """What is wrong with the answers to these values of a field, or with their time."""
        wrong = []
        for what, value in values.items():
            await self.speaker()
            needed = {"session": self.session, "key": "k", "language": "zh", "text": "x", "sentence": 0, "name": "x"}
            record = {"type": kind, **{each: needed[each] for each in _FIELDS[kind] if each in needed and each != name}}
            text = f"{json.dumps(record)[:-1]}, {json.dumps(name)}: {value}}}"
            for _ in range(TRIES):
                try:
                    answer = await self.answered(kind, text)
                except ConnectionClosed as error:
                    wrong.append(f"{kind}.{name[:20]} {what}: {error}")
                    break
                if answer["code"] == "failed" or len(json.dumps(answer)) > 2_000:
                    wrong.append(f"{kind}.{name[:20]} {what}: {str(answer)[:200]}")
                    break
                if self._hold.longest_s <= LONGEST_S:
                    break
            else:
                wrong.append(f"{kind}.{name[:20]} {what}: {1000 * self._hold.longest_s:.0f} ms")
        return wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", _FIELDS)
async def test_no_field_of_a_message_holds_the_loop(kind, new_service, monkeypatch, caplog):
    limits = {"max_sessions": 1_000, "resume_s": 0.0, "messages_a_second": 1e6}
    async with running(new_service(**limits)) as server:
        with measured(monkeypatch) as hold:

            async def work() -> list[str]:
                client, wrong = Client(server, hold), list[str]()
                for name, type_ in _FIELDS[kind].items():
                    wrong += await client.check(kind, name, VALUES | (TEXTS if type_ is str else {}))
                for name in ("a" * SIZE, "\ud800" * (SIZE // 6)):
                    wrong += await client.check(kind, name, {"unknown": "1"})
                return wrong

            assert await asyncio.to_thread(asyncio.run, work()) == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.slow
async def test_no_drawn_message_holds_the_loop(new_service, monkeypatch, caplog):
    async with running(new_service(max_sessions=1_000, resume_s=0.0)) as server:
        with measured(monkeypatch) as hold:

            async def answered(text: str) -> dict[str, Any]:
                async with server.connect() as socket:
                    hold.longest_s = 0.0
                    await socket.send(text)
                    return await heard(socket)

            @given(long_messages())
            def check(text: str) -> None:
                for _ in range(TRIES):
                    assert asyncio.run(answered(text)).get("code") != "failed"
                    if hold.longest_s <= LONGEST_S:
                        return
                raise AssertionError(f"{1000 * hold.longest_s:.0f} ms")

            await asyncio.to_thread(check)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_nothing_of_a_message_stays(new_service):
    fields = [(kind, name) for kind in _FIELDS for name, type_ in _FIELDS[kind].items() if type_ is str]

    async with running(new_service(max_sessions=1_000, resume_s=0.0, messages_a_second=1e6)) as server:

        async def send(first: str) -> None:
            client = Client(server, Hold())
            for kind, name in fields:
                await client.check(kind, name, {"letters": f'"{first}{"a" * SIZE}"'})
            await (await client.speaker()).close()

        async def held(first: str) -> int:
            await asyncio.to_thread(asyncio.run, send(first))
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before = await held("q")
            assert await held("w") - before < 1 << 20
            assert tracemalloc.get_traced_memory()[1] - before < 30 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.slow
async def test_a_late_reader_of_a_long_session_holds_nobody_up(new_service, monkeypatch):
    text = "some words that were said here " * 3
    words = tuple(Word(" w", 0.0, 1.0) for _ in range(18))
    tokens = tuple(TargetToken(number, -0.1, number) for number in range(30))
    async with running(new_service()) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        (session,) = server.service.sessions.values()
        for number in range(1_000):
            session.readers.history.push(SourceText(number, "en", text, len(text)))
            session.readers.history.push(SourceSentence(number, "en", text, 0.0, 1.0, 1.0, words))
            for language in ("zh", "pt", "de"):
                session.readers.history.push(TargetText(number, language, text, len(text), tokens, 1.0, True))
                session.readers.history.push(Translation(number, language, text))

        async def read() -> int:
            async with server.connect() as reader:
                snapshot = await ask(reader, type="watch", session=started["session"])
                while snapshot["type"] != "snapshot":
                    snapshot = await heard(reader)
                return len(snapshot["events"])

        held_s = []
        with measured(monkeypatch) as hold:
            for _ in range(TRIES):
                hold.longest_s = 0.0
                assert await asyncio.to_thread(asyncio.run, read()) == 8_000
                held_s.append(hold.longest_s)
        assert min(held_s) <= LONGEST_S


TERMS = {
    "many": "".join(f"term {number} of a talk\tthe translation of {number}\n" for number in range(1_000)),
    "long": "".join(f"term {number}\t" + "词语" * 24 + "\n" for number in range(1_000)),
    "marked": "".join(f"term {number}\ta" + "\u0301\u0323" * 24 + "\n" for number in range(1_000)),
    "variants": "source\ttarget\tvariants\ntree\tarvore\t" + "|".join(f"tree{number}" for number in range(7_000)),
    "brackets": "".join(f"a{'(' * 25}{number}\t{')' * 25}b\n" for number in range(1_000)),
    "lines": "tree\tarvore\n" + "\n" * 65_000,
}
LANGUAGES = "de fr es it pt nl pl ru uk cs sk sl hr bg ro hu fi sv da nb et lv lt el tr ar he fa hi ja ko zh".split()


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [*(({"glossary": text}, "started") for text in TERMS.values()), ({"targets": LANGUAGES}, "error")],
    ids=[*TERMS, "languages"],
)
async def test_no_long_start_holds_the_loop(wanted, answer, new_service, monkeypatch):
    async with running(new_service(max_sessions=1_000, resume_s=0.0)) as server:

        async def start() -> dict[str, Any]:
            async with server.connect() as socket:
                return await ask(socket, type="start", **wanted)

        held_s = []
        with measured(monkeypatch) as hold:
            for _ in range(TRIES):
                hold.longest_s = 0.0
                assert (await asyncio.to_thread(asyncio.run, start()))["type"] == answer
                held_s.append(hold.longest_s)
        assert min(held_s) <= LONGEST_S


WYOMING: dict[str, dict[str, Any]] = {
    "ping": {"text": "x"},
    "transcribe": {"name": "transcribe", "language": "en"},
    "select-program": {"name": "transcribe", "language": "en"},
    "audio-start": {"rate": 16_000, "width": 2, "channels": 1, "timestamp": 0},
    "audio-chunk": {"rate": 16_000, "width": 2, "channels": 1, "timestamp": 0},
}


def wyoming_events(kind: str, name: str, value: str) -> list[bytes]:
    """An event with this value of a field, in its line or beside it, and with one that is cut off."""
    others = json.dumps({each: other for each, other in WYOMING[kind].items() if each != name})
    before = others.replace("}", ", " if len(others) > 2 else "") + json.dumps(name)
    found = []
    for text in {value, value[:30_000] + value[-30_000:], value[:60_000]}:
        data = f"{before}: {text}}}".encode()
        found += [b'{"type": "%s", "data": %b}\n' % (kind.encode(), data)]
        found += [b'{"type": "%s", "data_length": %d}\n%b' % (kind.encode(), len(data), data)]
    return found


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, fields in WYOMING.items() for name in fields])
async def test_no_field_of_a_wyoming_event_holds_the_loop(kind, name, new_service, monkeypatch, caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with serving_wyoming(new_service(max_sessions=1_000), listener):

            async def answer(event: bytes) -> dict[str, Any]:
                """The first answer to an event and a ping."""
                reader, writer = await asyncio.open_connection(*listener.getsockname(), limit=1 << 20)
                writer.write(event + b'{"type": "ping", "data": {}}\n')
                found = json.loads(await reader.readline())
                found["data"] = json.loads(await reader.readexactly(found.get("data_length", 0)) or b"{}")
                writer.close()
                return found

            async def work() -> list[str]:
                wrong = []
                for what, value in (TEXTS | VALUES).items():
                    for event in wyoming_events(kind, name, value):
                        for _ in range(TRIES):
                            hold.longest_s = 0.0
                            found = await answer(event)
                            if hold.longest_s <= LONGEST_S:
                                break
                        else:
                            wrong.append(f"{what}: {1000 * hold.longest_s:.0f} ms")
                        if found["type"] == "error" and not (found["data"].get("code") and len(str(found)) < 2_000):
                            wrong.append(f"{what}: {str(found)[:200]}")
                return wrong

            with measured(monkeypatch) as hold:
                assert await asyncio.to_thread(asyncio.run, work()) == []
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
