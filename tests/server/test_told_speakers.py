"""A speaker has voices told apart in the session that begins, where whoever runs the server allows it."""

from types import SimpleNamespace

import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError

from pipeline.apps.serve import run
from pipeline.config.loading import SharedModels
from pipeline.errors import UsageError
from pipeline.server.service import Service
from pipeline.store import packages
from tests.conftest import PHRASE_SECONDS, PHRASES, ROOT, read_wav
from tests.server.running import ask, finish, rest, running, speak
from tests.server.test_openai import wav_of

SECONDS = 16_000
PAUSE = np.zeros(3 * SECONDS, np.int16)


@pytest.fixture
def told(demo_config, demo_models, tmp_path):
    """A service whose sessions may have voices told apart, and the models that it has loaded for that."""
    service, shared = Service(demo_config, demo_models, record=tmp_path), SharedModels()
    service.speakers = shared.voices_on_demand(demo_config.speakers)
    return SimpleNamespace(service=service, loaded=shared._voices)


def speakers(records):
    return [record.get("speaker") for record in records if record["type"] == "source_sentence"]


@pytest.mark.slow
async def test_voices_are_told_apart_in_the_sessions_that_ask_for_it(told, tmp_path):
    one, other = read_wav(PHRASES)[: round(PHRASE_SECONDS * SECONDS)], read_wav(ROOT / "examples/audio/novel.wav")
    said = np.concatenate([one, PAUSE, other[: 4 * SECONDS], PAUSE])
    async with running(told.service) as server:
        async with server.connect() as speaker:
            assert (await ask(speaker, type="start", speakers=False))["type"] == "started"
            await speak(speaker, said[: len(one) + len(PAUSE)])
            assert set(speakers(await finish(speaker))) == {None}
        assert told.loaded == {}  # nobody has asked for it
        async with server.connect() as speaker, server.connect() as reader:
            session = (await ask(speaker, type="start", speakers=True))["session"]
            assert len(told.loaded) == 1
            await ask(reader, type="watch", session=session)
            await speak(speaker, said)
            found = speakers(await finish(speaker))
            assert (found[0], found[-1]) == ("1", "2")
            assert speakers(await rest(reader)) == found
    assert any("<v 1>" in path.read_text("utf-8") for path in tmp_path.glob("*.zh.vtt"))


@pytest.mark.slow
async def test_files_are_diarized_where_that_is_allowed(told, new_service):
    one, other = read_wav(PHRASES)[: round(PHRASE_SECONDS * SECONDS)], read_wav(ROOT / "examples/audio/novel.wav")
    wanted = {
        "model": "speech-translation",
        "file": ("talk.wav", wav_of(np.concatenate([one, PAUSE, other[: 4 * SECONDS], PAUSE]))),
        "response_format": "diarized_json",
    }
    async with running(told.service) as server, AsyncOpenAI(base_url=server.address, api_key="any") as client:
        whole = await client.audio.transcriptions.create(**wanted)
        assert (whole.segments[0].speaker, whole.segments[-1].speaker) == ("1", "2")
        assert " ".join(segment.text for segment in whole.segments) == whole.text
        stream = [event async for event in await client.audio.transcriptions.create(**wanted, stream=True)]
        segments = [event.to_dict() for event in stream if event.type == "transcript.text.segment"]
        assert segments == [segment.to_dict() for segment in whole.segments]
    async with running(new_service()) as server, AsyncOpenAI(base_url=server.address, api_key="any") as client:
        with pytest.raises(BadRequestError) as refused:
            await client.audio.transcriptions.create(**wanted)
        assert refused.value.code == "no-speakers"


async def test_a_server_that_does_not_allow_it_says_so(demo_config, demo_models):
    async with running(Service(demo_config, demo_models)) as server:
        for asked, code in ((True, "no-speakers"), ("yes", "bad-message"), (1, "bad-message"), (None, "bad-message")):
            async with server.connect() as speaker:
                refused = await ask(speaker, type="start", speakers=asked)
                assert (refused["type"], refused["code"]) == ("error", code)


def test_it_can_be_allowed_only_where_the_model_is(monkeypatch):
    monkeypatch.setattr(packages, "_installed", lambda *place: None)
    monkeypatch.setattr(packages, "is_complete", lambda *place: False)
    with pytest.raises(UsageError, match=r"pip install moonshine-voice==0\.0\.73"):
        run(["--config", "demo-zh", "--allow-speakers", "--port", "0"])
