"""OpenAI's realtime transcription session with the openai package as it is."""

import asyncio
import base64
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI

from pipeline.server import scheduling
from pipeline.server.access import Access
from pipeline.server.limits import ServerLimits
from pipeline.server.scheduling import Priority
from pipeline.server.service import Service
from pipeline.server.session_record import Record
from tests.conftest import HANG_S
from tests.core.asr.scripted import Scripted
from tests.server.running import Running, running, serving, until
from tests.server.test_realtime import SPEECH
from tests.server.test_unanswered import Hangs

TEXT = "conversation.item.input_audio_transcription"
NO_TURNS = {"type": "transcription", "audio": {"input": {"turn_detection": None}}}


@asynccontextmanager
async def connected(server: Running, key: str = "any") -> Any:
    async with (
        AsyncOpenAI(base_url=server.address, api_key=key, max_retries=0) as client,
        client.realtime.connect(extra_query={"intent": "transcription"}) as connection,
    ):
        assert (await connection.recv()).session.type == "transcription"
        yield connection


async def committed(connection: Any, audio: bytes) -> list[Any]:
    """Say something and commit it; all events up to the last text of it."""
    for begin in range(0, len(audio), 9_601):
        await connection.input_audio_buffer.append(audio=base64.b64encode(audio[begin : begin + 9_601]).decode())
    await connection.input_audio_buffer.commit()
    await connection.session.update(session={"type": "transcription"})  # answered after it
    events = []
    while (event := await connection.recv()).type != "session.updated":
        events.append(event)
    return events


def texts(events: list[Any], kind: str, value: str) -> dict[str, str]:
    """The texts of each item."""
    found: dict[str, str] = {}
    for event in events:
        if event.type == f"{TEXT}.{kind}":
            found[event.item_id] = found.get(event.item_id, "") + getattr(event, value)
    return found


@pytest.mark.slow
async def test_each_sentence_is_an_item_or_what_is_committed(new_service):
    service = new_service()
    async with running(service) as server, connected(server) as connection:
        sentences = await committed(connection, SPEECH)
        await connection.session.update(session=NO_TURNS)
        assert (await connection.recv()).session.audio.input.turn_detection is None
        whole = await committed(connection, SPEECH)
        silence = await committed(connection, bytes(9_600))
        assert not service.sessions
    final = texts(sentences, "completed", "transcript")
    assert len(final) >= 2
    assert texts(sentences, "delta", "delta") == final
    items = [event for event in sentences + whole + silence if event.type == "input_audio_buffer.committed"]
    assert [one.previous_item_id for one in items] == [None, *(one.item_id for one in items[:-1])]
    assert {one.item_id for one in items} > final.keys()
    assert [*texts(whole, "completed", "transcript").values()] == [" ".join(final.values())]
    assert texts(whole, "delta", "delta") == texts(whole, "completed", "transcript")
    assert [*texts(silence, "completed", "transcript").values()] == [""]
    assert all(event.usage.seconds > 0 for event in whole if event.type == f"{TEXT}.completed")


async def test_silence_that_is_committed_has_an_empty_item(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        item, text = await committed(connection, bytes(9_600))
        assert (item.type, text.type) == ("input_audio_buffer.committed", f"{TEXT}.completed")
        assert (item.item_id, text.transcript) == (text.item_id, "")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty"),
        ({"type": "response.create"}, "bad-message"),
        ({"type": "input_audio_buffer.append", "audio": "?"}, "bad-audio"),
        ({"type": "session.update", "session": {"type": "realtime"}}, "bad-message"),
        ({"type": "session.update", "session": {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}}, "bad-audio"),
        (
            {"type": "session.update", "session": {"audio": {"input": {"transcription": {"language": "fr"}}}}},
            "unknown-source",
        ),
        (
            {"type": "session.update", "session": {"audio": {"input": {"transcription": {"language": "e" * 99}}}}},
            "bad-message",
        ),
    ],
)
async def test_what_is_wrong_is_answered_and_the_session_goes_on(message, code, new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.send(message)
        error = await connection.recv()
        assert (error.type, error.error.code) == ("error", code)
        wanted = {"model": "gpt-4o-transcribe", "language": "en-GB"}
        await connection.session.update(
            session={"type": "transcription", "audio": {"input": {"transcription": wanted}}}
        )
        assert (await connection.recv()).session.audio.input.transcription.language == "en-GB"


async def test_what_is_cleared_has_no_text_and_keeps_its_place_while_it_is_recognised(demo_config, demo_models):
    hangs = Hangs()
    service = serving(demo_config, replace(demo_models, recognizer=hangs, drafter=None))
    async with running(service) as server, connected(server) as connection:
        await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH).decode())
        await until(lambda: bool(service.sessions))
        (session,) = service.sessions.values()
        await until(lambda: ("asr", "") in session.stats.calls.values())
        await connection.input_audio_buffer.clear()
        await until(lambda: not session._translator.running)
        assert service.places.taken == 1
        hangs.answers.set()
        assert (await connection.recv()).type == "input_audio_buffer.cleared"
        assert service.places.taken == 0
        await until(lambda: not service.sessions)
        await connection.input_audio_buffer.commit()
        assert (await connection.recv()).error.code == "input_audio_buffer_commit_empty"


async def test_what_is_cleared_waits_no_longer_for_a_recogniser_than_for_one_that_hangs(demo_config, demo_models):
    hangs = Hangs()
    service = serving(demo_config, replace(demo_models, recognizer=hangs, drafter=None), model_s=1.0)
    async with running(service) as server, connected(server) as connection:
        await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH).decode())
        await until(lambda: any(("asr", "") in each.stats.calls.values() for each in service.sessions.values()))
        await connection.input_audio_buffer.clear()
        assert (await connection.recv()).type == "input_audio_buffer.cleared"
        assert (service.places.taken, service.places.hung) == (0, True)
        hangs.answers.set()
        await until(lambda: not service.places.hung)


async def test_what_is_cleared_is_not_recognised_when_its_turn_comes(demo_config, demo_models, monkeypatch):
    monkeypatch.setattr(scheduling, "_LOOK_S", 0.01)
    recognizer = Scripted()
    service = serving(demo_config, replace(demo_models, recognizer=recognizer, drafter=None))
    async with running(service) as server, connected(server) as connection:
        with service.scheduler.slot(Priority.FINAL):
            await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH).decode())
            await until(lambda: service.scheduler.waiting == 1)
            await connection.input_audio_buffer.clear()
            assert (await connection.recv()).type == "input_audio_buffer.cleared"
            assert (service.scheduler.waiting, service.places.taken) == (0, 0)
        await until(lambda: not service.sessions)
        assert not recognizer.calls


@pytest.mark.parametrize("event", ["commit", "clear"])
async def test_the_place_of_what_was_said_is_free_for_what_follows(
    event, demo_config, demo_models, tmp_path, monkeypatch
):
    closing, go_on = Record.close, asyncio.Event()

    async def close_late(record: Record) -> None:
        await go_on.wait()
        await closing(record)

    monkeypatch.setattr(Record, "close", close_late)
    service = Service(demo_config, demo_models, ServerLimits(max_sessions=1), tmp_path)
    async with running(service) as server, connected(server) as connection, connected(server) as other:
        for _ in range(2):
            await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(9_600)).decode())
            await connection.send({"type": f"input_audio_buffer.{event}"})
            while (answer := await connection.recv()).type not in (f"{TEXT}.completed", "input_audio_buffer.cleared"):
                assert answer.type == "input_audio_buffer.committed"
        assert (len(service.sessions), service.places.ready) == (2, False)  # as many as may close their records at once
        await other.input_audio_buffer.append(audio="AAAA" * 2)
        assert (await other.recv()).error.code == "busy"
        go_on.set()
        await until(lambda: service.places.ready and not service.sessions)


async def test_a_full_server_says_so_and_a_client_that_goes_away_ends_its_session(new_service):
    service = new_service(max_sessions=1, resume_s=HANG_S)
    async with running(service) as server, connected(server) as second:
        async with connected(server) as first:
            await first.input_audio_buffer.append(audio="AAAA" * 2)
            await until(lambda: bool(service.sessions))
            await second.input_audio_buffer.append(audio="AAAA" * 2)
            assert (await second.recv()).error.code == "busy"
        await until(lambda: not service.sessions)


@pytest.mark.parametrize("speaks", [True, False])
async def test_a_session_that_hears_nothing_for_long_ends(new_service, speaks):
    async with running(new_service(idle_s=0.5)) as server, connected(server) as connection:
        if speaks:
            await connection.input_audio_buffer.append(audio="AAAA" * 2)
        error = await connection.recv()
        assert error.error.code == "idle"


async def test_the_token_is_the_api_key(new_service):
    token = "0123456789abcdef"
    async with running(new_service(), Access.of(token)) as server:
        async with connected(server, token):
            pass
        answer = await server.get("/v1/realtime?intent=transcription", {"upgrade": "websocket"})
        assert answer.status >= 400
