"""Clients of other protocols, unchanged, name languages beyond the configured ones."""

import asyncio
import base64
import json
from urllib.error import HTTPError

import httpx
import openai
import pytest
from libretranslatepy import LibreTranslateAPI
from openai import AsyncOpenAI
from wyoming.asr import Transcribe, Transcript
from wyoming.client import AsyncClient

from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence
from pipeline.server.access import Access
from tests.conftest import CHINESE, HANG_S, read_wav
from tests.server.running import running
from tests.server.test_openai import MODEL, TALK
from tests.server.test_realtime import SPEECH, all_events, connected, joined
from tests.server.test_wyoming import SPEECH as SENTENCE
from tests.server.test_wyoming import answers, listening, recording

pytestmark = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
TOKEN = "a token that nobody guesses"
TEXT = "Where is the station?"


async def portuguese(service, text):
    """What the translator of the installed package writes."""
    model = (await service.obtained("en", ["pt"])).models.translations["pt"]
    *_, found = model.stream(TranslationRequest(SourceSentence(0, "en", text), "pt"))
    return found.text


@pytest.mark.slow
async def test_libretranslate_lists_and_fetches_them(offering, catalogue):
    service = offering()
    async with running(service, Access.of(TOKEN)) as server:
        client = LibreTranslateAPI(server.url, api_key=TOKEN)
        targets = {one["code"]: one["targets"] for one in await asyncio.to_thread(client.languages)}
        assert targets["en"][:2] == ["en", "zh"]  # what is configured comes first
        assert {"de", "fr", "pt"} < set(targets["en"])
        assert await asyncio.to_thread(client.translate, TEXT, "en", "pt") == await portuguese(service, TEXT)
        assert not catalogue.asked
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(LibreTranslateAPI(server.url).translate, TEXT, "en", "de")
        assert (refused.value.code, catalogue.asked) == (403, [])
        assert await asyncio.to_thread(client.translate, TEXT, "en", "de")
        fetched = len(catalogue.asked)
        assert fetched == 4
        assert await asyncio.to_thread(client.translate, TEXT, "en", "de")
        assert len(catalogue.asked) == fetched
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(client.translate, TEXT, "en", "la")
        assert 'en to la is not supported: no model translates "en" into "la"' in json.load(refused.value)["error"]


async def test_requests_at_once_have_one_download(offering, catalogue):
    catalogue.open.clear()
    query = {"q": TEXT, "source": "en", "target": "de"}
    async with running(offering()) as server, httpx.AsyncClient(base_url=server.url, timeout=HANG_S) as client:
        asking = [asyncio.create_task(client.post("/translate", data=query)) for _ in range(20)]
        await asyncio.to_thread(catalogue.asked_for, "/models.json")
        catalogue.open.set()
        assert len({answer.json()["translatedText"] for answer in await asyncio.gather(*asking)}) == 1
        assert sorted(set(catalogue.asked)) == sorted(catalogue.asked)


@pytest.mark.slow
async def test_a_recording_is_translated_into_them(offering, catalogue):
    async with (
        running(offering()) as server,
        AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client,
    ):
        for target, asked in (("pt", 0), ("de", 4)):
            found = await client.audio.translations.create(
                model=MODEL, file=TALK, response_format="verbose_json", extra_body={"target": target}
            )
            assert found.text
            assert (found.language, len(catalogue.asked)) == (target, asked)
        with pytest.raises(openai.BadRequestError, match="not understood as it"):  # it is English
            await client.audio.transcriptions.create(model=MODEL, file=TALK, language="it")
        assert len(catalogue.asked) == 4  # a transcript needs no translator
        with pytest.raises(openai.BadRequestError, match='no model translates \\\\?"en\\\\?" into') as refused:
            await client.audio.translations.create(model=MODEL, file=TALK, extra_body={"target": "la"})
        assert refused.value.code == "unknown-target"


async def test_without_downloads_the_error_says_what_is_missing(offering, catalogue):
    async with (
        running(offering(downloads=False)) as server,
        AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client,
        connected(server) as connection,
    ):
        with pytest.raises(openai.BadRequestError, match="does not have firefox/en-de"):
            await client.audio.translations.create(model=MODEL, file=TALK, extra_body={"target": "de"})
        await connection.recv()
        await connection.session.update(session={"audio": {"output": {"language": "de"}}})
        error = (await connection.recv()).error
        assert error.code == "unknown-target"
        assert "does not have firefox/en-de" in error.message
        await connection.session.update(session={"audio": {"output": {"language": "zh"}}})
        assert (await connection.recv()).session.audio.output.language == "zh"


async def test_a_full_disk_is_a_failure_of_the_server(offering, catalogue, tmp_path):
    (model,) = (path for path in (tmp_path / "served").iterdir() if path.name.startswith("model"))
    digest = catalogue.models["en-de"][0]["files"]["model"]["uncompressedHash"]
    parts = tmp_path / "assets" / "firefox" / f".en-de.{digest[:16]}"
    parts.mkdir(parents=True)
    (parts / f"{model.name}.gz").symlink_to("/dev/full")
    async with (
        running(offering()) as server,
        AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client,
    ):
        with pytest.raises(openai.APIStatusError, match="the disk of the server is full") as refused:
            await client.audio.translations.create(model=MODEL, file=TALK, extra_body={"target": "de"})
        assert (refused.value.status_code, refused.value.code) == (507, "no-space")
        with pytest.raises(HTTPError) as failed:
            await asyncio.to_thread(LibreTranslateAPI(server.url).translate, TEXT, "en", "de")
        assert failed.value.code == 500


@pytest.mark.slow
async def test_a_realtime_session_is_translated_into_them(offering, catalogue):
    service = offering()
    async with running(service) as server, connected(server) as connection:
        created = await connection.recv()
        await connection.session.update(session={"audio": {"output": {"language": "pt"}}})
        updated = await connection.recv()
        assert (updated.type, updated.session.audio.output.language) == ("session.updated", "pt")
        session = service.sessions[created.session.id]
        assert session.config.languages.targets == ("zh", "pt")
        await connection.session.input_audio_buffer.append(audio=base64.b64encode(SPEECH).decode())
        await connection.session.close()
        text = joined(await all_events(connection), "output")
        texts = {
            event.sentence: event for event in session.readers.history.events("pt") if isinstance(event, SourceSentence)
        }
        assert text == " ".join([await portuguese(service, texts[number].text) for number in sorted(texts)])


@pytest.mark.slow
async def test_wyoming_programs_for_them_can_be_named(offering, catalogue):
    service = offering()
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        for request, speech, language in (
            (Transcribe(name="translate-pt", language="en"), SENTENCE, "pt"),
            (Transcribe(name="translate-de"), SENTENCE, "de"),
            (Transcribe(name="transcribe", language="zh"), read_wav(CHINESE), "zh"),
        ):
            *_, whole, _ = await answers(client, [request, *recording(speech)], "transcript-stop")
            found = Transcript.from_event(whole)
            assert found.text
            assert found.language == language
        assert len(catalogue.asked) == 4
        (error,) = await answers(client, [Transcribe(name="translate-la"), recording(SENTENCE)[0]], "error")
        assert (error.data["code"], "no model translates" in error.data["text"]) == ("unknown-target", True)
    async with listening(service) as uri, AsyncClient.from_uri(uri) as client:
        (error,) = await answers(client, [Transcribe(name="translate")], "error")
        assert error.data["code"] == "unknown-program"
