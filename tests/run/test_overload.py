"""Falling behind a live source: the lag, the measures against it, and no loss of speech."""

import asyncio
import dataclasses
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import EndOfInput, LoadChanged, MarianModel, Models, PipelineEvent, Transcript
from pipeline.asr.context import fits
from pipeline.asr.recognizer import RecognitionOptions
from pipeline.asr.stage import AsrStage
from pipeline.events import SAMPLE_RATE, Samples, SourceSentence, SpeechSegment, TargetText, Translation
from pipeline.nmt.options import NmtConfig
from pipeline.run.overload import LoadControl, Measures, OverloadOptions, measures
from pipeline.run.stats import PipelineStats
from pipeline.translator import SpeechTranslator
from pipeline.vad.endpointing import Endpointer
from pipeline.vad.options import VadConfig
from tests.chain import through
from tests.conftest import HANG_S, PHRASES, TINY, read_wav

OPTIONS = OverloadOptions(behind_s=5.0, caught_up_s=2.0)


def segment(number: int, start_s: float, length_s: float) -> SpeechSegment:
    samples = np.full(round(length_s * SAMPLE_RATE), number + 1, np.int16)
    return SpeechSegment(number, round(start_s * SAMPLE_RATE), samples)


def test_the_level_rises_with_the_lag_and_falls_later_than_it_rose():
    load, levels = LoadControl(OPTIONS), []
    for lag_s in (0, 4.9, 5.1, 4, 2.1, 2.0, 11, 9, 5.1, 5.0, 1, 30, 0):
        before = load.level
        assert load.observe(lag_s) == (load.level != before)
        levels.append(load.level)
    assert levels == [0, 0, 1, 1, 1, 0, 2, 2, 2, 1, 0, 2, 0]


def test_each_level_adds_a_measure():
    assert [measures(level, OPTIONS) for level in range(3)] == [
        Measures(),
        Measures(8_000, 1, 0, context=False, early=False),
        Measures(8_000, 1, 14_000, context=False, early=False),
    ]


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([None, 1_000, 3_000, 8_000]), min_size=1, max_size=12))
def test_a_shorter_limit_loses_no_sample_whenever_it_comes(limits):
    endpointer = Endpointer(VadConfig())
    frames = [np.full(320, number, np.int16) for number in range(len(limits) * 100)]
    found: list[SpeechSegment] = []
    for number, frame in enumerate(frames):
        endpointer.limit(limits[number // 100])
        found += endpointer.push(frame, True)
    found += endpointer.flush()
    assert (np.concatenate([s.samples for s in found]) == np.concatenate(frames)).all()


def test_a_shorter_limit_cuts_sooner():
    endpointer = Endpointer(VadConfig())
    endpointer.limit(2_000)
    found = [s for _ in range(500) for s in endpointer.push(np.zeros(320, np.int16), True)]
    assert len(found) >= 4
    assert all(len(s.samples) <= 2 * SAMPLE_RATE for s in found)


class Recording:
    """Replaces the recogniser; records the segments of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], int | None]] = []

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        self.calls.append(([segment.id for segment in segments], options.beams))
        return [Transcript(segment.id, segment.start_s, segment.end_s, "Yes.", "en") for segment in segments]


def recognised(level):
    """Four waiting segments of 2.5 s, the last one much later, through the stage at a level."""
    recognizer, stats, load = Recording(), PipelineStats(), LoadControl(OPTIONS)
    load.measures = measures(level, OPTIONS)
    said = (segment(number, start_s, 2.5) for number, start_s in enumerate((0.0, 3.0, 6.0, 60.0)))
    *found, end = through(lambda *queues: AsrStage(recognizer, *queues, stats, load), *said)
    assert end == EndOfInput(20.0)
    return recognizer, [item.segment_id for item in found], stats


@pytest.mark.parametrize(
    ("level", "calls", "joined", "narrowed"),
    [
        (0, [([0], None), ([1], None), ([2], None), ([3], None)], 0, 0),
        (1, [([0], 1), ([1], 1), ([2], 1), ([3], 1)], 0, 4),
        (2, [([0, 1, 2, 3], 1)], 3, 4),
    ],
)
def test_waiting_segments_are_recognised_with_fewer_beams_and_then_together(level, calls, joined, narrowed):
    recognizer, ids, stats = recognised(level)
    assert recognizer.calls == calls
    assert ids == [0, 1, 2, 3]
    assert (stats.joined, stats.narrowed) == (joined, narrowed)


@pytest.mark.parametrize("room", [0, 1], ids=["all there", "one at a time"])
def test_segments_of_a_recording_are_joined_in_the_same_way_at_any_speed(room):
    """Joining does not depend on which stage is faster."""
    recognizer, stats = Recording(), PipelineStats()
    inbox: asyncio.Queue[SpeechSegment | EndOfInput] = asyncio.Queue(room)
    outbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()

    async def work() -> list[object]:
        stage = AsrStage(recognizer, inbox, outbox, stats, join_ms=lambda: 9_000)
        running = asyncio.create_task(stage.run())
        for number, start_s in enumerate((0.0, 3.0, 6.0, 9.0, 60.0)):
            await inbox.put(segment(number, start_s, 2.5))
        await inbox.put(EndOfInput(63.0))
        await running
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    items = asyncio.run(work())
    # Three segments of 2.5 s and the pauses between them fit into 9 s, four do not.
    assert recognizer.calls == [([0, 1, 2], None), ([3, 4], None)]
    assert [item.segment_id for item in items[:-1] if isinstance(item, Transcript)] == [0, 1, 2, 3, 4]
    assert items[-1] == EndOfInput(63.0)
    assert stats.joined == 3


@pytest.mark.slow
@pytest.mark.parametrize("live", [False, True])
def test_a_live_segment_does_not_wait_to_be_joined(live, demo_config, demo_models):
    config = dataclasses.replace(demo_config, asr=dataclasses.replace(demo_config.asr, join_ms=12_000))

    async def work() -> PipelineStats:
        async with SpeechTranslator(config, demo_models, live=live) as translator:
            feeding = asyncio.create_task(translator.feed(read_wav(PHRASES)))
            feeding.add_done_callback(lambda _: asyncio.ensure_future(translator.end()))
            async for _ in translator.events():
                pass
            return translator.stats

    stats = asyncio.run(work())
    assert stats.segments == 6
    assert (stats.joined > 0) == (not live)


def test_fewer_beams_give_the_narrower_search_and_are_not_cached():
    wide, narrow = MarianModel.load(TINY, NmtConfig(beam_size=4)), MarianModel.load(TINY, NmtConfig(beam_size=1))
    said = SourceSentence(0, "en", "Where is the bank near the old station?")
    assert list(wide.stream(said, "zh", beams=1)) == list(narrow.stream(said, "zh"))
    assert len(wide.cache) == 0
    assert list(wide.stream(said, "zh", beams=9)) == list(wide.stream(said, "zh"))


class Held:
    """A recogniser that blocks until released, like one on a slow machine."""

    def __init__(self, models: Models) -> None:
        self.recognizer, self.go = models.recognizer, threading.Event()

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        self.go.wait()
        return self.recognizer.transcribe(segments, options)


def letters(texts: Iterable[str]) -> str:
    """The letters and digits of all texts. The marks at the ends of segments may change with the next words."""
    return "".join(character for text in texts for character in text if character.isalnum())


async def feed(translator: SpeechTranslator, samples: Samples) -> None:
    for start in range(0, len(samples), 1_600):
        await translator.feed(samples[start : start + 1_600])
        await asyncio.sleep(0)
    await translator.end()


@pytest.mark.slow
def test_a_run_behind_a_live_source_reports_it_catches_up_and_loses_nothing(demo_config, demo_models):
    held = Held(demo_models)
    overload = OverloadOptions(behind_s=5.0, caught_up_s=2.0, max_segment_ms=2_000, join_ms=4_000)
    queues = dataclasses.replace(demo_config.queues, segments=100, audio_chunks=1000)
    config = dataclasses.replace(demo_config, overload=overload, queues=queues)
    speech = np.tile(read_wav(PHRASES), 2)
    events: list[PipelineEvent] = []

    async def work() -> PipelineStats:
        async with SpeechTranslator(config, Models(held, demo_models.translations), live=True) as translator:
            stats = translator.stats
            stats.clock = lambda: stats.received_samples / SAMPLE_RATE  # audio arrives in real time
            feeding = asyncio.create_task(feed(translator, speech))
            async for event in translator.events():
                events.append(event)
                if isinstance(event, LoadChanged) and event.level == 2:
                    held.go.set()
            await feeding
            return stats

    try:
        stats = asyncio.run(asyncio.wait_for(work(), HANG_S))
    finally:
        held.go.set()
    changes = [event.level for event in events if isinstance(event, LoadChanged)]
    assert changes[:2] == [1, 2]
    assert stats.longest_lag_s > 10
    assert (stats.load_level, stats.lag_s) == (0, 0.0)
    transcripts = [event for event in events if isinstance(event, Transcript)]
    assert stats.shortened > 0
    assert stats.joined > 0
    assert stats.segments == len(transcripts)
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert [event.sentence for event in events if isinstance(event, Translation)] == [s.sentence for s in sentences]
    heard = letters(transcript.text for transcript in transcripts if transcript.rejected is None)
    assert letters(sentence.text for sentence in sentences) == heard != ""


def lag_after(hours: float, options: OverloadOptions, call_s: float = 6.0, phrase_s: float = 4.0) -> float:
    """Lag, in virtual time, of a recogniser that takes ``call_s`` per call for speech of any length, on phrases of
    ``phrase_s`` without pauses."""
    count = round(hours * 3_600 / phrase_s)
    speech = [SpeechSegment(i, round(i * phrase_s * SAMPLE_RATE), np.zeros(64_000, np.int16)) for i in range(count)]
    load, now, at, lag_s = LoadControl(options), 0.0, 0, 0.0
    while at < count:
        now = max(now, speech[at].end_s)
        load.observe(now - speech[at].end_s)
        first = at
        at += 1
        while at < count and speech[at].end_s <= now and fits(speech[first:at], speech[at], load.measures.join_ms):
            at += 1
        now += call_s
        lag_s = now - speech[first].end_s
    return lag_s


def test_a_slow_recogniser_keeps_up_by_joining_phrases():
    assert lag_after(2, OPTIONS) < 30
    assert lag_after(2, replace(OPTIONS, join_ms=0)) > 1_000


@pytest.mark.slow
def test_a_recording_is_never_behind(demo_config, demo_models):
    async def work() -> PipelineStats:
        async with SpeechTranslator(demo_config, demo_models) as translator:
            stats = translator.stats
            stats.clock = lambda: stats.received_samples / SAMPLE_RATE
            feeding = asyncio.create_task(translator.feed(read_wav(PHRASES)))
            feeding.add_done_callback(lambda _: asyncio.ensure_future(translator.end()))
            assert not [event async for event in translator.events() if isinstance(event, LoadChanged)]
            return stats

    stats = asyncio.run(work())
    assert (stats.load_level, stats.shortened, stats.joined, stats.narrowed) == (0, 0, 0, 0)


def test_lag_is_the_age_of_the_oldest_segment_that_is_not_translated():
    stats = PipelineStats()
    now = 100.0
    stats.clock = lambda: now
    assert stats.lag_s == 0.0
    stats.received(SAMPLE_RATE)
    now += 9.0
    stats.received(9 * SAMPLE_RATE)
    assert stats.lag_s == pytest.approx(10.0)  # the VAD has seen nothing yet
    stats.audio_samples = 4 * SAMPLE_RATE
    stats.segment_closed(segment(0, 1.0, 3.0))
    stats.audio_samples = 10 * SAMPLE_RATE
    assert stats.lag_s == pytest.approx(6.0)
    stats.segment_closed(segment(1, 5.0, 3.0))
    transcript = Transcript(0, 1.0, 4.0, "Yes.", "en")
    stats.delivered(transcript)
    assert stats.lag_s == pytest.approx(6.0)
    stats.delivered(dataclasses.replace(transcript, rejected="silence"))
    assert stats.lag_s == pytest.approx(0.0)
    now += 1.0
    stats.backlog_s = lambda: 1.0
    assert stats.lag_s == pytest.approx(1.0)
    stats.delivered(EndOfInput())
    stats.backlog_s = lambda: 0.0
    stats.received(100 * SAMPLE_RATE)  # faster than real time
    assert stats.lag_s == pytest.approx(1.0)


def test_a_segment_counts_as_lag_until_all_languages_have_translated_it():
    """The segments of a sentence in progress are finished with its drafts."""
    stats = PipelineStats(languages={"zh", "de"})
    now = 20.0
    stats.clock = lambda: now
    stats.received(20 * SAMPLE_RATE)
    for number, heard_s in enumerate((4.0, 8.0, 12.0)):
        stats.audio_samples = round(heard_s * SAMPLE_RATE)
        stats.segment_closed(replace(segment(number, heard_s - 3, 2.5), heard_sample=stats.audio_samples))
    stats.audio_samples = 20 * SAMPLE_RATE
    lags = [stats.lag_s]
    for event in (
        SourceSentence(0, "en", "Yes.", heard_s=4.0),
        Translation(0, "zh", "是。", heard_s=4.0),
        TargetText(0, "de", "J", heard_s=4.0),
        TargetText(0, "de", "Ja.", heard_s=4.0, complete=True),
        TargetText(1, "zh", "不", heard_s=8.0, complete=True),
        TargetText(1, "de", "Nein", heard_s=8.0, complete=True),
    ):
        stats.delivered(event)
        lags.append(stats.lag_s)
    assert lags == [16.0, 16.0, 16.0, 16.0, 12.0, 12.0, 8.0]
    stats.translated("zh", 12.0)  # a draft that did not change
    stats.language_lost("de", "broken")
    stats.translated("zh", 12.0)
    assert stats.lag_s == 0.0
    assert stats.lost_languages == {"de": "broken"}


def test_the_first_token_is_timed_for_each_segment():
    now = 0.0
    stats = PipelineStats(clock=lambda: now)
    for number, heard_s in enumerate((4.0, 8.0)):
        now = heard_s
        stats.segment_closed(replace(segment(number, heard_s - 3, 2.5), heard_sample=round(heard_s * SAMPLE_RATE)))
    for at_s, heard_s in ((9.0, 4.0), (9.5, 4.0), (10.0, 8.0), (11.0, 8.0)):
        now = at_s
        stats.token(heard_s)
    assert list(stats.first_token_s) == [5.0, 2.0]
    assert stats.tokens == 4


@pytest.mark.parametrize("nothing", ["", " ", "\u200b"])
def test_a_transcript_without_text_to_translate_does_not_count_as_lag(nothing, demo_config, demo_models):
    class Silent:
        def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
            return [Transcript(one.id, one.start_s, one.end_s, nothing, "en", heard_s=one.heard_s) for one in segments]

    async def work() -> None:
        models = Models(Silent(), demo_models.translations)
        async with SpeechTranslator(demo_config, models, live=True) as translator:
            feeding = asyncio.create_task(feed(translator, read_wav(PHRASES)[: 8 * SAMPLE_RATE]))
            async for event in translator.events():
                if isinstance(event, EndOfInput):  # EndOfInput itself clears all pending segments
                    assert translator.stats.segments > 0
                    assert not translator.stats._pending
            await feeding

    asyncio.run(work())


def test_without_a_reader_at_most_a_thousand_segments_are_remembered():
    stats = PipelineStats()
    for number in range(2_500):
        stats.segment_closed(segment(number, 0.0, 1.0))
    assert len(stats._pending) == 1_000
