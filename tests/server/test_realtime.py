"""OpenAI's realtime translation session with the openai package as it is."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipeline import Models, PipelineConfig
from pipeline.core.notices import TranslationLost
from pipeline.languages.chinese import conversion
from pipeline.server.access import Access
from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import Running, ask, final, heard, resampled, rest, running, serving, until

MODEL = "speech-translation"
ODD = 9_601
"""Bytes of 0.2 s at 24 kHz, and half a sample."""


SPEECH = resampled(read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)], 24_000).astype("<i2").tobytes()
"""Two sentences."""


@asynccontextmanager
async def connected(server: Running, key: str = "any", **options: Any) -> Any:
    async with (
        AsyncOpenAI(base_url=server.address, api_key=key, max_retries=0) as client,
        client.realtime.translations.connect(model=MODEL, **options) as connection,
    ):
        yield connection


async def all_events(connection: Any) -> list[Any]:
    return [event async for event in connection]


async def spoken(connection: Any) -> list[Any]:
    """Speak the first sentence, and end; all events that follow."""
    sentence = SPEECH[: round(PHRASE_SECONDS * 48_000)]
    await connection.session.input_audio_buffer.append(audio=base64.b64encode(sentence).decode())
    await connection.session.close()
    return await all_events(connection)


def joined(events: list[Any], kind: str) -> str:
    return "".join(event.delta for event in events if event.type == f"session.{kind}_transcript.delta")


@pytest.mark.slow
async def test_steady_text_is_appended_as_in_the_servers_own_session(new_service):
    service = new_service()
    async with running(service) as server, connected(server) as connection:
        created = await connection.recv()
        assert (created.type, created.session.model) == ("session.created", MODEL)
        assert created.session.audio.output.language == "zh"
        await connection.session.update(
            session={"audio": {"input": {"transcription": {"model": "any"}}, "output": {"language": "zh"}}}
        )
        updated = await connection.recv()
        assert updated.session.audio.input.transcription.model == "any"
        async with server.connect() as reader:  # of the same session, through the server's own WebSocket
            await ask(reader, type="watch", session=created.session.id)
            reading = asyncio.create_task(rest(reader))
            for begin in range(0, len(SPEECH), ODD):  # half a sample goes over to the next message
                audio = base64.b64encode(SPEECH[begin : begin + ODD]).decode()
                await connection.session.input_audio_buffer.append(audio=audio)
            await connection.session.close()
            events = await all_events(connection)
            texts = final(await reading)
        assert {event.type for event in events} == {
            "session.input_transcript.delta",
            "session.output_transcript.delta",
            "session.closed",
        }
        assert events[-1].type == "session.closed"
        english = [text for (_, language), text in sorted(texts.items()) if language == "en"]
        assert len(english) >= 2
        assert joined(events, "input") == " ".join(english)
        assert joined(events, "output") == "".join(
            text for (_, language), text in sorted(texts.items()) if language == "zh"
        )
        assert all(event.elapsed_ms % 200 == 0 for event in events[:-1])
        assert len({event.event_id for event in events}) == len(events)


@pytest.mark.slow
async def test_captions_in_the_language_spoken_may_be_chosen(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.session.update(
            session={"audio": {"input": {"transcription": {"model": "any"}}, "output": {"language": "en"}}}
        )
        events = await spoken(connection)
        assert joined(events, "output") == joined(events, "input") != ""


@pytest.mark.slow
async def test_the_source_is_sent_only_if_it_was_asked_for(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        events = await spoken(connection)
        assert joined(events, "output")
        assert not joined(events, "input")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "bad-message"),
        ("[]", "bad-message"),
        (b"\0\0", "bad-message"),
        ('{"type": "response.create"}', "bad-message"),
        ('{"type": "session.update", "session": []}', "bad-message"),
        ('{"type": "session.update", "session": {"audio": {"output": {"language": "fr"}}}}', "unknown-target"),
        ('{"type": "session.update", "session": {"audio": {"output": {"language": []}}}}', "unknown-target"),
        ('{"type": "session.update", "session": {"audio": {"output": {"language": "zh-Latn"}}}}', "unknown-target"),
        ('{"type": "session.input_audio_buffer.append"}', "bad-audio"),
        ('{"type": "' + "a" * 1_000_000 + '"}', "bad-message"),
        ('{"type": "none", "event_id": ' + "[" * 900 + "]" * 900 + "}", "bad-message"),
        ('{"type": "none", "event_id": [' + "1," * 400_000 + "1]}", "bad-message"),
        (
            '{"type": "session.update", "session": {"audio": {"output": {"language": "%s"}}}}' % ("a" * 900_000),
            "bad-message",
        ),
        ('{"type": "session.input_audio_buffer.append", "audio": "?"}', "bad-audio"),
    ],
)
async def test_a_message_that_is_wrong_is_answered_and_the_session_goes_on(message, code, new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.recv()
        await connection.send_raw(message)
        error = await connection.recv()
        assert (error.type, error.error.code) == ("error", code)
        await connection.send({"type": "session.update", "session": {}})
        assert (await connection.recv()).type == "session.updated"


async def test_halves_of_surrogate_pairs_are_sent_back(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.recv()
        await connection.send_raw(r'{"type": "none", "event_id": "\ud800"}')
        assert json.loads(await connection.recv_bytes())["error"]["event_id"] == "\ud800"
        await connection.send_raw(
            r'{"type": "session.update", "session": {"audio": {"input": {"transcription": {"model": "\udc00"}}}}}'
        )
        updated = json.loads(await connection.recv_bytes())
        assert updated["session"]["audio"]["input"]["transcription"]["model"] == "\udc00"


async def test_an_error_names_the_message_that_caused_it(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.recv()
        await connection.session.input_audio_buffer.append(audio="?", event_id="mine")
        assert (await connection.recv()).error.event_id == "mine"


@pytest.mark.parametrize("model", ["[" * 90 + '"' + "a" * 900 + '"' + "]" * 90, '"' + "a" * 900_000 + '"'])
async def test_what_is_sent_back_is_short(model, new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.recv()
        await connection.send_raw(
            f'{{"type": "session.update", "session": {{"audio": {{"input": {{"transcription": {{"model": {model}}}}}}}}}}}'
        )
        updated = await connection.recv_bytes()
        assert json.loads(updated)["type"] == "session.updated"
        assert len(updated) < 2_000


def with_second_target(config: PipelineConfig, models: Models) -> tuple[PipelineConfig, Models]:
    """A second language, which is translated by the model of the first."""
    languages = replace(config.languages, targets=("zh", "de"))
    return replace(config, languages=languages), replace(
        models, translations={"zh": models.translations["zh"], "de": models.translations["zh"]}
    )


async def test_another_language_is_chosen_before_the_audio_only(demo_config, demo_models):
    config, models = with_second_target(demo_config, demo_models)
    async with running(serving(config, models)) as server, connected(server) as connection:
        await connection.recv()
        for language, chosen in (("de", "de"), ("ZH-cn", "zh"), ("ger", "de"), ("zh", "zh")):
            await connection.session.update(session={"audio": {"output": {"language": language}}})
            updated = await connection.recv()
            assert (updated.type, updated.session.audio.output.language) == ("session.updated", chosen)
        await connection.session.input_audio_buffer.append(audio="AAAA" * 2)
        await connection.session.update(session={"audio": {"output": {"language": "de"}}})
        assert (await connection.recv()).error.code == "too-late"


async def test_a_language_that_is_lost_is_told(demo_config, demo_models):
    config, models = with_second_target(demo_config, demo_models)
    service = serving(config, models)
    async with running(service) as server, connected(server) as connection:
        assert (await connection.recv()).type == "session.created"
        (session,) = service.sessions.values()
        for language, reason in (("xx", "of others"), (config.languages.targets[0], "no answer")):
            await session._tell(TranslationLost(language, reason))
        error = (await connection.recv()).error
        assert (error.code, error.message, error.type) == ("failed", "no answer", "server_error")
        assert service.sessions


@pytest.mark.slow
async def test_a_script_that_the_model_does_not_write_is_converted(new_service):
    async def translated(server: Running, language: str) -> str:
        async with connected(server) as connection:
            await connection.recv()
            await connection.session.update(session={"audio": {"output": {"language": language}}})
            await connection.session.update(session={"audio": {"input": {"transcription": {"model": "any"}}}})
            for _ in range(2):  # the second message changes something else
                assert (await connection.recv()).session.audio.output.language == language
            return joined(await spoken(connection), "output")

    async with running(new_service()) as server:
        simplified = await translated(server, "zh")
        assert await translated(server, "zh-TW") == conversion("Hant", "TW")(simplified) != simplified


async def test_a_client_that_goes_away_ends_its_session(new_service):
    service = new_service(resume_s=HANG_S)
    async with running(service) as server:
        async with connected(server) as connection:
            await connection.recv()
            assert len(service.sessions) == 1
        await until(lambda: not service.sessions)


async def test_a_session_too_many_is_told_so(new_service):
    async with running(new_service(max_sessions=1)) as server, connected(server) as first, connected(server) as second:
        assert (await first.recv()).type == "session.created"
        assert (await second.recv()).error.code == "busy"
        with pytest.raises(ConnectionClosed) as closed:
            await second.recv()
        assert closed.value.rcvd.code == 1013


async def test_a_session_that_hears_nothing_for_long_ends(new_service):
    async with running(new_service(idle_s=0.0)) as server, connected(server) as connection:
        created, error, closed = await all_events(connection)
        assert (created.type, error.error.code, closed.type) == ("session.created", "idle", "session.closed")


async def test_messages_beside_audio_are_read_at_a_pace(new_service):
    async with running(new_service(messages_a_second=0.1)) as server, connected(server) as connection:
        for _ in range(9):
            await connection.session.update(session={"audio": {}})
        for _ in range(9):
            await connection.session.input_audio_buffer.append(audio="not audio")
        assert [(await connection.recv()).type for _ in range(3)] == ["session.created", *["session.updated"] * 2]
        server.stop()
        left = [event.type for event in await all_events(connection)]
    assert len(left) < 9


async def test_the_shortest_audio_is_read_at_that_pace_too(new_service):
    service = new_service(messages_a_second=0.1)
    async with running(service) as server, connected(server) as connection:
        (session,) = service.sessions.values()
        long, short = (base64.b64encode(bytes(2 * samples)).decode() for samples in (60, 1))
        for audio in (*[long] * 9, *[short] * 9, long):
            await connection.session.input_audio_buffer.append(audio=audio)
        await until(lambda: session.intake.received >= 9 * 60 + 2)
        server.stop()
        await all_events(connection)
    assert session.intake.received < 9 * 60 + 9


async def test_a_stopping_server_ends_the_session(new_service):
    async with running(new_service()) as server, connected(server) as connection:
        await connection.recv()
        server.stop()
        assert [event.type for event in await all_events(connection)] == ["session.closed"]


async def test_the_token_is_the_api_key_or_a_subprotocol(new_service, caplog):
    access = Access.of("0123456789abcdef")
    async with running(new_service(), access) as server:
        for key in ("", "0123456789abcdeg"):
            with pytest.raises(InvalidStatus) as refused:
                async with connected(server, key or "none"):
                    pass
            assert refused.value.response.status_code == 401
            assert json.loads(refused.value.response.body)["error"]["code"] == "wrong-token"
            assert refused.value.response.headers["x-content-type-options"] == "nosniff"
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
        async with connected(server, "0123456789abcdef") as connection:
            assert (await connection.recv()).type == "session.created"
        protocols = ["realtime", "openai-insecure-api-key.0123456789abcdef"]
        async with server.connect(path="/v1/realtime/translations", subprotocols=protocols) as browser:
            assert browser.subprotocol == "realtime"
            assert (await heard(browser))["type"] == "session.created"
