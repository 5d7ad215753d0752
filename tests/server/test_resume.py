"""The last text of a session whose connections were lost, and what readers are told when a session ends early."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pipeline.server.history import History
from pipeline.server.scheduling import Priority
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import Running, ask, final, finish, heard, rest, running, say, speak, until

SPEECH = read_wav(PHRASES)[: round(PHRASE_SECONDS * 16_000)]


@asynccontextmanager
async def lost_before_the_end(server: Running) -> AsyncIterator[dict[str, Any]]:
    """What a speaker was told whose connection was lost after it had said everything, and before the text came."""
    service = server.service
    async with server.connect() as speaker:
        started = await ask(speaker, type="start")
        with service.scheduler.slot(Priority.FINAL):  # so that no text comes yet
            await speak(speaker, SPEECH)
            await say(speaker, type="end")
            (session,) = service.sessions.values()
            await until(lambda: session.intake.ended)
            speaker.transport.abort()
            await until(lambda: session.state.speaker is None)
    await until(lambda: not service.sessions)
    yield started


@pytest.mark.slow
async def test_the_last_text_waits_for_readers_whose_connection_was_lost(new_service):
    async with running(new_service()) as server, lost_before_the_end(server) as started:
        async with server.connect() as speaker:
            resumed = await ask(speaker, type="resume", session=started["session"], key=started["key"])
            assert (resumed["type"], resumed["received"]) == ("resumed", len(SPEECH))
            records = await rest(speaker)
            assert records[-1]["events"][-1]["type"] == "end"
            assert {language for _, language in final(records)} == {"en", "zh"}
            assert speaker.close_code == 1000
        async with server.connect() as reader:
            assert (await ask(reader, type="watch", session=started["session"]))["type"] == "watching"
            assert final(await rest(reader)) == final(records)
        assert server.service.places.ready


@pytest.mark.slow
async def test_the_last_text_waits_for_a_reader_to_whom_nothing_gets_through(new_service):
    async with running(new_service()) as server, server.connect() as speaker, server.connect(close_timeout=0) as reader:
        watch = {"type": "watch", "session": (await ask(speaker, type="start"))["session"]}
        await say(reader, **watch)
        while (await heard(reader))["type"] != "snapshot":
            pass
        reader.transport.pause_reading()
        await speak(speaker, SPEECH)
        records = await finish(speaker)
        await until(lambda: not server.service.sessions)
        async with server.connect() as again:
            await say(again, **watch)
            assert final(await rest(again)) == final(records)


async def test_a_session_that_everybody_has_read_is_gone(new_service):
    async with running(new_service()) as server:
        async with server.connect() as speaker:
            started = await ask(speaker, type="start")
            assert (await finish(speaker))[-1]["type"] == "end"
        await until(lambda: not server.service.sessions)
        async with server.connect() as speaker:
            await say(speaker, type="resume", session=started["session"], key=started["key"])
            assert (await rest(speaker))[-1]["code"] == "no-session"


@pytest.mark.slow
async def test_the_last_text_waits_for_the_time_to_resume_only(new_service):
    service = new_service(resume_s=0.0)
    async with running(service) as server, lost_before_the_end(server) as started, server.connect() as reader:
        await say(reader, type="watch", session=started["session"])
        assert (await rest(reader))[-1]["code"] == "no-session"


async def test_readers_are_told_when_the_server_stops_before_the_end(new_service):
    service = new_service(drain_s=0.0)
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        with service.scheduler.slot(Priority.FINAL):  # so that it cannot be translated
            await speak(speaker, SPEECH)
            server.stop()
            last = (await rest(speaker))[-1]
        assert (last["type"], last["code"]) == ("error", "stopping")
        assert speaker.close_code == 1013


@pytest.mark.slow
async def test_a_defect_ends_the_session_alone_and_is_told(new_service, monkeypatch, caplog):
    push, broken = History.push, []

    def pushing(history: History, event: Any) -> None:
        if not broken:
            broken.append(history)
        if history is broken[0]:
            raise KeyError("defect")
        push(history, event)

    monkeypatch.setattr(History, "push", pushing)
    async with running(new_service()) as server, server.connect() as other:
        async with server.connect() as speaker:
            await ask(speaker, type="start")

            async def send() -> None:
                while True:
                    await speak(speaker, SPEECH)

            sending = asyncio.create_task(send())
            assert (await rest(speaker))[-1]["code"] == "failed"
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        await ask(other, type="start")
        await speak(other, SPEECH)
        assert (await finish(other))[-1]["type"] == "end"
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.name for record in errors] == ["pipeline.server.session"]


@pytest.mark.slow
async def test_a_speaker_who_does_not_come_back_is_noted_once(new_service, monkeypatch, caplog):
    monkeypatch.setattr("pipeline.server.session._WATCH_S", 0.0)
    caplog.set_level(logging.INFO, "pipeline.server")
    service = new_service(resume_s=0.0)
    async with running(service) as server:
        with service.scheduler.slot(Priority.FINAL):
            async with server.connect() as speaker:
                await ask(speaker, type="start")
                await speak(speaker, SPEECH)
            (session,) = service.sessions.values()
            await until(lambda: session.intake.ended)
            for _ in range(10):
                await asyncio.sleep(0)
        await until(lambda: not service.sessions)
    assert caplog.text.count("did not come back") == 1
