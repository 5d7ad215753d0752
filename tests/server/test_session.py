"""Speakers and readers over the WebSocket, with real models: text, resuming, refusals, and the end of the server."""

import asyncio
import json
import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipeline import Models, PipelineConfig
from pipeline.bench.words import edits
from pipeline.core.captions.changes import ChangeEvent
from pipeline.events import SourceText, Translation
from pipeline.languages.marks import letters
from pipeline.server import intake, websocket
from pipeline.server import session as session_module
from pipeline.server.access import Access
from pipeline.server.chains import Chain
from pipeline.server.feed import Snapshot
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import snapshot_text
from pipeline.server.session import Session
from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, ROOT, read_wav
from tests.server.running import (
    CHUNK,
    Running,
    Texts,
    ask,
    final,
    finish,
    heard,
    rest,
    running,
    say,
    speak,
    translated,
    until,
)
from tests.streams import changes

SPEECH = read_wav(PHRASES)


@pytest.fixture(scope="module")
def expected(demo_config: PipelineConfig, demo_models: Models) -> Texts:
    """The text of the recording from a translator in this process."""
    found = asyncio.run(translated(demo_config, demo_models, SPEECH))
    assert len(found) >= 2
    return found


@pytest.mark.slow
async def test_a_speaker_and_readers_get_the_text(new_service, expected):
    async with running(new_service()) as server, server.connect() as speaker:
        started = await ask(speaker, type="start", targets=["zh"])
        assert (started["type"], started["received"], started["targets"]) == ("started", 0, ["zh"])
        async with server.connect() as reader:
            watching = await ask(reader, type="watch", session=started["session"], language="zh")
            assert watching["type"] == "watching"
            assert "key" not in watching
            reading = asyncio.create_task(rest(reader))
            await speak(speaker, SPEECH)
            records = await finish(speaker)
            assert final(records) == expected == final(await reading)
            assert records[-1]["type"] == "end"
            assert speaker.close_code == reader.close_code == 1000
        assert not server.service.sessions


@pytest.mark.slow
async def test_a_reader_who_comes_late_gets_all_texts(new_service, expected):
    async with running(new_service()) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        await speak(speaker, SPEECH)
        while (await heard(speaker))["type"] != "translation":
            pass
        async with server.connect() as reader:
            await ask(reader, type="watch", session=started["session"])
            await say(speaker, type="end")
            assert final(await rest(reader)) == expected


@pytest.mark.slow
async def test_a_lost_connection_loses_neither_audio_nor_text(new_service, expected, monkeypatch):
    monkeypatch.setattr(intake, "_SILENT_S", math.inf)  # the speaker sends nothing while a draft is made
    async with running(new_service()) as server:
        records: list[dict[str, Any]] = []
        async with server.connect() as first:
            started = await ask(first, type="start")
            await speak(first, SPEECH[:40_000])
            while not records or records[-1]["type"] != "source_delta":
                records.append(await heard(first))
            first.transport.abort()
        async with server.connect() as second:
            resumed = await ask(second, type="resume", session=started["session"], key=started["key"])
            assert resumed["type"] == "resumed"
            assert resumed["received"] <= 40_000
            await speak(second, SPEECH[resumed["received"] :])
            found = final([*records, *await finish(second)])
            assert found == expected


@pytest.mark.slow
async def test_a_session_whose_speaker_does_not_come_back_ends(new_service):
    async with running(new_service(resume_s=0.0)) as server:
        async with server.connect() as speaker:
            started = await ask(speaker, type="start")
            await speak(speaker, SPEECH)
        async with server.connect() as reader:
            await say(reader, type="watch", session=started["session"])
            records = await rest(reader)
            assert final(records)
            assert records[-1]["type"] == "end"


async def test_a_second_connection_of_the_speaker_replaces_the_first(new_service):
    async with running(new_service()) as server, server.connect() as first:
        started = await ask(first, type="start")
        async with server.connect() as second:
            assert (await ask(second, type="resume", session=started["session"], key=started["key"]))[
                "type"
            ] == "resumed"
            await speak(first, SPEECH[:3_200])
            assert (await rest(first))[-1]["code"] == "replaced"
            assert server.service.index.find(started["session"]).intake.received == 0
            assert (await finish(second))[-1]["type"] == "end"


async def answer(server: Running, *messages: str | bytes) -> dict[str, Any]:
    """The last message that the server sends in answer to these."""
    async with server.connect() as socket:
        for message in messages:
            await socket.send(message)
        return (await rest(socket))[-1]


START = '{"type": "start"}'


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([b"\0\0"], "bad-message"),
        (["hello"], "bad-message"),
        (['{"type": "end"}'], "bad-message"),
        ([START, START], "bad-message"),
        ([START, "{"], "bad-message"),
        ([START, '{"type": "end"}', b"ab"], "ended"),
        (['{"type": "start", "targets": ["fr"]}'], "unknown-target"),
        (['{"type": "start", "source": "de"}'], "unknown-source"),
        (['{"type": "start", "sample_rate": 0}'], "bad-sample-rate"),
        (['{"type": "watch", "session": "x"}'], "no-session"),
        (['{"type": "resume", "session": "x", "key": "y"}'], "no-session"),
    ],
)
async def test_what_is_wrong_is_answered_with_its_code(messages, code, new_service):
    async with running(new_service(resume_s=0.0)) as server:
        error = await answer(server, *messages)
    # Audio after the end may find that the session has ended already.
    assert error["type"] == "error" or code == "ended"
    assert code == "ended" or error["code"] == code


@pytest.mark.slow
async def test_a_session_may_have_captions_in_the_language_spoken(new_service, expected):
    async with running(new_service()) as server, server.connect() as speaker:
        assert (await ask(speaker, type="start", targets=["en"]))["targets"] == ["en"]
        await speak(speaker, SPEECH)
        records = await finish(speaker)
    captions = {one["sentence"]: one["text"] for one in records if one["type"] == "translation"}
    assert captions == {sentence: text for (sentence, language), text in expected.items() if language == "en"}


async def test_one_speaker_too_many_is_told_so(new_service):
    async with running(new_service(max_sessions=1)) as server, server.connect() as first:
        await ask(first, type="start")
        async with server.connect() as second:
            await say(second, type="start")
            (error,) = await rest(second)
            assert (error["code"], second.close_code) == ("busy", 1013)
        await finish(first)
        async with server.connect() as third:
            assert (await ask(third, type="start"))["type"] == "started"
        assert server.service.places.refused == {"busy": 1}


async def test_one_reader_too_many_is_told_so(new_service):
    async with running(new_service(max_viewers=1)) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        watch = json.dumps({"type": "watch", "session": started["session"]})
        async with server.connect() as reader:
            await reader.send(watch)
            await heard(reader)
            assert (await answer(server, watch))["code"] == "busy"


async def test_speakers_need_the_token_and_the_key(new_service):
    access = Access.of("0123456789abcdef")
    async with running(new_service(), access) as server, server.connect() as speaker:
        for token in ({}, {"token": "0123456789abcdeg"}):
            assert (await answer(server, json.dumps({"type": "start", **token})))["code"] == "wrong-token"
        started = await ask(speaker, type="start", token="0123456789abcdef")
        wrong = {"type": "resume", "session": started["session"], "key": started["key"] + "x"}
        assert (await answer(server, json.dumps(wrong)))["code"] == "wrong-token"
        assert (await answer(server, json.dumps({**wrong, "token": access.token})))["code"] == "wrong-key"


@pytest.mark.parametrize(("name", "origin"), [("127.0.0.1", "http://evil.example"), ("evil.example", None)])
async def test_other_sites_pages_and_names_are_refused(name, origin, new_service):
    async with running(new_service()) as server:
        with pytest.raises(InvalidStatus) as refused:
            async with server.connect(name, origin=origin):
                pass
        assert refused.value.response.status_code == 403
        async with server.connect("127.0.0.1", origin=f"http://127.0.0.1:{server.port}") as socket:
            await say(socket, type="watch", session="x")
            assert (await rest(socket))[-1]["code"] == "no-session"


async def test_a_message_that_is_too_large_ends_the_connection_alone(new_service):
    async with running(new_service(message_bytes=1_000)) as server, server.connect() as first:
        await ask(first, type="start")
        async with server.connect() as second:
            await ask(second, type="start")
            await second.send(bytes(2_000))
            with pytest.raises(ConnectionClosed):
                while True:
                    await second.recv()
            assert second.close_code == 1009
        assert (await finish(first))[-1]["type"] == "end"


async def test_a_silent_connection_is_closed(new_service):
    async with running(new_service(first_message_s=0.0)) as server, server.connect() as socket:
        assert (await rest(socket))[-1]["code"] == "no-message"


@pytest.mark.parametrize(("limit", "code"), [({"idle_s": 0.0}, "idle"), ({"session_s": 0.0}, "too-long")])
async def test_a_session_has_limits(limit, code, new_service):
    async with running(new_service(**limit)) as server, server.connect() as speaker:
        await say(speaker, type="start")
        *_, end, error = await rest(speaker)
        assert (end["type"], error["code"]) == ("end", code)


@pytest.mark.slow
async def test_the_sentence_of_a_speaker_who_sends_nothing_more_ends(demo_config, demo_models, monkeypatch):
    now_s = 0.0
    monkeypatch.setattr(session_module, "_WATCH_S", 0.0)
    session = Session(Chain(demo_config, demo_models), ServerLimits(), 16_000, clock=lambda: now_s)
    speaker = object()
    feed = session.connect(speaker)
    working = asyncio.create_task(session.run())
    await session.hear(SPEECH[: round(PHRASE_SECONDS * 16_000) - 8_000].tobytes())  # without the pause after it

    async def told(kind: type) -> None:
        async with asyncio.timeout(HANG_S):
            while not isinstance(await feed.take(), kind):
                pass

    await told(SourceText)
    now_s = 1.4
    session.disconnect(speaker, object())  # who is away may go on with what was said meanwhile
    now_s = 10.0
    for _ in range(10):
        await asyncio.sleep(0)
    assert session.intake.arrived_s < PHRASE_SECONDS
    session.connect(speaker)
    now_s = 13.0
    await told(Translation)
    assert not session.intake.ended
    session.end()
    await working


@pytest.mark.slow
async def test_a_stopping_server_ends_sessions_as_their_speakers_would(new_service, expected):
    async with running(new_service()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        await speak(speaker, SPEECH)
        while json.loads(await speaker.recv()).get("received") != len(SPEECH):
            pass
        server.stop()
        while not server.service.places.draining:
            await asyncio.sleep(0)
        await speak(speaker, SPEECH[:CHUNK])  # a speaker goes on until it is told
        records = await rest(speaker)
        assert (records[-1]["type"], records[-1]["duration_s"]) == ("end", round(len(SPEECH) / 16_000, 4))
        assert speaker.close_code == 1000


async def test_a_stopping_server_is_healthy_and_not_ready(new_service):
    async with running(new_service(max_sessions=1)) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        full = await server.get("/readyz")
        assert (full.status, full.body) == (200, b"full\n")
        server.service.places.draining = True
        assert [(await server.get(path)).status for path in ("/healthz", "/readyz")] == [200, 503]


async def test_a_mistake_that_comes_while_the_client_hangs_up_is_logged(new_service, monkeypatch, caplog):
    hung_up = asyncio.Event()

    async def fail(*_: object) -> None:
        try:
            await hung_up.wait()
        finally:
            raise ValueError("a mistake")

    monkeypatch.setattr(websocket.Connection, "_report", fail)
    service = new_service(resume_s=0.0)
    async with running(service) as server:
        async with server.connect() as speaker:
            await ask(speaker, type="start")
        await until(lambda: not service.sessions)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == "a connection failed while it ended"


@pytest.mark.slow
async def test_the_client_of_the_examples_prints_the_translation(new_service, expected):
    wanted = [text for (_, language), text in sorted(expected.items()) if language == "zh"]
    # At real pace, Whisper may hear "7 o'clock", and two sentences as one.
    async with running(new_service()) as server:
        address = f"ws://127.0.0.1:{server.port}/v1/session"
        client = await asyncio.create_subprocess_exec(
            sys.executable, ROOT / "examples" / "serve_client.py", PHRASES, address, stdout=subprocess.PIPE
        )
        printed, _ = await client.communicate()
        assert client.returncode == 0
    heard = letters(printed.decode().replace("7点", "七点"))
    # A live run may hear a word or two otherwise on a slow machine.
    assert edits(list(heard), list(letters("".join(wanted)))) <= 0.2 * len(heard)


@pytest.mark.slow
async def test_a_reader_who_comes_when_all_is_said_gets_the_texts_and_the_end(demo_config, demo_models, expected):
    session = Session(Chain(demo_config, demo_models), ServerLimits(), 16_000)
    await session.hear(SPEECH.tobytes())
    session.end()
    await session.run()
    feed = session.attach()
    snapshot = await feed.take()
    assert isinstance(snapshot, Snapshot)
    assert final([json.loads(snapshot_text(changes(snapshot.events)))]) == expected
    assert await feed.take() is None


async def test_a_snapshot_is_not_written_on_the_event_loop(new_service, monkeypatch):
    threads = []

    def noted(events: Sequence[ChangeEvent]) -> str:
        threads.append(threading.current_thread())
        return snapshot_text(events)

    monkeypatch.setattr(websocket, "snapshot_text", noted)
    async with running(new_service()) as server, server.connect() as speaker:
        await say(speaker, type="start")
        while (await heard(speaker))["type"] != "snapshot":
            pass
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("mistake", [RecursionError("too deep"), TimeoutError("of a library"), KeyError("x")])
async def test_a_mistake_of_the_server_is_logged_and_told(mistake, new_service, monkeypatch, caplog):
    def fail(session: Session, *_: str | None) -> None:
        raise mistake

    monkeypatch.setattr(Session, "attach", fail)
    async with running(new_service()) as server, server.connect() as speaker, server.connect() as reader:
        session = (await ask(speaker, type="start"))["session"]
        answer = await ask(reader, type="watch", session=session)
        assert (answer["type"], answer["code"]) == ("error", "failed")
        assert (await finish(speaker))[-1]["type"] == "end"
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info is not None
    assert record.exc_info[1] is mistake
