"""Rooms: readers follow a speaker from one session to the next, and nobody else can speak there."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import segno

from pipeline import Models, PipelineConfig
from pipeline.server.protocol import ProtocolError, is_room_name, room_name
from pipeline.server.service import Service
from tests.conftest import PHRASES, read_wav
from tests.server.running import Running, final, heard, rest, running, say, serving, speak

KEY = "k3y-of_a-room-that-nobody-guesses"
ROOM = room_name(KEY)
SPEECH = read_wav(PHRASES)[:32_000]


async def newest(server: Running, room: str) -> str | None:
    """The session in a room."""
    answer = await server.get(f"/v1/room?name={room}")
    assert answer.status == 200
    found: str | None = json.loads(answer.body)["session"]
    return found


def test_the_name_of_a_room_does_not_tell_its_key() -> None:
    assert is_room_name(ROOM)
    assert room_name(KEY) == ROOM != room_name(ROOM) != room_name(KEY[1:])


@pytest.mark.parametrize("key", ["x" * 21, "x" * 129, "x" * 30 + "/", "x" * 30 + "é", "x" * 30 + "\n"])
def test_keys_of_another_form_are_refused(key: str) -> None:
    with pytest.raises(ProtocolError, match="22 to 128 characters") as caught:
        room_name(key)
    assert caught.value.code == "bad-room"


def test_readers_follow_a_room_from_one_session_to_the_next(
    demo_config: PipelineConfig, demo_models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    async def session(server: Running) -> dict[str, Any]:
        async with server.connect() as speaker, server.connect() as reader:
            await say(speaker, type="start", room_key=KEY)
            started = await heard(speaker)
            assert started["room"] == ROOM
            await say(reader, type="watch", session=ROOM)
            watching = await heard(reader)
            assert watching["session"] == started["session"]
            assert "key" not in watching
            assert await newest(server, ROOM) == started["session"]
            await speak(speaker, SPEECH)
            await say(speaker, type="end")
            assert final(await rest(reader)) == final(await rest(speaker)) != {}
            return started

    async def work() -> None:
        service = serving(demo_config, demo_models, resume_s=0.0)
        async with running(service) as server:
            assert await newest(server, ROOM) is None
            first, second = [await session(server) for _ in range(2)]
            assert first["session"] != second["session"]
            while service.rooms:
                await asyncio.sleep(0)
            assert await newest(server, ROOM) is None
            async with server.connect() as reader:
                await say(reader, type="watch", session=ROOM)
                assert (await heard(reader))["code"] == "no-session"

    with caplog.at_level(logging.DEBUG, "pipeline"):
        asyncio.run(work())
    assert "2.0 s of audio" in caplog.text
    assert KEY not in caplog.text
    assert ROOM not in caplog.text


def test_nobody_takes_a_room_over(demo_config: PipelineConfig, demo_models: Models) -> None:
    """Who knows the room's name, as readers do, gets another room; who knows the key must wait until its speaker has gone."""

    async def work() -> None:
        async with running(serving(demo_config, demo_models)) as server, server.connect() as speaker:
            await say(speaker, type="start", room_key=KEY)
            session = (await heard(speaker))["session"]
            async with server.connect() as reader:
                await say(reader, type="start", room_key=ROOM)
                assert (await heard(reader))["room"] != ROOM
            async with server.connect() as reader:
                await say(reader, type="start", room_key=KEY[:-1])
                assert (await heard(reader))["room"] != ROOM
            async with server.connect() as reader:
                await say(reader, type="start", room=ROOM)
                assert (await heard(reader))["code"] == "bad-message"
            async with server.connect() as reader:
                await say(reader, type="resume", session=ROOM, key=KEY)
                assert (await heard(reader))["code"] == "wrong-key"
            async with server.connect() as other:
                await say(other, type="start", room_key=KEY)
                assert (await heard(other))["code"] == "room-busy"
            assert server.service.find(ROOM).id == session
            assert server.service.find(ROOM).has_speaker

    asyncio.run(work())


def test_the_speaker_comes_back_into_its_room_after_a_crash(demo_config: PipelineConfig, demo_models: Models) -> None:
    """The session before, whose speaker is gone, ends with its text, and does not close the room of the new one."""

    async def work() -> None:
        service = serving(demo_config, demo_models)
        async with running(service) as server, server.connect() as reader:
            async with server.connect() as speaker:
                await say(speaker, type="start", room_key=KEY)
                before = (await heard(speaker))["session"]
                await say(reader, type="watch", session=before)
                await speak(speaker, SPEECH)
            while service.find(before).has_speaker:
                await asyncio.sleep(0)
            async with server.connect() as speaker:
                await say(speaker, type="start", room_key=KEY)
                now = (await heard(speaker))["session"]
                assert now != before
                assert final(await rest(reader))
                while before in service.sessions:
                    await asyncio.sleep(0)
                assert service.find(ROOM).id == now

    asyncio.run(work())


def test_who_was_cut_off_at_the_end_gets_the_end(demo_config: PipelineConfig, demo_models: Models) -> None:
    """The speaker, whose connection was lost while it waited for the last text, and a reader who had not noticed the session."""

    async def work() -> None:
        service = serving(demo_config, demo_models)
        async with running(service) as server:
            async with server.connect() as speaker:
                await say(speaker, type="start", room_key=KEY)
                started = await heard(speaker)
                await speak(speaker, SPEECH)
                await say(speaker, type="end")
                speaker.transport.abort()
            while service.sessions:
                await asyncio.sleep(0)
            assert await newest(server, ROOM) == started["session"]
            async with server.connect() as speaker, server.connect() as reader:
                await say(speaker, type="resume", session=started["session"], key=started["key"])
                await say(reader, type="watch", session=ROOM)
                assert (await heard(speaker))["received"] == len(SPEECH)
                assert final(await rest(speaker)) == final(await rest(reader)) != {}
                assert speaker.close_code == reader.close_code == 1000

    asyncio.run(work())


def test_speakers_and_readers_are_told_of_a_record(
    demo_config: PipelineConfig, demo_models: Models, tmp_path: Path
) -> None:
    async def told(service: Service) -> list[bool]:
        async with running(service) as server, server.connect() as speaker, server.connect() as reader:
            await say(speaker, type="start")
            started = await heard(speaker)
            assert started["room"] is None
            await say(reader, type="watch", session=started["session"])
            return [started["recorded"], (await heard(reader))["recorded"]]

    assert asyncio.run(told(serving(demo_config, demo_models))) == [False, False]
    assert asyncio.run(told(Service(demo_config, demo_models, record=tmp_path))) == [True, True]


def test_the_code_of_a_room_is_drawn_before_its_session(demo_config: PipelineConfig, demo_models: Models) -> None:
    async def work() -> None:
        async with running(serving(demo_config, demo_models)) as server:
            assert b"<svg" in (await server.get(f"/view/{ROOM}/qr.svg")).body
            assert (await server.get(f"/view/{ROOM}x/qr.svg")).status == 404

    asyncio.run(work())


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("localhost:8000", "https://192.0.2.5:8000"),
        ("0.0.0.0:8000", "https://192.0.2.5:8000"),
        ("192.0.2.7:8000", "http://192.0.2.7:8000"),
    ],
)
def test_the_code_has_an_address_that_other_machines_reach(
    host: str, base: str, demo_config: PipelineConfig, demo_models: Models
) -> None:
    drawn = io.BytesIO()
    segno.make(f"{base}/view/{ROOM}", error="m").save(drawn, kind="svg", scale=4, border=4)

    async def work() -> None:
        async with running(serving(demo_config, demo_models), shared_at="https://192.0.2.5:8000/") as server:
            assert (await server.get(f"/view/{ROOM}/qr.svg", {"Host": host})).body == drawn.getvalue()
            address = json.loads((await server.get("/v1/info", {"Host": host})).body)["address"]
            assert address == (None if "7" in host else "https://192.0.2.5:8000/")

    asyncio.run(work())
