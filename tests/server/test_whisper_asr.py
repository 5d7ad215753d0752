"""whisper-asr-webservice's interface, with the requests that Bazarr 1.5 sends: raw PCM, and everything else in the query."""

import asyncio
import logging
import threading
from typing import Any

import numpy as np
import pytest
import requests
import srt

from pipeline.errors import AudioError, ModelError
from pipeline.server import uploads
from pipeline.server.access import Access
from pipeline.server.protocols import whisper_asr
from pipeline.server.service import Service
from pipeline.server.uploads import Upload, UploadError
from tests.conftest import CHINESE, HANG_S, PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import running, until
from tests.server.test_openai import SPEECH as WAV

TOKEN = "0123456789abcdef"
PCM = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)].tobytes()
CHINESE_PCM = read_wav(CHINESE)[: 4 * 16_000].tobytes()


async def bazarr(service: Service, path: str, audio: bytes, access: Access | None = None, **query: Any) -> Any:
    """The answer to a request as ``whisperai.py`` of Bazarr sends it; the key is in the address."""
    async with running(service, access) as server:
        user = f":{TOKEN}@" if access is not None else ""
        return await asyncio.to_thread(
            requests.post,
            f"http://{user}127.0.0.1:{server.port}/{path}",
            params={"encode": "false", "video_file": None} | query,
            files={"audio_file": audio},
            timeout=(60, 60),
        )


@pytest.mark.slow
async def test_subtitles_are_those_of_openais_interface(new_service):
    answer = await bazarr(new_service(), "asr", PCM, Access.of(TOKEN), task="transcribe", language="en", output="srt")
    async with running(new_service()) as server:
        other = await asyncio.to_thread(
            requests.post,
            f"{server.address}/audio/transcriptions",
            data={"response_format": "srt"},
            files={"file": WAV},
        )
    assert answer.text == other.text
    assert len(list(srt.parse(answer.text))) >= 2


async def test_a_file_is_read_as_what_it_is_unless_it_is_said_to_be_pcm(new_service):
    found = {}
    for output in ("txt", "json", "vtt", "tsv"):
        found[output] = await bazarr(new_service(), "asr", WAV, encode="true", output=output)
    assert found["json"].json()["text"] + "\n" == found["txt"].text
    assert found["json"].json()["duration"] == 2 * PHRASE_SECONDS  # without its header
    assert found["vtt"].text.startswith("WEBVTT")
    assert (found["tsv"].status_code, "choose from txt, vtt, srt, json" in found["tsv"].text) == (400, True)


async def test_what_is_wrong_is_refused(new_service):
    for query, code in (({"task": "sing"}, "bad-format"), ({"language": "fr"}, "unknown-language")):
        answer = await bazarr(new_service(), "asr", PCM, **query)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    answer = await bazarr(new_service(), "asr", PCM, task="translate", language="zh")  # into English: not here
    assert answer.status_code == 400
    async with running(new_service(), Access.of(TOKEN)) as server:
        for path in ("asr", "detect-language"):
            url = f"{server.url}/{path}"
            refused = await asyncio.to_thread(requests.post, url, files={"audio_file": PCM}, auth=("", "wrong"))
            assert refused.status_code == 401
            missing = await asyncio.to_thread(requests.post, url, files={"file": PCM}, auth=("", TOKEN))
            assert missing.status_code == 400
            assert "with the name audio_file" in missing.text


@pytest.mark.parametrize(("audio", "code", "name"), [(PCM, "en", "english"), (CHINESE_PCM, "zh", "chinese")])
async def test_the_language_is_told_whichever_is_configured(audio, code, name, new_service):
    answer = (await bazarr(new_service(), "detect-language", audio)).json()
    assert (answer["language_code"], answer["detected_language"]) == (code, name)
    assert 0.5 < answer["confidence"] <= 1


async def test_a_place_is_taken_until_the_thread_of_a_client_that_left_has_ended(new_service, tmp_path, monkeypatch):
    (tmp_path / "audio").write_bytes(bytes(64_000))
    service, reading, go_on, sources = new_service(), asyncio.Event(), threading.Event(), []

    def first_speech(source: Any, _: object) -> Any:
        sources.append(source)
        loop.call_soon_threadsafe(reading.set)
        go_on.wait(HANG_S)
        return np.ones(16_000, np.int16)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(whisper_asr, "first_speech", first_speech)
    monkeypatch.setattr(whisper_asr, "guessed_languages", lambda *each: guessed.append(each))
    monkeypatch.setattr(uploads.PcmRecording, "close", lambda source: closed.append(source))
    closed: list[Any] = []
    guessed: list[Any] = []
    work = asyncio.create_task(whisper_asr._guessed(Upload(tmp_path / "audio", {}, is_pcm=True), service))
    await reading.wait()
    work.cancel()
    await until(lambda: bool(closed))  # what ends its reading
    assert not work.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not guessed  # nobody waits for it


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelError("no memory"), (500, "failed")),
        (RuntimeError("a mistake"), (500, "failed")),
        (AudioError("no audio"), (400, "no-audio")),
        (UploadError(413, "too-long", "hours"), (413, "too-long")),
    ],
)
async def test_a_thread_that_fails_is_told_and_logged_where_it_is_ours(
    error, told, new_service, tmp_path, monkeypatch, caplog
):
    (tmp_path / "audio").write_bytes(bytes(64_000))

    def first_speech(*_: object) -> Any:
        raise error

    monkeypatch.setattr(whisper_asr, "first_speech", first_speech)
    with pytest.raises(UploadError) as refused:
        await whisper_asr._guessed(Upload(tmp_path / "audio", {}, is_pcm=True), new_service())
    assert (refused.value.status, refused.value.code) == told
    logged = [bool(record.exc_info) for record in caplog.records if record.levelno >= logging.ERROR]
    assert logged == ([isinstance(error, RuntimeError)] if told[0] == 500 else [])


async def test_nobody_speaks_no_language(new_service):
    answer = (await bazarr(new_service(), "detect-language", bytes(64_000))).json()
    assert answer == {"detected_language": "", "language_code": "", "confidence": 0.0}
    refused = await bazarr(new_service(), "detect-language", b"no audio", encode="true")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no-audio")
