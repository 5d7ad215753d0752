"""A model that does not answer: its sessions are told and end, and the server is not ready."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI, InternalServerError

from pipeline import Models, PipelineConfig
from pipeline.core.run.stats import PipelineStats
from pipeline.server import session, uploads
from pipeline.server.protocol import ProtocolError
from pipeline.server.scheduling import Scheduler
from pipeline.server.unanswered import ModelCalls, Unanswered
from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, read_wav
from tests.core.asr.scripted import Scripted
from tests.server.running import ask, final, finish, heard, rest, running, serving, speak, until, with_hebrew
from tests.server.test_openai import wav_of

SPEECH = read_wav(PHRASES)[: round(PHRASE_SECONDS * 16_000)]


def test_a_call_without_an_answer_is_found_after_the_limit_and_each_answer_begins_anew():
    unanswered = Unanswered(2.0, 0.0)
    looks: list[tuple[float, dict[Any, str], str | None]] = [
        (0.5, {1: "asr"}, None),
        (1.5, {1: "asr", 2: "nmt"}, None),
        (2.25, {2: "nmt"}, None),
        (3.25, {1: "asr", 2: "nmt"}, None),
        (3.5, {1: "asr", 2: "nmt"}, "nmt"),
        (4.0, {}, None),
        (4.5, {(3, 1): "asr"}, None),
        (5.5, {(3, 1): "asr"}, None),
        (6.5, {(3, 2): "asr"}, None),
        (7.5, {(3, 2): "asr"}, None),
        (8.5, {(3, 2): "asr"}, "asr"),
    ]
    for now_s, calls, stage in looks:
        assert unanswered.look(now_s, calls) == stage


def test_the_time_in_which_the_process_was_stopped_does_not_count():
    unanswered = Unanswered(2.0, 0.0)
    assert unanswered.look(0.5, {1: "asr"}) is None
    assert unanswered.look(100.0, {1: "asr"}) is None
    assert unanswered.look(101.0, {1: "asr"}) == "asr"


def test_a_call_that_waits_for_others_is_another_one_after_each_answer():
    stats, scheduler = PipelineStats(calls={5: ("asr", ""), 6: ("nmt", "zh")}), Scheduler()
    calls = ModelCalls(stats, Models(Scripted(), {}), scheduler, Unanswered(1.0, 0.0))
    before = calls.in_progress(waits=True)
    assert list(before.values()) == [("asr", ""), ("nmt", "zh")]
    scheduler.answered += 1
    assert len(before.keys() & calls.in_progress(waits=True).keys()) == 1
    before = calls.in_progress(waits=False)
    scheduler.answered += 1
    assert calls.in_progress(waits=False) == before


class Hangs:
    """Stands for a recogniser, and a translator, that does not answer until the test lets it."""

    code = "zh"

    def __init__(self) -> None:
        self.answers = threading.Event()

    def transcribe(self, *_: object) -> Any:
        self.answers.wait()
        return []

    def stream(self, _: object) -> Iterator[Any]:
        self.transcribe()
        yield from ()


@pytest.fixture
def hangs() -> Iterator[Hangs]:
    model = Hangs()
    yield model
    model.answers.set()


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_WATCH_S", 0.02)
    monkeypatch.setattr(uploads, "_WATCH_S", 0.02)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage().partition(": ")[2] for each in caplog.records if each.levelno >= logging.ERROR]


async def test_all_who_wait_for_a_recogniser_that_hangs_are_told_and_the_server_is_not_ready(
    demo_config: PipelineConfig, demo_models: Models, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    models = replace(demo_models, recognizer=hangs, drafter=None)
    service = serving(demo_config, models, model_s=3.0, resume_s=0.0)
    async with (
        running(service) as server,
        server.connect() as one,
        server.connect() as two,
        server.connect() as reader,
        server.connect() as late,
    ):
        session_id = (await ask(one, type="start"))["session"]
        await ask(two, type="start")
        await ask(reader, type="watch", session=session_id)
        await ask(late, type="start")
        list(service.sessions.values())[-1].calls._unanswered.limit_s = HANG_S
        for speaker in (one, two):
            await speak(speaker, SPEECH)
            await speaker.send('{"type": "end"}')
        told = [(await rest(each))[-1] for each in (one, two, reader)]
        reason = "the recogniser has not answered for 3 s"
        for each in told:
            assert (each["type"], each["code"]) == ("error", "failed")
            assert reason in each["message"]
        assert errors(caplog) == [f"{reason}; restart the server"] * 2
        await speak(late, SPEECH)  # of which nothing would be heard
        assert "the recogniser has not answered" in (await rest(late))[-1]["message"]
        await until(lambda: not service.sessions)
        answer = await server.get("/readyz")
        assert (answer.status, answer.body) == (503, b"a model does not answer\n")
        async with server.connect() as three:
            assert (await ask(three, type="start"))["code"] == "busy"
        with pytest.raises(ProtocolError, match="a model of the server does not answer"), service.places.recording():
            pass
        hangs.answers.set()
        await until(lambda: service.places.ready)
        assert (await server.get("/readyz")).status == 200


async def test_a_translator_that_hangs_is_told(
    demo_config: PipelineConfig, demo_models: Models, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    models = replace(demo_models, recognizer=Scripted(), translations={"zh": hangs})
    service = serving(demo_config, models, model_s=3.0)
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        await speak(speaker, SPEECH)
        assert "the translator into zh has not answered for 3 s" in (await rest(speaker))[-1]["message"]
        assert errors(caplog) == ["the translator into zh has not answered for 3 s; restart the server"]
        await until(lambda: not service.sessions)
        assert not service.places.ready


async def test_an_upload_whose_translator_hangs_is_answered(
    demo_config: PipelineConfig, demo_models: Models, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    models = replace(demo_models, recognizer=Scripted(), translations={"zh": hangs})
    service = serving(demo_config, models, model_s=0.1)
    async with (
        running(service) as server,
        AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0, timeout=HANG_S) as client,
    ):
        with pytest.raises(InternalServerError, match="the server's log says why"):
            await client.audio.translations.create(model="speech-translation", file=wav_of(SPEECH))
        assert errors(caplog) == ["the translator into zh has not answered for 1 s; restart the server"]
        assert (service.places.recordings, service.places.hung) == ([], True)
        hangs.answers.set()
        await until(lambda: service.places.ready)


async def test_a_translator_that_hangs_ends_its_language_and_the_others_go_on(
    demo_config: PipelineConfig, demo_models: Models, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    config, models = with_hebrew(demo_config, replace(demo_models, recognizer=Scripted()))
    models = replace(models, translations={"zh": hangs, "he": models.translations["he"]})
    service = serving(config, models, model_s=3.0)
    async with (
        running(service) as server,
        server.connect() as speaker,
        server.connect() as reader,
        server.connect() as other,
    ):
        session_id = (await ask(speaker, type="start"))["session"]
        await ask(reader, type="watch", session=session_id, language="zh")
        await ask(other, type="watch", session=session_id, language="he")
        await speak(speaker, SPEECH)
        reason = "the translator into zh has not answered for 3 s"
        while (message := await heard(reader))["type"] != "translation_lost":
            pass
        assert (message["language"], message["reason"]) == ("zh", reason)
        assert errors(caplog) == [f"{reason}; restart the server"]
        answer = await server.get("/readyz")
        assert (answer.status, answer.body) == (503, b"a model does not answer\n")
        await speak(speaker, SPEECH)
        told = await finish(speaker)
        assert [(each["language"], each["reason"]) for each in told if each["type"] == "translation_lost"] == [
            ("zh", reason)
        ]
        texts = final([*told, *await rest(other)])
        sentences = {number for number, language in texts if language == "en"}
        assert sentences
        assert {number for number, language in texts if language == "he"} == sentences
        assert told[-1]["type"] == "end"
        assert len(errors(caplog)) == 1
        await until(lambda: not service.sessions)
        assert not service.places.ready
        hangs.answers.set()
        await until(lambda: service.places.ready)
