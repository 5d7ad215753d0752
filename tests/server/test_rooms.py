"""Rooms: readers follow a speaker from one session to the next, and nobody else can speak there."""

import asyncio
import io
import json
import logging
from typing import Any

import pytest
import segno

from pipeline.server.protocol import ProtocolError, is_room_name, room_name
from pipeline.server.service import Service
from tests.conftest import PHRASES, read_wav
from tests.server.running import Running, ask, final, heard, rest, running, say, speak, until

KEY = "k3y-of_a-room-that-nobody-guesses"
ROOM = room_name(KEY)
SPEECH = read_wav(PHRASES)[:32_000]


async def newest(server: Running, room: str) -> str | None:
    """The session in a room."""
    answer = await server.get(f"/v1/room?name={room}")
    assert answer.status == 200
    found: str | None = json.loads(answer.body)["session"]
    return found


def test_the_name_of_a_room_does_not_tell_its_key():
    assert is_room_name(ROOM)
    assert room_name(KEY) == ROOM != room_name(ROOM) != room_name(KEY[1:])


@pytest.mark.parametrize("key", ["x" * 21, "x" * 129, "x" * 30 + "/", "x" * 30 + "é", "x" * 30 + "\n"])
def test_keys_of_another_form_are_refused(key):
    with pytest.raises(ProtocolError, match="22 to 128 characters") as caught:
        room_name(key)
    assert caught.value.code == "bad-room"


async def test_readers_follow_a_room_from_one_session_to_the_next(new_service, caplog):
    async def session(server: Running) -> dict[str, Any]:
        async with server.connect() as speaker, server.connect() as reader:
            started = await ask(speaker, type="start", room_key=KEY)
            assert started["room"] == ROOM
            watching = await ask(reader, type="watch", session=ROOM)
            assert watching["session"] == started["session"]
            assert "key" not in watching
            assert await newest(server, ROOM) == started["session"]
            await speak(speaker, SPEECH)
            await say(speaker, type="end")
            assert final(await rest(reader)) == final(await rest(speaker)) != {}
            return started

    caplog.set_level(logging.DEBUG, "pipeline")
    service = new_service(resume_s=0.0)
    async with running(service) as server:
        assert await newest(server, ROOM) is None
        first, second = [await session(server) for _ in range(2)]
        assert first["session"] != second["session"]
        await until(lambda: not service.rooms)
        assert await newest(server, ROOM) is None
        async with server.connect() as reader:
            assert (await ask(reader, type="watch", session=ROOM))["code"] == "no-session"
    assert "2.0 s of audio" in caplog.text
    assert KEY not in caplog.text
    assert ROOM not in caplog.text


async def test_nobody_takes_a_room_over(new_service):
    """Who knows the room's name, as readers do, gets another room; who knows the key must wait until its speaker has gone."""
    async with running(new_service()) as server, server.connect() as speaker:
        session = (await ask(speaker, type="start", room_key=KEY))["session"]
        async with server.connect() as reader:
            assert (await ask(reader, type="start", room_key=ROOM))["room"] != ROOM
        async with server.connect() as reader:
            assert (await ask(reader, type="start", room_key=KEY[:-1]))["room"] != ROOM
        async with server.connect() as reader:
            assert (await ask(reader, type="start", room=ROOM))["code"] == "bad-message"
        async with server.connect() as reader:
            assert (await ask(reader, type="resume", session=ROOM, key=KEY))["code"] == "no-session"
        async with server.connect() as other:
            assert (await ask(other, type="start", room_key=KEY))["code"] == "room-busy"
        assert server.service.index.find(ROOM).id == session
        assert server.service.index.find(ROOM).state.has_speaker


async def test_the_speaker_comes_back_into_its_room_after_a_crash(new_service):
    """The session before, whose speaker is gone, ends with its text, and does not close the room of the new one."""
    service = new_service()
    async with running(service) as server, server.connect() as reader:
        async with server.connect() as speaker:
            before = (await ask(speaker, type="start", room_key=KEY))["session"]
            await say(reader, type="watch", session=before)
            await speak(speaker, SPEECH)
        await until(lambda: not service.index.find(before).state.has_speaker)
        async with server.connect() as speaker:
            now = (await ask(speaker, type="start", room_key=KEY))["session"]
            assert now != before
            assert final(await rest(reader))
            await until(lambda: before not in service.sessions)
            assert service.index.find(ROOM).id == now


async def test_who_was_cut_off_at_the_end_gets_the_end(new_service):
    """The speaker, whose connection was lost while it waited for the last text, and a reader who had not noticed the session."""
    service = new_service()
    async with running(service) as server:
        async with server.connect() as speaker:
            started = await ask(speaker, type="start", room_key=KEY)
            await speak(speaker, SPEECH)
            await say(speaker, type="end")
            speaker.transport.abort()
        await until(lambda: not service.sessions)
        assert await newest(server, ROOM) == started["session"]
        async with server.connect() as speaker, server.connect() as reader:
            await say(speaker, type="resume", session=started["session"], key=started["key"])
            await say(reader, type="watch", session=ROOM)
            assert (await heard(speaker))["received"] == len(SPEECH)
            assert final(await rest(speaker)) == final(await rest(reader)) != {}
            assert speaker.close_code == reader.close_code == 1000


def test_speakers_and_readers_are_told_of_a_record(new_service, demo_config, demo_models, tmp_path):
    async def told(service: Service) -> list[bool]:
        async with running(service) as server, server.connect() as speaker, server.connect() as reader:
            started = await ask(speaker, type="start")
            assert started["room"] is None
            return [started["recorded"], (await ask(reader, type="watch", session=started["session"]))["recorded"]]

    assert asyncio.run(told(new_service())) == [False, False]
    assert asyncio.run(told(Service(demo_config, demo_models, record=tmp_path))) == [True, True]


async def test_the_code_of_a_room_is_drawn_before_its_session(new_service):
    async with running(new_service()) as server:
        assert b"<svg" in (await server.get(f"/view/{ROOM}/qr.svg")).body
        assert (await server.get(f"/view/{ROOM}x/qr.svg")).status == 404


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("localhost:8000", "https://192.0.2.5:8000"),
        ("0.0.0.0:8000", "https://192.0.2.5:8000"),
        ("192.0.2.7:8000", "http://192.0.2.7:8000"),
    ],
)
async def test_the_code_has_an_address_that_other_machines_reach(host, base, new_service):
    drawn = io.BytesIO()
    segno.make(f"{base}/view/{ROOM}", error="m").save(drawn, kind="svg", scale=4, border=4)
    async with running(new_service(), shared_at="https://192.0.2.5:8000/") as server:
        assert (await server.get(f"/view/{ROOM}/qr.svg", {"Host": host})).body == drawn.getvalue()
        address = json.loads((await server.get("/v1/info", {"Host": host})).body)["address"]
        assert address == (None if "7" in host else "https://192.0.2.5:8000/")
