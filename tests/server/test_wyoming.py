"""The Wyoming protocol with the client of the wyoming package as it is."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from wyoming.asr import Transcribe, Transcript, TranscriptChunk
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.event import Event, Eventable, async_read_event
from wyoming.info import Describe, Info
from wyoming.ping import Ping

from pipeline import Models, PipelineConfig
from pipeline.apps.listening import wyoming_address
from pipeline.apps.serve import run
from pipeline.core import SameLanguageText
from pipeline.core.notices import TranslationLost
from pipeline.errors import UsageError
from pipeline.events import Samples, Translation
from pipeline.server import session
from pipeline.server.protocols import wyoming
from pipeline.server.protocols.wyoming import _why_lost, serving_wyoming
from pipeline.server.service import Service
from pipeline.server.shares import Pace
from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, read_wav
from tests.core.asr.scripted import Scripted
from tests.server.running import resampled, serving, translated, until
from tests.server.test_unanswered import hangs as hangs

SPEECH = read_wav(PHRASES)[: round(PHRASE_SECONDS * 16_000)]
FORMAT = {"rate": 16_000, "width": 2, "channels": 1}


@pytest.fixture(scope="module")
def expected(demo_config: PipelineConfig, demo_models: Models) -> tuple[str, str]:
    """Source and translation from a translator in this process."""
    texts = sorted(asyncio.run(translated(demo_config, demo_models, SPEECH)).items())
    source, translation = ([text for (_, one), text in texts if one == language] for language in ("en", "zh"))
    return " ".join(source), "".join(translation)


@asynccontextmanager
async def listening(service: Service) -> AsyncIterator[str]:
    """The URI of a server that runs; its sessions are ended at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(HANG_S), serving_wyoming(service, listener):
            try:
                yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                await service.drain()


def recording(samples: Samples) -> list[Eventable]:
    data, size = samples.astype("<i2").tobytes(), 6_401  # half a sample goes over to the next chunk
    audio = [AudioChunk(audio=data[begin : begin + size], **FORMAT) for begin in range(0, len(data), size)]
    return [AudioStart(**FORMAT), *audio, AudioStop()]


async def answers(client: AsyncClient, events: Sequence[Eventable | Event], last: str = "") -> list[Event]:
    """What the server sends after these events, up to one of type ``last`` or the end."""
    for event in events:
        await client.write_event(event if isinstance(event, Event) else event.event())
    found = []
    while (event := await client.read_event()) is not None:
        found.append(event)
        if event.type == last:
            break
    return found


@pytest.mark.slow
async def test_speech_is_recognised_and_translated(new_service, expected):
    service = new_service()
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        # Several recordings on one connection, each with a request of its own.
        for request, text, language in (
            (Transcribe(language="en-GB"), expected[0], "en"),
            (Transcribe(name="translate-zh"), expected[1], "zh"),
        ):
            start, *chunks, whole, _ = await answers(client, [request, *recording(SPEECH)], "transcript-stop")
            assert start.type == "transcript-start"
            assert Transcript.from_event(whole) == Transcript(text, language=language)
            assert "".join(TranscriptChunk.from_event(chunk).text for chunk in chunks) == text


@pytest.mark.slow
async def test_each_chunk_is_converted_as_the_servers_of_the_project_do(new_service, expected):
    """They read no format but that of the chunk: here 24 kHz stereo in 32 bits after a start at 16 kHz."""
    samples = resampled(SPEECH, 24_000)
    stereo = (np.repeat(samples, 2).astype("<i4") * 65_536).tobytes()
    chunks = [
        AudioChunk(audio=stereo[begin : begin + 19_200], rate=24_000, width=4, channels=2)
        for begin in range(0, len(stereo), 19_200)
    ]
    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as client:
        *_, whole, _ = await answers(client, [AudioStart(**FORMAT), *chunks, AudioStop()], "transcript-stop")
    assert Transcript.from_event(whole).text == expected[0]


async def test_the_description_has_a_program_for_the_source_and_one_for_each_language(new_service):
    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as client:
        (info,) = await answers(client, [Describe()], "info")
        programs = Info.from_event(info).asr
        assert [program.name for program in programs] == ["transcribe", "translate-zh"]
        for program in programs:
            (model,) = program.models
            found = model.name, model.languages, program.supports_transcript_streaming
            assert found == (program.name, ["en"], True)
        (pong,) = await answers(client, [Ping("x")], "pong")
        assert pong.data["text"] == "x"
        await answers(client, [Event("ping", {"text": {}})], "pong")


async def test_half_a_surrogate_pair_does_not_end_the_connection(new_service):
    async with listening(new_service()) as uri:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(uri.rpartition(":")[2]))
        for _ in range(2):
            writer.write(b'{"type": "ping", "data": {"text": "\\ud800"}}\n')
            pong = await async_read_event(reader)
            assert pong is not None
            assert pong.type == "pong"
        writer.close()


CHUNK = AudioChunk(audio=bytes(4), **FORMAT)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([Transcribe(language="fr")], "unknown-language"),
        ([Transcribe(language="en/..")], "unknown-language"),
        ([Transcribe(name="translate-fr")], "unknown-program"),
        ([Event("select-program", {"name": 5})], "unknown-program"),
        ([Event("select-program", {"name": ["transcribe"]})], "unknown-program"),
        ([CHUNK], "bad-message"),
        ([AudioStop()], "bad-message"),
        ([AudioStart(**FORMAT), AudioStart(**FORMAT)], "bad-message"),
        ([Event("audio-start", {})], "bad-sample-rate"),
        ([AudioStart(rate=0, width=2, channels=1)], "bad-sample-rate"),
        ([AudioStart(rate=10_000_000, width=2, channels=1)], "bad-sample-rate"),
        ([AudioStart(rate=16_000, width=5, channels=1)], "bad-audio"),
        ([AudioStart(rate=16_000, width=2, channels=0)], "bad-audio"),
        ([AudioStart(rate=16_000, width=2, channels=10**300)], "bad-audio"),
        ([Event("audio-start", {"rate": 16_000, "width": "2", "channels": 1})], "bad-audio"),
        ([AudioStart(**FORMAT), AudioChunk(rate=16_000, width=2, channels=2, audio=bytes(6))], "bad-audio"),
        ([AudioStart(**FORMAT), AudioChunk(rate=1, width=2, channels=1, audio=bytes(4))], "bad-sample-rate"),
    ],
)
async def test_what_is_wrong_is_answered_with_its_code(events, code, new_service):
    service = new_service(resume_s=HANG_S, closing_s=HANG_S)  # the client stays connected until the session has ended
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        *_, error = await answers(client, events)
        assert (error.type, error.data["code"]) == ("error", code)
        await until(lambda: not service.sessions)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"[]\n",
        b'{"type": 5}\n',
        b'{"type": "ping", "data": 5}\n',
        b'{"type": "ping", "data_length": "5"}\n',
        b'{"type": "ping", "data_length": 3}\n5 5',
        b'{"type": "ping", "data_length": 100000}\n',
        b'{"type": "audio-chunk", "payload_length": 100000000000}\n',
        b'{"type": "audio-chunk", "payload_length": -1}\n',
        b"x" * 100_000,
    ],
)
async def test_garbage_ends_the_connection_alone(data, new_service):
    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as other:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(uri.rpartition(":")[2]))
        writer.write(data)
        assert json.loads(await reader.readline())["type"] == "error"
        writer.close()
        assert [event.type for event in await answers(other, [Ping()], "pong")] == ["pong"]


@pytest.mark.parametrize("hangs_up", [True, False])
async def test_a_mistake_of_the_server_is_logged_and_told(hangs_up, new_service, monkeypatch, caplog):
    asked, mistake = asyncio.Event(), ValueError("a mistake")

    def fail(*_: object, **__: object) -> None:
        asked.set()
        raise mistake

    monkeypatch.setattr(wyoming, "TranscriptStart" if hangs_up else "info_of", fail)
    service = new_service()
    async with listening(service) as uri:
        async with AsyncClient.from_uri(uri) as client:
            events = [AudioStart(**FORMAT)] if hangs_up else [Describe()]
            if hangs_up:
                await client.write_event(events[0].event())
                await asked.wait()
            else:
                (error,) = await answers(client, events)
                assert (error.type, error.data["code"]) == ("error", "failed")
        await until(lambda: not service.sessions)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info is not None
    assert record.exc_info[1] is mistake


async def test_one_connection_too_many_is_told_so(new_service, monkeypatch):
    monkeypatch.setattr(wyoming, "_MAX_CONNECTIONS", 1)
    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as first:
        await answers(first, [Ping()], "pong")
        async with AsyncClient.from_uri(uri) as second:
            (error,) = await answers(second, [])
        assert (error.type, error.data["code"]) == ("error", "busy")
        await answers(first, [Ping()], "pong")


async def test_events_that_have_come_do_not_hold_the_others(new_service, monkeypatch):
    async def next_event(*_: object) -> Event | None:
        return next(events, None)

    monkeypatch.setattr(wyoming, "next_event", next_event)
    events, turns = iter([Event("x")] * 99 + [Event("audio-chunk")]), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as client:
        working = asyncio.create_task(others())
        (error,) = await answers(client, [])
        working.cancel()
    assert error.data["code"] == "bad-message"
    assert turns >= 99


async def test_events_beside_audio_are_read_at_a_pace(new_service, monkeypatch):
    waits = []

    def wait_s(pace: Pace) -> float:
        waits.append(pace)
        return 0.0

    monkeypatch.setattr(Pace, "wait_s", wait_s)
    async with listening(new_service()) as uri, AsyncClient.from_uri(uri) as client:
        await answers(client, [Ping()], "pong")
        await answers(client, [AudioStart(**FORMAT), *[CHUNK] * 9, Ping()], "pong")
    assert 2 <= len(waits) <= 3  # two pings and the start; the last may not have been counted yet


async def test_a_client_that_goes_away_ends_its_session(new_service):
    service = new_service(resume_s=HANG_S)
    async with listening(service) as uri:
        async with AsyncClient.from_uri(uri) as client:
            await answers(client, recording(SPEECH)[:3], "transcript-start")
            assert len(service.sessions) == 1
        await until(lambda: not service.sessions)


@pytest.mark.parametrize(("limits", "code"), [({"max_sessions": 0}, "busy"), ({"session_s": 0.0}, "too-long")])
async def test_limits_are_kept(limits, code, new_service):
    async with listening(new_service(**limits)) as uri, AsyncClient.from_uri(uri) as client:
        *_, error = await answers(client, [AudioStart(**FORMAT)])
        assert (error.type, error.data["code"]) == ("error", code)


async def test_a_client_that_is_still_sending_gets_the_answer_whole(new_service):
    async with listening(new_service()) as uri:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(uri.rpartition(":")[2]))
        writer.write(b"no event\n" + bytes(2_000_000))
        header, data = (await reader.read()).split(b"\n")
        assert json.loads(header)["type"] == "error"
        assert len(data) == json.loads(header)["data_length"]
        writer.close()


async def test_a_client_that_sends_nothing_is_let_go(new_service):
    service = new_service(idle_s=0.0)
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        assert await answers(client, []) == []


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_cut(new_service, monkeypatch):
    monkeypatch.setattr("pipeline.server.protocols.wyoming._SEND_S", 0.1)
    service = new_service(closing_s=0.1, messages_a_second=1e6)
    async with listening(service) as uri:
        client = socket.create_connection(("127.0.0.1", int(uri.rpartition(":")[2])))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        _reader, writer = await asyncio.open_connection(sock=client, limit=1)
        with pytest.raises(ConnectionError):  # reset: the rest of the answers is not kept for it
            while True:
                writer.write(b'{"type": "describe"}\n' * 1_000)
                await writer.drain()
        writer.close()


@pytest.mark.slow
async def test_a_stopping_server_gives_the_transcript_of_what_it_has_heard(new_service, expected):
    service = new_service()
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        events = [event.event() for event in recording(SPEECH)[:-1]]
        await answers(client, events, "transcript-start")
        (session,) = service.sessions.values()
        await until(lambda: session.intake.received == len(SPEECH))
        service_ends = asyncio.create_task(service.drain())
        *_, whole, _ = await answers(client, [])
        assert Transcript.from_event(whole).text == expected[0]
        await service_ends


@pytest.mark.slow
async def test_a_conversation_has_one_program_that_translates(demo_config, demo_models, expected):
    languages = replace(demo_config.languages, source="auto", targets=("zh", "en"))
    config = replace(demo_config, languages=languages)
    assert languages.only_spoken is None
    models = replace(demo_models, translations=dict.fromkeys(("zh", "en"), demo_models.translations["zh"]))
    async with listening(serving(config, models)) as uri, AsyncClient.from_uri(uri) as client:
        (info,) = await answers(client, [Describe()], "info")
        assert [program.name for program in Info.from_event(info).asr] == ["transcribe", "translate"]
        events = [Transcribe(name="translate"), *recording(SPEECH)]
        whole = (await answers(client, events, "transcript"))[-1]
        assert Transcript.from_event(whole).text


@pytest.mark.parametrize(("program", "last"), [("translate", "error"), ("transcribe", "transcript")])
async def test_a_translation_that_is_not_complete_is_an_error(
    program, last, demo_config, demo_models, hangs, monkeypatch
):
    monkeypatch.setattr(session, "_WATCH_S", 0.02)
    config = replace(demo_config, languages=replace(demo_config.languages, source="auto", targets=("zh", "en")))
    translations = {"zh": hangs, "en": SameLanguageText("en")}
    models = replace(demo_models, recognizer=Scripted(), drafter=None, translations=translations)
    service = serving(config, models, model_s=1.0)
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        whole = (await answers(client, [Transcribe(name=program), *recording(SPEECH)], last))[-1]
        assert ("the translator into zh has not answered" in whole.data["text"]) == (last == "error")
        assert last != "error" or await client.read_event() is None


@pytest.mark.parametrize("event", [TranslationLost("zh", "no"), Translation(0, "zh", "", error="no")])
def test_what_was_not_translated_makes_a_translation_incomplete(event):
    assert _why_lost(event) == "no"
    assert _why_lost(Translation(0, "zh", "是。")) is None


@pytest.mark.parametrize(
    "uri", ["", "tcp://127.0.0.1", "127.0.0.1:10300", "http://127.0.0.1:1", "tcp://127.0.0.1:x", "tcp://127.0.0.1:1/x"]
)
def test_an_address_that_is_none_is_invalid_usage(uri):
    with pytest.raises(UsageError, match="give an address such as"):
        wyoming_address(uri)


def test_addresses_that_others_reach_are_invalid_usage():
    assert wyoming_address("tcp://localhost:10300") == ("localhost", 10_300)
    assert wyoming_address("tcp://[::1]:10300") == ("::1", 10_300)
    for host in ("0.0.0.0", "192.168.1.2", "example.org", "[::]"):
        with pytest.raises(UsageError, match="other machines can reach --wyoming"):
            run(["--config", "demo-zh", "--port", "0", "--wyoming", f"tcp://{host}:10300"])
