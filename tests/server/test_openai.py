"""OpenAI's REST interface with the openai package as it is: text, subtitles, words, streams, and every refusal."""

import asyncio
import io
import json
import logging
import os
import re
import socket
import threading
import wave
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import openai
import pytest
import srt
import webvtt
from openai import AsyncOpenAI
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pipeline import Models, PipelineConfig
from pipeline.core.sentences.splitting import trimmed_words
from pipeline.core.translator import SpeechTranslator
from pipeline.events import PipelineEvent, Samples, SourceSentence, SourceText, TargetText, Translation
from pipeline.languages.chinese import conversion
from pipeline.languages.options import LanguageConfig
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.files import sink_makers
from pipeline.server.access import Access
from pipeline.server.chains import Chain
from pipeline.server.guard import BodyDrain
from pipeline.server.limits import ServerLimits
from pipeline.server.protocols import openai as interface
from pipeline.server.scheduling import Priority
from pipeline.server.service import Service
from tests.conftest import CHINESE, PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import Running, running, serving, until

# The package calls its translations deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")

MODEL = "speech-translation"


def wav_of(samples: Samples) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return data.getvalue()


SPEECH = wav_of(read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)])
"""Two sentences."""
TALK = ("talk.wav", SPEECH)


@pytest.fixture(scope="module")
def chain(
    demo_config: PipelineConfig, demo_models: Models, tmp_path_factory: pytest.TempPathFactory
) -> list[PipelineEvent]:
    """The events of the recording from a translator in this process."""
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    path.write_bytes(SPEECH)

    async def work() -> list[PipelineEvent]:
        async with SpeechTranslator(demo_config, demo_models) as translator:
            return [event async for event in translator.run(Recording(path))]

    return asyncio.run(work())


@pytest.fixture(scope="module")
def sentences(chain: list[PipelineEvent]) -> list[SourceSentence]:
    found = [event for event in chain if isinstance(event, SourceSentence)]
    assert len(found) >= 2
    return found


@pytest.fixture(scope="module")
def translations(chain: list[PipelineEvent]) -> list[str]:
    return [event.text for event in chain if isinstance(event, Translation)]


@asynccontextmanager
async def client_of(service: Service, access: Access | None = None, key: str = "any") -> Any:
    async with (
        running(service, access) as server,
        AsyncOpenAI(base_url=server.address, api_key=key, max_retries=0) as client,
    ):
        yield client


def test_of_a_long_recording_only_finished_text_is_kept(chain, sentences, demo_config, demo_models):
    """Every text on the way was kept, with all its tokens: 18 MB for 3 MB of subtitles."""
    kept = [event for event in chain if interface._is_finished(event)]
    assert sum(isinstance(event, TargetText) for event in kept) <= len(sentences)
    assert not any(isinstance(event, SourceText) for event in kept)
    written = []
    for events in (chain, kept):
        for form in ("srt", "vtt"):
            wanted = interface._Wanted(Chain(demo_config, demo_models), "translate", "zh", form, False, False)
            written.append(interface._subtitles(events, wanted))
    assert written[:2] == written[2:]
    assert len(written[0]) > 50


def test_a_long_answer_is_not_written_at_once(monkeypatch):
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    values = {"text": "é", "segments": [{"id": 1, "start": 0.5, "tokens": []}]}
    assert json.loads(interface._LongJson(values).body) == values
    monkeypatch.setattr(json.encoder, "c_make_encoder", lambda *_: pytest.fail("it holds the interpreter"))
    assert json.loads(interface._LongJson(values).body) == values


@pytest.mark.slow
async def test_a_recording_is_recognised_and_translated_as_in_this_process(
    new_service, sentences, translations, caplog
):
    caplog.set_level(logging.INFO, "pipeline.server")
    async with client_of(new_service()) as client:
        said = await client.audio.transcriptions.create(model=MODEL, file=TALK)
        assert said.text == " ".join(sentence.text for sentence in sentences)
        translated = await client.audio.translations.create(model=MODEL, file=TALK)
        assert translated.text == "".join(translations)
    ended = (
        rf"recording \S+ ended: {2 * PHRASE_SECONDS:.1f} s of audio, {len(sentences)} sentences, translated in \S+ s"
    )
    assert len(re.findall(ended, caplog.text)) == 2


async def test_a_detailed_answer_has_times_and_words(new_service, sentences):
    async with client_of(new_service()) as client:
        said = await client.audio.transcriptions.create(
            model=MODEL,
            file=TALK,
            language="en",
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )
        assert (said.language, said.duration) == ("en", pytest.approx(2 * PHRASE_SECONDS))
        assert [(one.start, one.end, one.text) for one in said.segments] == [
            (pytest.approx(one.start_s, abs=0.001), pytest.approx(one.end_s, abs=0.001), one.text) for one in sentences
        ]
        assert all(one.avg_logprob < 0 <= one.no_speech_prob < 1 and one.tokens == [] for one in said.segments)
        assert " ".join(word.word for word in said.words) == said.text
        starts_s = [word.start_s for sentence in sentences for word in trimmed_words(sentence)]
        assert [word.start for word in said.words] == [pytest.approx(start_s, abs=0.001) for start_s in starts_s]


@pytest.mark.slow
async def test_subtitles_are_those_of_the_command_line(
    new_service, demo_config, demo_models, chain, sentences, tmp_path
):
    expected = tmp_path / "expected.srt"
    sink = sink_makers(demo_config.subtitles)["srt"](expected, languages=["zh"])
    for event in chain:
        sink.write(event)
    sink.close()
    cues = [
        (cue.start.total_seconds(), cue.end.total_seconds(), cue.content) for cue in srt.parse(expected.read_text())
    ]
    async with client_of(new_service()) as client:
        text = await client.audio.translations.create(model=MODEL, file=TALK, response_format="srt")
        assert [(cue.start.total_seconds(), cue.end.total_seconds(), cue.content) for cue in srt.parse(text)] == cues
        vtt = await client.audio.transcriptions.create(model=MODEL, file=TALK, response_format="vtt")
        said = [cue.text.replace("\n", " ") for cue in webvtt.from_buffer(io.StringIO(vtt))]
        assert " ".join(said) == " ".join(sentence.text for sentence in sentences)


@pytest.mark.parametrize("form", ["srt", "verbose_json"])
async def test_an_answer_is_laid_out_beside_the_event_loop(form, new_service, monkeypatch):
    """The subtitles of an hour take a second."""
    threads, respond = [], interface._response

    def responding(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return respond(*arguments)

    monkeypatch.setattr(interface, "_response", responding)
    async with client_of(new_service()) as client:
        silence = wav_of(np.zeros(16_000, np.int16))
        await client.audio.translations.create(model=MODEL, file=("a.wav", silence), response_format=form)
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


@pytest.mark.slow
async def test_languages_are_understood_as_clients_write_them(new_service, sentences, translations):
    async with client_of(new_service()) as client:

        async def translated(target: str) -> Any:
            return await client.audio.translations.create(
                model=MODEL, file=TALK, response_format="verbose_json", extra_body={"target": target}
            )

        for language, kind in (("en-US", "srt"), ("EN", "vtt"), ("eng", "srt"), ("en_GB", "vtt")):
            text = await client.audio.transcriptions.create(
                model=MODEL, file=TALK, language=language, response_format=kind
            )
            assert all(sentence.text in " ".join(text.split("\n")) for sentence in sentences), (language, kind)
        for target, written in (("zh-CN", "zh-CN"), ("ZHO", "zh"), ("zh-hant-tw", "zh-Hant-TW")):
            found = await translated(target)
            assert found.language == written
            expected = "".join(translations)
            assert found.text == (conversion("Hant")(expected) if "Hant" in written else expected)
        for target in ("zh-Latn", "xx", "zh/.."):
            with pytest.raises(openai.BadRequestError) as refusal:
                await translated(target)
            assert refusal.value.code == "unknown-target"


@pytest.mark.slow
@pytest.mark.parametrize("task", ["transcriptions", "translations"])
async def test_subtitles_of_a_conversation_have_all_that_is_said(task, demo_config, demo_models):
    """The language of the answer, the first of the two, is not the one spoken."""
    config = replace(demo_config, languages=LanguageConfig("auto", ("zh", "en")))
    models = replace(demo_models, translations=dict.fromkeys(("zh", "en"), demo_models.translations["zh"]))
    async with client_of(serving(config, models)) as client:
        for target in ("zh", "en"):
            subtitles = await getattr(client.audio, task).create(
                model=MODEL, file=TALK, response_format="srt", extra_body={"target": target}
            )
            assert len(list(srt.parse(subtitles))) >= 2


async def test_a_streamed_answer_has_a_piece_for_each_sentence(new_service, sentences):
    service = new_service()
    async with client_of(service) as client:
        stream = await client.audio.transcriptions.create(model=MODEL, file=TALK, stream=True)
        events = [event async for event in stream]
        pieces = [event.delta for event in events if event.type == "transcript.text.delta"]
        assert [piece.strip() for piece in pieces] == [sentence.text for sentence in sentences]
        assert (events[-1].type, events[-1].text) == ("transcript.text.done", "".join(pieces))
    assert len(service.places.recordings) == 0


async def test_the_one_model_is_listed(new_service):
    async with client_of(new_service()) as client:
        assert [model.id async for model in client.models.list()] == [MODEL]
        assert (await client.models.retrieve(MODEL)).id == MODEL
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("whisper-2")


async def refused(client: AsyncOpenAI, file: Any = SPEECH, **options: Any) -> tuple[int, str]:
    """Status and code with which a request is refused."""
    with pytest.raises(openai.APIStatusError) as refusal:
        await client.audio.transcriptions.create(model=MODEL, file=file, **options)
    return refusal.value.status_code, str(refusal.value.code)


@pytest.mark.parametrize(
    ("file", "options", "expected"),
    [
        (b"", {}, (400, "no-audio")),
        (b"garbage" * 1000, {}, (400, "no-audio")),
        (SPEECH[:20], {}, (400, "no-audio")),
        (wav_of(np.zeros(0, np.int16)), {}, (400, "no-audio")),
        (SPEECH, {"response_format": "docx"}, (400, "bad-format")),
        (SPEECH, {"response_format": "srt", "stream": True}, (400, "bad-format")),
        (SPEECH, {"extra_body": {"stream": "maybe"}}, (400, "bad-format")),
        (SPEECH, {"timestamp_granularities": ["sentence"]}, (400, "bad-format")),
        (SPEECH, {"language": "fr"}, (400, "unknown-language")),
        (SPEECH, {"extra_body": {"target": "fr"}}, (400, "unknown-target")),
    ],
)
async def test_what_cannot_be_done_is_refused_with_its_code(file, options, expected, new_service, own_folder):
    service = new_service()
    async with client_of(service) as client:
        assert await refused(client, file, **options) == expected
    assert (len(service.places.recordings), os.listdir(own_folder)) == (0, [])


async def test_silence_has_no_text(new_service):
    async with client_of(new_service()) as client:
        silence = wav_of(np.zeros(32_000, np.int16))
        assert (await client.audio.translations.create(model=MODEL, file=("a.wav", silence))).text == ""


async def test_speech_in_another_language_is_no_empty_text(new_service):
    """It was answered as silence is."""
    speech = wav_of(read_wav(CHINESE)[: 2 * 16_000])
    async with client_of(new_service()) as client:
        for form in ("json", "srt"):
            assert await refused(client, speech, response_format=form) == (400, "not-understood")
        with pytest.raises(openai.APIError, match="not understood as en .*name the language that is spoken"):
            async for event in await client.audio.transcriptions.create(model=MODEL, file=speech, stream=True):
                assert event.type == "transcript.text.delta"


@pytest.mark.parametrize(
    ("limits", "status", "code"),
    [
        ({"upload_bytes": 1_000}, 413, "too-large"),
        ({"upload_s": 0.0}, 408, "too-slow"),
        ({"recording_s": 2.0}, 413, "too-long"),
        ({"translating_s": 0.0}, 413, "too-long"),
        ({"max_recordings": 0}, 503, "busy"),
    ],
)
async def test_limits_are_kept(limits, status, code, new_service, own_folder):
    service = new_service(**limits)
    async with client_of(service) as client:
        for streamed in (False, True):
            with pytest.raises(openai.APIStatusError) as refusal:
                await client.audio.transcriptions.create(model=MODEL, file=SPEECH, stream=streamed)
            assert (refusal.value.status_code, refusal.value.code) == (status, code)
            assert refusal.value.response.headers.get("retry-after") == ("10" if status == 503 else None)
    assert (len(service.places.recordings), os.listdir(own_folder)) == (0, [])


async def test_a_server_that_stops_takes_no_recordings(new_service):
    service = new_service()
    async with client_of(service) as client:
        service.places.draining = True
        assert await refused(client) == (503, "busy")


async def test_a_wrong_token_is_refused_before_the_file_is_read(new_service):
    service, access = new_service(), Access.of("0123456789abcdef")
    async with client_of(service, access, "0123456789abcdeg") as client:
        # Far more than the buffers of a connection take: a server that just closed it would not be understood.
        assert await refused(client, bytes(30 << 20)) == (401, "wrong-token")
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()
    async with client_of(service, access, access.token) as client:
        assert [model.id async for model in client.models.list()] == [MODEL]


BOUNDARY = "limit-of-parts"
FILE_HEADER = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="../../x"\r\n'
    "Content-Type: audio/wav\r\n\r\n"
).encode()
STREAMED = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n'.encode()
END = f"\r\n--{BOUNDARY}--\r\n".encode()


class Raw:
    """A client that sends what it likes."""

    def __init__(self, server: Running, *headers: str, kind: str = f"multipart/form-data; boundary={BOUNDARY}") -> None:
        self._port = server.port
        lines = ["POST /v1/audio/transcriptions HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", *headers]
        self._head = "\r\n".join([*lines, "", ""]).encode()

    async def send(self, *parts: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for part in (self._head, *parts):
            writer.write(part)
        await writer.drain()
        return reader, writer

    async def answer(self, *parts: bytes) -> tuple[int, str]:
        """Status and code of the answer."""
        reader, writer = await self.send(*parts)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        body = json.loads(await reader.readexactly(length))
        writer.close()
        return int(head.split()[1]), body["error"]["code"]


def chunk(data: bytes) -> bytes:
    """A part of a body in chunked transfer coding."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def test_bytes_are_counted_as_they_come(new_service, own_folder):
    async with running(new_service(upload_bytes=1_000)) as server:
        raw = Raw(server, "Transfer-Encoding: chunked")
        assert await raw.answer(chunk(FILE_HEADER), chunk(bytes(100_000)), b"0\r\n\r\n") == (413, "too-large")
        assert (len(server.service.places.recordings), os.listdir(own_folder)) == (0, [])


@pytest.mark.parametrize(
    ("header", "status"),
    [("Authorization: Bearer wrong", 401), ("Origin: https://other.example", 403), ("Host: other.example", 421)],
)
async def test_the_body_of_a_refused_request_is_read_to_its_end(header, status, new_service):
    """A proxy that cannot send all of it would answer 502."""
    async with running(new_service(), Access.of("0123456789abcdef")) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        host = "" if header.startswith("Host") else "Host: localhost\r\n"
        head = f"POST /v1/audio/transcriptions HTTP/1.0\r\n{host}{header}\r\nContent-Length: {20 << 20}\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        for _ in range(20):
            writer.write(bytes(1 << 20))
            await writer.drain()
        await reader.read()
        writer.close()


def test_a_body_that_comes_is_read_before_the_answer():
    """A proxy that has the answer may end the connection of a client that still sends."""
    said: list[str] = []
    messages = iter(range(3))

    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        await Response("no", 401)(scope, receive, send)

    async def receive() -> Message:
        said.append("body")
        return {"type": "http.request", "body": b"x", "more_body": next(messages) < 2}

    async def send(message: Message) -> None:
        said.append(message["type"])

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"3")]}
    asyncio.run(BodyDrain(refusing, ServerLimits())(scope, receive, send))
    assert said == ["body"] * 3 + ["http.response.start", "http.response.body"]


async def test_a_refused_body_that_does_not_end_is_given_up(new_service):
    limited = new_service(request_s=0.0)
    async with running(limited, Access.of("0123456789abcdef")) as server:
        reader, writer = await Raw(server, "Content-Length: 1000", "Connection: close").send()
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        writer.close()


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("application/json", b"{}", "no-file"),
        ("application/x-www-form-urlencoded", b"file=x", "no-file"),
        (f"multipart/form-data; boundary={BOUNDARY}", STREAMED + END[2:], "no-file"),
        (f"multipart/form-data; boundary={BOUNDARY}", b"nonsense", "bad-form"),
        ("multipart/form-data", b"nonsense", "bad-form"),
        (f"multipart/form-data; boundary={BOUNDARY}", FILE_HEADER + b"x\r\n" + FILE_HEADER + b"x" + END, "bad-form"),
        (f"multipart/form-data; boundary={BOUNDARY}", STREAMED * 40 + END[2:], "bad-form"),
    ],
)
async def test_a_body_that_is_no_form_with_one_file_is_refused(kind, body, code, new_service):
    async with running(new_service()) as server:
        raw = Raw(server, f"Content-Length: {len(body)}", kind=kind)
        assert await raw.answer(body) == (400, code)
        assert len(server.service.places.recordings) == 0


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_recording_of_a_client_that_goes_away_is_given_up(streamed, new_service, own_folder, caplog):
    caplog.set_level(logging.INFO, "pipeline.server")
    service = new_service()
    async with running(service) as server:
        body = (STREAMED if streamed else b"") + FILE_HEADER + SPEECH + END
        with service.scheduler.slot(Priority.FINAL):  # the recogniser is busy, so the recording cannot end by itself
            _, writer = await Raw(server, f"Content-Length: {len(body)}").send(body)
            await until(lambda: service.scheduler.waiting)
            assert len(service.places.recordings) == 1
            writer.transport.abort()
            await until(lambda: not len(service.places.recordings))
            assert os.listdir(own_folder) == []
    assert "ended (given up): " in caplog.text


async def test_an_upload_that_stops_gives_its_place_back(new_service, own_folder):
    async with running(new_service(request_s=0.2)) as server:
        stopped = await Raw(server, "Content-Length: 1000000").answer(FILE_HEADER, bytes(1_000))
        assert stopped == (408, "too-slow")
        assert (len(server.service.places.recordings), os.listdir(own_folder)) == (0, [])


async def test_an_upload_that_is_cut_off_leaves_nothing(new_service, own_folder):
    service = new_service()
    async with running(service) as server:
        _, writer = await Raw(server, "Content-Length: 1000000").send(FILE_HEADER + bytes(100_000))
        await until(lambda: len(service.places.recordings))
        writer.transport.abort()
        await until(lambda: not len(service.places.recordings))
        assert os.listdir(own_folder) == []


def flac_of_silence(seconds: int, folder: Path) -> bytes:
    """A small file with much silence that does not say how long it is."""
    path = folder / "silence.flac"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("flac", rate=16_000, layout="mono")
        for _ in range(seconds):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 16_000), np.int16), "s16", "mono")
            frame.sample_rate = 16_000
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    data = bytearray(path.read_bytes())
    # The number of samples: the last 36 bits before the checksum in the first block (RFC 9639, 8.2).
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    return bytes(data)


async def test_a_small_file_with_endless_audio_is_given_up(new_service, tmp_path):
    bomb = flac_of_silence(120, tmp_path)
    assert len(bomb) < 100_000
    service = new_service(recording_s=60.0)
    async with client_of(service) as client:
        assert await refused(client, bomb) == (413, "too-long")
    assert len(service.places.recordings) == 0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on this machine that nobody should connect to."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.setblocking(False)
        yield found


async def test_a_playlist_is_refused_and_nothing_that_it_names_is_opened(new_service, listener):
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/a.ts"
    playlists = [
        f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{CHINESE}\n#EXT-X-ENDLIST\n",
        f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{address}\n#EXT-X-ENDLIST\n",
        f"ffconcat version 1.0\nfile {CHINESE}\n",
        f"ffconcat version 1.0\nfile {address}\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    ]
    async with client_of(new_service()) as client:
        for playlist in playlists:
            assert await refused(client, playlist.encode()) == (400, "no-audio")
    with pytest.raises(BlockingIOError):
        listener.accept()
