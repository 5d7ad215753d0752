"""Stages that an app adds to the chain: what they see, what they may return, and how they fail."""

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest

from pipeline import (
    EndOfInput,
    Models,
    SourceSentence,
    SourceText,
    StageError,
    TextChangeError,
    Transcript,
    Translation,
    standard_stages,
    with_stage,
)
from pipeline.core.run.overload import LoadControl
from pipeline.core.run.stats import PipelineStats
from pipeline.core.stages import StageContext
from pipeline.events import SAMPLE_RATE, Pause, SegmentSoFar, SpeechSegment, Word
from pipeline.media.audio.recording import Recording
from tests.chain import events_of
from tests.conftest import EXAMPLES, Panic, read_wav
from tests.core.vad.test_stage import fed_in_chunks

TRAVEL = EXAMPLES / "travel.wav"


def translate(config, models, stages):
    return events_of(config, models, Recording(TRAVEL), stages=stages)


@pytest.mark.slow
def test_a_stage_that_changes_final_text_ends_the_run(demo_config, demo_models):
    def spoil(event):
        if not isinstance(event, SourceSentence):
            return event
        return [event, SourceText(event.sentence, event.language, "So")]

    stages = with_stage(standard_stages(), "spoiling", spoil, after="sentences")
    message = "the text of sentence 0 is final; it cannot become 'So'"
    with pytest.raises(StageError, match=message) as caught:
        events_of(demo_config, demo_models, Recording(TRAVEL), live=True, stages=stages)
    assert isinstance(caught.value.__cause__, TextChangeError)


@pytest.mark.slow
def test_a_stage_that_returns_what_it_gets_changes_nothing(demo_config, demo_models):
    seen = {"VAD": [], "ASR": [], "sentences": [], "NMT": []}
    threads = set()

    def watching(after):
        def watch(event):
            threads.add(threading.get_ident())
            seen[after].append(event)
            return event

        return watch

    stages = standard_stages()
    for after in seen:
        stages = with_stage(stages, f"watching {after}", watching(after), after=after)
    events = translate(demo_config, demo_models, stages)
    assert events == translate(demo_config, demo_models, None)
    assert {type(event) for event in seen["VAD"]} == {SpeechSegment, Pause}
    assert [event for event in seen["ASR"] if not isinstance(event, Pause)] == [
        event for event in events if isinstance(event, Transcript)
    ]
    recognised = Transcript | SourceText | SourceSentence
    assert seen["sentences"] == [event for event in events if isinstance(event, recognised)]
    assert seen["NMT"] == [event for event in events if not isinstance(event, EndOfInput)]
    assert len(threads) == 4
    assert threading.get_ident() not in threads


@pytest.mark.slow
def test_what_a_stage_drops_and_adds_reaches_those_behind_it(demo_config, demo_models):
    def first_twice(heard):
        if isinstance(heard, Pause) or heard.segment_id > 0:
            return []
        return [heard, replace(heard, text="Thank you.", words=())]

    events = translate(demo_config, demo_models, with_stage(standard_stages(), "first", first_twice, after="ASR"))
    transcripts = [event for event in events if isinstance(event, Transcript)]
    assert [transcript.segment_id for transcript in transcripts] == [0, 0]
    assert [event.text for event in events if isinstance(event, SourceSentence)][1:] == ["Thank you."]
    assert sum(isinstance(event, Translation) for event in events) == 2
    assert isinstance(events[-1], EndOfInput)


@pytest.mark.parametrize("returned", [None, [None]])
def test_a_stage_that_returns_nothing_is_a_mistake(returned, demo_config, demo_models):
    stages = with_stage(standard_stages(), "forgetful", lambda event: returned, after="ASR")
    with pytest.raises(StageError, match=r"'forgetful' returned nothing for a Transcript; return the event, or \[\]"):
        translate(demo_config, demo_models, stages)


@pytest.mark.parametrize(
    "error", [ValueError("odd"), Panic("odd"), SystemExit(3)], ids=lambda error: type(error).__name__
)
def test_a_stage_that_fails_ends_the_run_with_its_name(error, demo_config, demo_models):
    def fail(event):
        raise error

    with pytest.raises(StageError, match="odd|3") as caught:
        translate(demo_config, demo_models, with_stage(standard_stages(), "failing", fail, after="NMT"))
    assert caught.value.stage == "failing"


def test_a_place_that_is_not_there_and_a_name_that_is_are_mistakes():
    with pytest.raises(ValueError, match="there is no stage 'TTS'; the stages are VAD, ASR, sentences, NMT"):
        with_stage(standard_stages(), "mine", lambda event: event, after="TTS")
    with pytest.raises(ValueError, match="there is a stage named 'ASR' already"):
        with_stage(standard_stages(), "ASR", lambda event: event, after="VAD")


def test_an_added_stage_waits_for_as_much_as_the_one_before_it():
    stages = standard_stages()
    added = with_stage(stages, "mine", lambda event: event, after="ASR")
    assert [stage.name for stage in added] == ["VAD", "ASR", "mine", "sentences", "NMT"]
    assert added[2].capacity is stages[1].capacity


def test_the_stages_wait_for_the_pauses_that_end_sentences(demo_config):
    sentences = replace(demo_config.sentences, sure_pause_ms=700, pause_ms=1_500, long_pause_ms=2_500)
    config = replace(demo_config, sentences=sentences)
    context = StageContext(
        config, Models(Says("best"), {}), PipelineStats(), LoadControl(config.overload), lambda: True
    )
    vad, *_ = [spec.make(asyncio.Queue(), asyncio.Queue(), context) for spec in standard_stages()[:2]]
    assert vad._pauses_s == [0.7, 1.5, 2.5]


def test_a_chain_without_stages_is_a_mistake(demo_config, demo_models):
    with pytest.raises(StageError, match="the stages are none; expected at least one"):
        translate(demo_config, demo_models, [])


@pytest.mark.parametrize(("live", "lag_s", "expected"), [(True, 0.0, True), (True, 6.0, False), (False, 0.0, False)])
def test_segments_are_announced_in_a_live_run_that_is_not_behind(live, lag_s, expected, demo_config, demo_models):
    load = LoadControl(demo_config.overload)
    load.observe(lag_s)
    context = StageContext(demo_config, demo_models, PipelineStats(), load, lambda: live)

    def stage(inbox, outbox):
        return standard_stages()[0].make(inbox, outbox, context)

    found = asyncio.run(fed_in_chunks(stage, read_wav(TRAVEL)[: 16_000 * 6]))
    assert any(isinstance(item, SpeechSegment) for item in found)
    assert any(isinstance(item, SegmentSoFar) for item in found) == expected


class Says:
    """A recogniser that hears one word in all speech, and counts its drafts."""

    def __init__(self, word):
        self.word, self.drafts = word, 0

    def transcribe(self, segments, options):
        return [
            Transcript(
                each.id, each.start_s, each.end_s, self.word, "en", words=(Word(self.word, each.start_s, each.end_s),)
            )
            for each in segments
        ]

    def draft(self, segment, options):
        self.drafts += 1
        return self.transcribe([segment], options)[0]


async def test_the_draft_model_of_a_run_makes_its_drafts(demo_config):
    bigger, smaller = Says("best"), Says("vest")
    models = Models(bigger, {}, smaller)
    context = StageContext(demo_config, models, PipelineStats(), LoadControl(demo_config.overload), lambda: True)
    (spec,) = [spec for spec in standard_stages() if spec.name == "ASR"]
    inbox = asyncio.Queue()
    outbox = asyncio.Queue()
    stage = asyncio.create_task(spec.make(inbox, outbox, context).run())
    segment = SpeechSegment(0, 0, np.zeros(2 * SAMPLE_RATE, np.int16), False, 2 * SAMPLE_RATE, 2 * SAMPLE_RATE)
    inbox.put_nowait(SegmentSoFar(segment, pausing=False))
    shown = await outbox.get()
    inbox.put_nowait(segment)
    inbox.put_nowait(EndOfInput(2.0))
    await stage
    left = [outbox.get_nowait() for _ in range(outbox.qsize())]
    assert [each.text for each in shown.transcripts] == ["vest"]
    assert (smaller.drafts, bigger.drafts) == (1, 0)
    assert [each.text for each in left if isinstance(each, Transcript)] == ["best"]
