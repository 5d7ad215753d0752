"""Failures, cancels and closed readers at every event of a live run with drafts.

The recogniser's answers are recorded, so that many runs are quick. They are those of the real one.
"""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pytest
import srt

import pipeline.core.stages as chain
from pipeline import (
    EndOfInput,
    Models,
    PipelineEvent,
    SourceSentence,
    SourceText,
    SpeechTranslator,
    StageError,
    TargetText,
    Transcript,
    Translation,
)
from pipeline.apps.live_run import LiveRun
from pipeline.bench.words import edits, scored_units
from pipeline.core.captions.changes import States
from pipeline.core.captions.states import OpenTexts
from pipeline.errors import SinkError
from pipeline.events import SAMPLE_RATE
from pipeline.media.sinks.jsonl import JsonlSink, read_event
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.txt import TextSink
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.drafting import Pace, Steady, at_once, chunks
from tests.test_failures import Failing, InjectedError

# A sentence with six drafts, and the beginning of the next one.
SPEECH = read_wav(PHRASES)[: 6 * 16_000]


class FailsAt:
    """An inbox whose get() number ``count`` raises."""

    def __init__(self, inbox, count):
        self.inbox, self.left = inbox, count

    async def get(self):
        item = await self.inbox.get()
        if self.left == 0:
            raise InjectedError
        self.left -= 1
        return item

    def __getattr__(self, name):
        return getattr(self.inbox, name)


STAGES = {"VAD": "VadStage", "ASR": "AsrStage", "sentences": "SentenceStage", "NMT": "TranslationStage"}


class Recorded:
    """A recogniser that is asked each question once."""

    def __init__(self, models):
        self._recognizer = models.recognizer
        self._answers = {}
        self.methods = []
        """Those called in this run."""
        self.begin()

    def begin(self, fails_at=-1, at_call=lambda _: None):
        """Another run begins, in which call number ``fails_at`` raises; ``at_call`` is called with the number of each."""
        self.calls, self.fails_at, self._at_call = 0, fails_at, at_call

    def _ask(self, method, segments, options):
        self.calls += 1
        self.methods[self.calls - 1 :] = [method]
        self._at_call(self.calls - 1)
        if self.calls - 1 == self.fails_at:
            raise InjectedError
        before = tuple((each.text, each.segment.start_sample, len(each.segment.samples)) for each in options.context)
        rest = (options.language, options.before)
        asked = tuple((each.start_sample, len(each.samples), each.heard_s) for each in segments)
        question = (method, before, asked, rest)
        if question not in self._answers:
            given = segments if method == "transcribe" else segments[0]
            self._answers[question] = getattr(self._recognizer, method)(given, options)
        return self._answers[question]

    def transcribe(self, segments, options):
        return self._ask("transcribe", segments, options)

    def draft(self, segment, options):
        return self._ask("draft", [segment], options)


class Kept:
    """A sink that keeps the events, and then calls ``at_event`` with the number of each."""

    def __init__(self, at_event=lambda _: None):
        self.events = []
        self._at_event = at_event

    def write(self, event):
        self.events.append(event)
        self._at_event(len(self.events) - 1)

    def close(self): ...


class Files:
    """The files of one run, and what they hold."""

    def __init__(self, folder, config):
        folder.mkdir()
        self._folder, rules = folder, config.subtitles
        self.sinks = [
            SrtSink(folder / "srt", rules), TextSink(folder / "txt", rules), JsonlSink(folder / "jsonl", rules),
        ]  # fmt: skip

    def close(self):
        for sink in self.sinks:
            sink.close()

    def read(self, name):
        """The content of a file, which may not have been begun."""
        path = self._folder / name
        return path.read_text("utf-8") if path.exists() else ""

    @property
    def cues(self):
        return [cue.content for cue in srt.parse(self.read("srt"))]

    @property
    def sentences(self):
        return self.read("txt").splitlines()

    @property
    def records(self):
        return [json.loads(line) for line in self.read("jsonl").splitlines()]


class Runs:
    """Makes live runs of the same speech."""

    def __init__(self, config, recognizer, models, pace, folder):
        self.config, self.recognizer, self.pace = config, recognizer, pace
        self.models = Models(recognizer, models.translations)
        self._folder, self._number = folder, 0

    def source(self):
        self.recognizer.begin()
        self.pace.forget()
        return Steady(chunks(SPEECH), self.pace)

    def files(self):
        self._number += 1
        return Files(self._folder / str(self._number), self.config)

    def into(self, sinks, models=None, fails_at=-1):
        run = LiveRun(self.source(), self.config, sinks, models=models or self.models, live=True)
        self.recognizer.begin(fails_at)
        at_once(run.stats)
        return run


@dataclass(frozen=True)
class Whole:
    """A run to its end."""

    events: list[PipelineEvent]
    cues: list[str]
    sentences: list[str]
    streams: dict[str, list[dict[str, Any]]]
    calls: int
    """Of the recogniser."""


@pytest.fixture
def step():
    """Of how many events one is tested; of each, in tests/night."""
    return 7


@pytest.fixture(scope="module")
def recorded(demo_models):
    return Recorded(demo_models)


@pytest.fixture
def runs(demo_config, demo_models, recorded, tmp_path, monkeypatch):
    return Runs(demo_config, recorded, demo_models, Pace(monkeypatch), tmp_path)


@pytest.fixture
def whole(runs):
    files, kept = runs.files(), Kept()
    assert ended(runs.into([*files.sinks, kept])) is None
    files.close()
    early = list(takewhile(lambda event: not isinstance(event, Transcript), kept.events))
    assert sum(isinstance(event, SourceText) for event in early) >= 5
    assert any(isinstance(event, TargetText) for event in early)
    assert len(files.sentences) == 2
    return Whole(kept.events, files.cues, files.sentences, streams(files.records), runs.recognizer.calls)


def streams(records):
    """The events by the language translated into, which may interleave. Cues are made of them."""
    found = {"": [], "zh": []}
    for record in records:
        if record["type"] not in ("events", "cue"):
            found["zh" if record["type"] in ("delta", "translation") else ""].append(record)
    return found


def ended(run):
    """The exception of a run. Checks that it leaves neither tasks nor threads."""
    return asyncio.run(left_nothing(run.run()))


async def left_nothing(work):
    before = set(threading.enumerate())
    error = None
    async with asyncio.timeout(HANG_S):
        try:
            await work
        except (Exception, asyncio.CancelledError) as problem:
            error = problem
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for thread in set(threading.enumerate()) - before:
        thread.join(HANG_S)
        assert not thread.is_alive()
    return error


def check_beginning(files, whole, kept):
    """The files hold the beginning of what those of a whole run hold, and everything that is finished."""
    files.close()
    assert files.sentences == whole.sentences[: len(files.sentences)]
    assert files.cues == whole.cues[: len(files.cues)]
    finished = [event.text for event in kept if isinstance(event, Translation)]
    assert files.sentences[: len(finished)] == finished
    assert "".join(files.cues).replace("\n", "").startswith("".join(finished))
    texts = States()
    for record in files.records:
        if (event := read_event(record)) is not None:
            texts.push(event)  # raises if final text changes
    found = streams(files.records)
    assert all(found[each] == whole.streams[each][: len(found[each])] for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_fails_at_any_event(stage, step, runs, whole, monkeypatch, caplog):
    kind = getattr(chain, STAGES[stage])
    at, error = 0, None
    while at == 0 or error is not None:

        def failing(*arguments, at=at, **named):
            made = kind(*arguments, **named)
            made.inbox = FailsAt(made.inbox, at)
            return made

        monkeypatch.setattr(chain, kind.__name__, failing)
        files, kept = runs.files(), Kept()
        error = ended(runs.into([*files.sinks, kept]))
        if error is not None:
            assert_failed(error, stage)
        check_beginning(files, whole, kept.events)
        at += step
    assert len(kept.events) == len(whole.events), "the last run has too few events to fail"
    assert at >= 2 * step
    assert not caplog.records, "the failure is raised, and reported nowhere else"


def assert_failed(error, stage):
    assert isinstance(error, StageError)
    assert error.stage == stage
    assert isinstance(error.__cause__, InjectedError)


def test_a_recogniser_that_fails_at_any_call(step, runs, whole):
    for at in range(0, whole.calls, step):
        files, kept = runs.files(), Kept()
        assert_failed(ended(runs.into([*files.sinks, kept], fails_at=at)), "ASR")
        check_beginning(files, whole, kept.events)


@pytest.mark.slow
def test_a_translator_that_fails_at_any_event(step, runs, whole):
    at, error = 0, None
    while at == 0 or error is not None:
        files, kept = runs.files(), Kept()
        models = Models(runs.models.recognizer, {"zh": Failing(runs.models, at)})
        error = ended(runs.into([*files.sinks, kept], models))
        if error is not None:
            assert_failed(error, "NMT")
        check_beginning(files, whole, kept.events)
        at += step
    assert at > len([event for event in whole.events if isinstance(event, TargetText | Translation)])


@pytest.mark.slow
def test_a_sink_that_fails_at_any_event_costs_the_others_nothing(step, runs, whole):
    for at in range(0, len(whole.events), step):
        error = SinkError("disk full") if at % 2 else BrokenPipeError(32, "Broken pipe")

        def fail(number, at=at, error=error):
            if number == at:
                raise error

        files = runs.files()
        dead, kept = Kept(fail), Kept()
        assert ended(runs.into([dead, *files.sinks, kept])) is error
        check_beginning(files, whole, kept.events)
        assert len(kept.events) > at


@pytest.mark.slow
def test_a_run_interrupted_twice_at_any_event(step, runs, whole, caplog):
    for at in range(0, len(whole.events) - 1, step):
        files = runs.files()
        holder = []

        async def work(holder=holder, kept_at=at, files=files):
            loop = asyncio.get_running_loop()

            def interrupt(number):
                if number == kept_at:
                    for _ in range(2):
                        loop.call_soon_threadsafe(holder[0]._interrupted)

            holder.append(runs.into([*files.sinks, Kept(interrupt)]))
            await holder[0].run()

        error = asyncio.run(left_nothing(work()))
        assert isinstance(error, asyncio.CancelledError) or at > len(whole.events) - 3, at
        check_beginning(files, whole, [])
    assert not caplog.records


@pytest.mark.slow
@pytest.mark.parametrize("how", [LiveRun._interrupted, LiveRun._hung_up])
def test_an_interrupt_during_a_draft_loses_no_speech(how, runs, whole):
    drafted = [at for at, method in enumerate(runs.recognizer.methods) if method == "draft"]
    for at in drafted[1 if how is LiveRun._interrupted else 4 :: 2]:
        files, kept = runs.files(), Kept()

        async def work(at=at, files=files, kept=kept):
            loop = asyncio.get_running_loop()
            run = runs.into([*files.sinks, kept])

            def interrupt(number):
                if number == at:
                    loop.call_soon_threadsafe(how, run)

            runs.recognizer.begin(at_call=interrupt)
            await run.run()

        assert asyncio.run(left_nothing(work())) is None
        files.close()
        assert isinstance(kept.events[-1], EndOfInput)
        assert kept.events[-1].duration_s < len(SPEECH) / SAMPLE_RATE
        texts = OpenTexts()
        for event in kept.events:
            texts.push(event)  # raises if final text changes
        sentences = [event for event in kept.events if isinstance(event, SourceSentence)]
        translations = [event for event in kept.events if isinstance(event, Translation)]
        assert [each.sentence for each in translations] == [each.sentence for each in sentences]
        assert files.sentences == [each.text for each in translations]
        assert "".join(files.cues).replace("\n", "") == "".join(files.sentences)
        said = scored_units(" ".join(each.text for each in sentences), "en")
        expected = scored_units(" ".join(each.text for each in whole.events if isinstance(each, SourceSentence)), "en")
        assert len(said) >= 3
        # The last word may be cut off, and what is before it heard otherwise for that.
        assert edits(said[:-1], expected[: len(said) - 1]) <= 2


Stop = Callable[[SpeechTranslator, AsyncGenerator[PipelineEvent, None]], Awaitable[object]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "stop",
    [lambda _, events: events.aclose(), lambda translator, _: translator.cancel()],
    ids=["the reader leaves", "the run is cancelled"],
)
def test_a_run_that_stops_at_any_event(stop, step, runs, whole):
    for at in range(0, len(whole.events) - 1, step):
        seen = []

        async def work(at=at, seen=seen):
            source = runs.source()
            async with SpeechTranslator(runs.config, runs.models, live=True) as translator:
                at_once(translator.stats)
                events = translator.run(source)
                while len(seen) <= at:
                    seen.append(await anext(events))
                await stop(translator, events)
                assert [event async for event in events] == []

        assert asyncio.run(left_nothing(work())) is None
        for kinds in ((SourceText, SourceSentence, Transcript), (TargetText, Translation)):
            found, expected = ([event for event in each if isinstance(event, kinds)] for each in (seen, whole.events))
            assert found == expected[: len(found)]
