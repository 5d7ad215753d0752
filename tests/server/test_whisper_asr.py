"""whisper-asr-webservice's interface, with the requests that Bazarr 1.5 sends: raw PCM, and everything else in the query."""

import asyncio
from typing import Any

import pytest
import requests
import srt

from pipeline.server.access import Access
from pipeline.server.service import Service
from tests.conftest import CHINESE, PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import running
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


async def test_nobody_speaks_no_language(new_service):
    answer = (await bazarr(new_service(), "detect-language", bytes(64_000))).json()
    assert answer == {"detected_language": "", "language_code": "", "confidence": 0.0}
    refused = await bazarr(new_service(), "detect-language", b"no audio", encode="true")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no-audio")
