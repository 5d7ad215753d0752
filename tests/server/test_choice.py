"""A server with a configuration for each direction: clients of every interface choose theirs by its languages."""

import asyncio
import base64

import openai
import pytest
from openai import AsyncOpenAI
from starlette.testclient import TestClient
from wyoming.asr import Transcribe, Transcript
from wyoming.client import AsyncClient
from wyoming.info import Describe, Info

from pipeline import Models, load_config
from pipeline.apps.options import configured_several
from pipeline.apps.serve import arguments, run
from pipeline.config import with_overrides
from pipeline.config.loading import load_shared
from pipeline.errors import UsageError
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.server.app import create_app
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from tests.commands import loaded_once
from tests.conftest import CHINESE, read_wav
from tests.server.running import Texts, ask, final, finish, heard, rest, running, say, speak, translated
from tests.server.test_openai import wav_of
from tests.server.test_wyoming import answers, listening, recording

pytestmark = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")

SPEECH = read_wav(CHINESE)[: 4 * 16_000]
CONFIGS = [load_config("demo-zh"), load_config("demo-zh-en")]


@pytest.fixture(scope="module")
def models() -> list[Models]:
    with loaded_once():
        return load_shared(CONFIGS)


def serving_both(models: list[Models]) -> Service:
    limits = ServerLimits(connections_a_minute=10_000)
    return Service(CONFIGS[0], models[0], limits, others=[(CONFIGS[1], models[1])])


@pytest.fixture(scope="module")
def expected(models: list[Models]) -> Texts:
    """The texts of the Chinese speech from a translator in this process."""
    found = asyncio.run(translated(CONFIGS[1], models[1], SPEECH))
    assert {language for _, language in found} == {"zh", "en"}
    return found


def joined(texts: Texts, language: str) -> str:
    return (" " if language == "en" else "").join(text for (_, one), text in sorted(texts.items()) if one == language)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [{"source": "zh-CN"}, {"targets": ["en"]}])
async def test_the_first_message_chooses(models, expected, wanted):
    async with running(serving_both(models)) as server, server.connect() as speaker, server.connect() as other:
        assert (await ask(other, type="start"))["source"] == "en"
        started = await ask(speaker, type="start", **wanted)
        assert (started["source"], started["targets"]) == ("zh", ["en"])
        metrics = (await server.get("/metrics")).body
        assert b'speech_sessions_by_source{source="zh"} 1.0' in metrics
        await speak(speaker, SPEECH)
        assert final(await finish(speaker)) == expected


@pytest.mark.slow
async def test_languages_that_no_configuration_has_are_refused_with_what_is_offered(models):
    async with running(serving_both(models)) as server:
        for wanted, code in (
            ({"source": "fr"}, "unknown-source"),
            ({"source": "zh", "targets": ["de"]}, "unknown-target"),
        ):
            async with server.connect() as speaker:
                error = await ask(speaker, type="start", **wanted)
                assert error["code"] == code
                offered = "it recognises en, zh" if code == "unknown-source" else "it translates en into zh, zh into en"
                assert offered in error["message"]
        assert server.service.places.refused == {"unknown-source": 1, "unknown-target": 1}


def test_the_languages_and_models_are_listed(models):
    preset = with_overrides(CONFIGS[0], preset="bbc")
    service = Service(preset, models[0], others=[(CONFIGS[1], models[1])])
    client = TestClient(create_app(service), "http://localhost")
    info = client.get("/v1/info").json()
    assert (info["source"], info["targets"]) == ("en", ["zh"])
    assert info["languages"] == [{"source": "en", "targets": ["zh"]}, {"source": "zh", "targets": ["en"]}]
    assert SubtitleRules(**info["subtitles"]) == preset.subtitles
    names = [one["id"] for one in client.get("/v1/models").json()["data"]]
    assert names == ["speech-translation", "speech-translation-en", "speech-translation-zh"]
    assert client.get(f"/v1/models/{names[2]}").json()["id"] == names[2]
    refused = client.get("/v1/models/other")
    assert refused.status_code == 404
    assert ", ".join(names) in refused.text
    form = client.get("/openapi.json").json()["paths"]["/v1/audio/translations"]["post"]["requestBody"]
    assert form["content"]["multipart/form-data"]["schema"]["properties"]["target"]["enum"] == ["zh", "en"]


@pytest.mark.slow
async def test_recordings_are_translated_by_language_target_or_model(models, expected):
    async with (
        running(serving_both(models)) as server,
        AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client,
    ):
        audio, talk = client.audio, ("talk.wav", wav_of(SPEECH))
        spoken = await audio.transcriptions.create(model="whisper-1", file=talk, language="zh")
        assert spoken.text == joined(expected, "zh")
        translated = await audio.translations.create(model="speech-translation-zh", file=talk)
        assert translated.text == joined(expected, "en")
        by_target = await audio.translations.create(model="any", file=talk, extra_body={"target": "en"})
        assert by_target.text == translated.text
        captions = await audio.translations.create(
            model="speech-translation-zh", file=talk, extra_body={"target": "zh"}
        )
        assert captions.text == joined(expected, "zh")
        for model, body, code in (
            ("speech-translation-zh", {"language": "en"}, "unknown-language"),
            ("speech-translation-zh", {"target": "de"}, "unknown-target"),
            ("any", {"language": "fr"}, "unknown-language"),
        ):
            with pytest.raises(openai.BadRequestError) as error:
                await audio.translations.create(model=model, file=talk, extra_body=body)
            assert error.value.code == code


async def test_realtime_sessions_are_chosen_by_model(models):
    path = "/v1/realtime/translations?model=speech-translation"
    async with running(serving_both(models)) as server, server.connect(path=f"{path}-zh") as socket:
        session = (await heard(socket))["session"]
        assert (session["model"], session["audio"]["output"]["language"]) == ("speech-translation-zh", "en")
        async with server.connect(path=path) as first:
            assert (await heard(first))["session"]["audio"]["output"]["language"] == "zh"
            error = (await ask(first, type="session.update", session={"audio": {"output": {"language": "en"}}}))[
                "error"
            ]
            assert error["code"] == "unknown-target"
            assert "translated into zh; for en, connect with the model speech-translation-zh" in error["message"]
        audio = base64.b64encode(SPEECH.astype("<i2").repeat(3)[::2].tobytes()).decode()  # at 24 kHz
        await say(socket, type="session.input_audio_buffer.append", audio=audio)
        await say(socket, type="session.close")
        text = "".join(one["delta"] for one in await rest(socket) if "output_transcript" in one["type"])
        assert text
        assert text.isascii()


@pytest.mark.slow
async def test_wyoming_programs_know_the_languages(models, expected):
    async with listening(serving_both(models)) as uri, AsyncClient.from_uri(uri) as client:
        (info,) = await answers(client, [Describe()], "info")
        programs = {one.name: one.models[0].languages for one in Info.from_event(info).asr}
        assert programs == {"transcribe": ["en", "zh"], "translate-zh": ["en"], "translate-en": ["zh"]}
        for request, language in ((Transcribe(language="zh"), "zh"), (Transcribe(name="translate-en"), "en")):
            *_, whole, _ = await answers(client, [request, *recording(SPEECH)], "transcript-stop")
            found = Transcript.from_event(whole)
            assert (found.text, found.language) == (joined(expected, language), language)
        (error,) = await answers(client, [Transcribe(name="translate-en", language="en")], "error")
        assert error.data["text"] == 'translate-en does not recognise "en"; it recognises zh'


def test_the_command_takes_several_configurations():
    options = arguments().parse_args(["--config", "demo-zh", "--config", "demo-zh-en", "--asr", "tiny"])
    configs = configured_several(options)
    assert [config.languages for config in configs] == [config.languages for config in CONFIGS]
    assert [config.asr.model for config in configs] == ["tiny", "tiny"]
    (default,) = configured_several(arguments().parse_args([]))
    assert default.languages.source == "en"


@pytest.mark.parametrize("option", ["--source", "--target", "--nmt", "--via"])
def test_options_of_one_configuration_are_refused_with_several(option):
    with pytest.raises(UsageError, match=f"{option} is for one configuration, and there are 2"):
        run(["--config", "demo-zh", "--config", "demo-zh-en", option, "de"])


def test_two_configurations_for_one_language_are_refused(tmp_path):
    with pytest.raises(UsageError, match="two configurations are for the spoken language 'en'"):
        run(["--config", "demo-zh", "--config", "demo-zh", "--port", "0"])
