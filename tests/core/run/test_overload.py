"""Falling behind a live source: the lag, the measures against it, and no loss of speech."""

import asyncio
import dataclasses
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline import EndOfInput, LoadChanged, MarianModel, Models, PipelineEvent, Transcript
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.run.overload import LoadControl, OverloadOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.core.translator import SpeechTranslator
from pipeline.events import SAMPLE_RATE, Samples, SourceSentence, SpeechSegment, TargetText, Translation
from tests.conftest import HANG_S, PHRASES, TINY, read_wav

OPTIONS = OverloadOptions(behind_s=5.0, caught_up_s=2.0)


def segment(number: int, start_s: float, length_s: float) -> SpeechSegment:
    samples = np.full(round(length_s * SAMPLE_RATE), number + 1, np.int16)
    return SpeechSegment(number, round(start_s * SAMPLE_RATE), samples)


def test_drafts_are_left_out_from_a_lag_on_and_come_back_later():
    load, levels = LoadControl(OPTIONS), []
    for lag_s in (0, 5.0, 5.1, 4, 2.1, 2.0, 11, 0):
        before = load.level
        assert load.observe(lag_s) == (load.level != before)
        levels.append(load.level)
    assert levels == [0, 0, 1, 1, 1, 0, 1, 0]


def test_fewer_beams_give_the_narrower_search_and_are_not_cached():
    wide, narrow = MarianModel.load(TINY, NmtConfig(beam_size=4)), MarianModel.load(TINY, NmtConfig(beam_size=1))
    said = SourceSentence(0, "en", "Where is the bank near the old station?")
    assert list(wide.stream(TranslationRequest(said, "zh", beams=1))) == list(
        narrow.stream(TranslationRequest(said, "zh"))
    )
    assert len(wide.cache) == 0
    assert list(wide.stream(TranslationRequest(said, "zh", beams=9))) == list(
        wide.stream(TranslationRequest(said, "zh"))
    )


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
    queues = dataclasses.replace(demo_config.queues, segments=100, audio_chunks=1000)
    config = dataclasses.replace(demo_config, overload=OPTIONS, queues=queues)
    speech = np.tile(read_wav(PHRASES), 2)
    events: list[PipelineEvent] = []

    async def work() -> PipelineStats:
        async with SpeechTranslator(config, Models(held, demo_models.translations), live=True) as translator:
            stats = translator.stats
            stats.clock = lambda: stats.received_samples / SAMPLE_RATE  # audio arrives in real time
            feeding = asyncio.create_task(feed(translator, speech))
            async for event in translator.events():
                events.append(event)
                if isinstance(event, LoadChanged) and event.level == 1:
                    held.go.set()
            await feeding
            return stats

    try:
        stats = asyncio.run(asyncio.wait_for(work(), HANG_S))
    finally:
        held.go.set()
    assert [event.level for event in events if isinstance(event, LoadChanged)][:1] == [1]
    assert stats.longest_lag_s > 5
    assert (stats.load_level, stats.lag_s) == (0, 0.0)
    transcripts = [event for event in events if isinstance(event, Transcript)]
    assert stats.segments == len(transcripts)
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert [event.sentence for event in events if isinstance(event, Translation)] == [s.sentence for s in sentences]
    heard = letters(transcript.text for transcript in transcripts if transcript.rejected is None)
    assert letters(sentence.text for sentence in sentences) == heard != ""


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
    assert (stats.load_level, stats.undrafted) == (0, 0)


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


def test_a_segment_may_wait_for_its_group():
    now = 0.0
    stats = PipelineStats(clock=lambda: now)
    stats.spoken_from(0.0)
    stats.received(60 * SAMPLE_RATE)
    waiting = replace(segment(0, 1.0, 2.5), heard_sample=4 * SAMPLE_RATE)
    stats.segment_closed(waiting)
    stats.audio_samples, now = 12 * SAMPLE_RATE, 12.0
    stats.grouped(waiting)
    assert stats.lag_s == 0.0
    stats.group_closed([waiting], 11.0)
    assert stats.lag_s == 1.0


def test_without_a_reader_at_most_a_thousand_segments_are_remembered():
    stats = PipelineStats()
    for number in range(2_500):
        stats.segment_closed(segment(number, 0.0, 1.0))
    assert list(stats._pending) == list(range(1_500, 2_500)), "the newest"
