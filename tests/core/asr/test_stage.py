"""The ASR stage: which segments are recognised together, and drafts beside them."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.asr.context import Context
from pipeline.core.asr.final import FinalRecognition
from pipeline.core.asr.groups import Groups
from pipeline.core.asr.live.drafts import LiveDrafts
from pipeline.core.asr.recognizer import DraftRefusedError
from pipeline.core.asr.stage import AsrStage
from pipeline.core.run.options import DraftOptions
from pipeline.core.run.overload import LoadControl, OverloadOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.events import (
    SAMPLE_RATE,
    EndOfInput,
    Pause,
    SegmentSoFar,
    SoundEvent,
    SpeechSegment,
    Transcript,
    TranscriptSoFar,
)
from pipeline.languages.marks import letters
from tests.chain import through
from tests.conftest import PHRASES, examples, read_wav
from tests.core.asr.scripted import Scripted, speech
from tests.core.vad.test_stage import cut
from tests.drafting import WatchedQueue

LONG_PAUSE = Pause(5.0, 2.0)
OFTEN = DraftOptions(every_ms=300)


def stage(recognizer, inbox, outbox, *, single=False, drafts=None, drafter=None, load=None, live=False, reading=False):
    stats = PipelineStats(clock=lambda: 0.0)  # a machine that needs no time for a draft
    final = FinalRecognition(recognizer, stats)
    layer = LiveDrafts(final, drafter or recognizer, drafts, Context(8_000, 2_000), stats.clock) if drafts else None
    return AsrStage(inbox, outbox, Groups(single=single), final, layer, load, lambda: live, lambda: reading)


def run(recognizer, items, **options):
    """A recording."""
    return through(lambda *queues: stage(recognizer, *queues, **options), *items)


def run_live(recognizer, items, *, live=True, **options):
    """Hand over each item when the stage has dealt with the one before. Returns what it puts out, and the stage's counters."""

    async def work():
        inbox, outbox = WatchedQueue(), asyncio.Queue()
        one = stage(recognizer, inbox, outbox, live=live, **options)
        task = asyncio.create_task(one.run())
        for item in items:
            inbox.put_nowait(item)
            inbox.idle.clear()
            waiting = asyncio.create_task(inbox.idle.wait())
            await asyncio.wait({task, waiting}, return_when="FIRST_COMPLETED")
            waiting.cancel()
        inbox.put_nowait(EndOfInput(20.0))
        await task
        return [outbox.get_nowait() for _ in range(outbox.qsize())], one.stats

    return asyncio.run(work())


def growing(segment, step_s=0.3):
    """The segment as it is heard, then in the pause after it."""
    step = round(step_s * SAMPLE_RATE)
    found = []
    for length in range(step, len(segment.samples), step):
        end = segment.start_sample + length
        part = replace(segment, samples=segment.samples[:length], speech_end_sample=end, heard_sample=end)
        found.append(SegmentSoFar(part, pausing=False))
    return [*found, SegmentSoFar(segment)]


def grown(segments):
    return [item for segment in segments for item in (*growing(segment), segment)]


def order(items):
    return [item.segment_id if isinstance(item, Transcript) else item for item in items]


def finals(items):
    return [item for item in items if isinstance(item, Transcript)]


def so_far(items):
    return [item.transcripts for item in items if isinstance(item, TranscriptSoFar)]


@pytest.fixture(scope="module")
def segments():
    return cut(read_wav(PHRASES), 1600)[:3]


def test_the_segments_of_a_group_are_recognised_together_and_pauses_keep_their_place():
    recognizer, pause = Scripted(), Pause(8.0, 1.0)
    items = [LONG_PAUSE, speech(0, 6, 7, cut=True), speech(1, 7, 8), pause, speech(2, 11, 12)]
    found = run(recognizer, items)
    assert recognizer.calls == [[0, 1], [2]]
    assert order(found) == [LONG_PAUSE, 0, 1, pause, 2, EndOfInput(20.0)]


class AtOnce(Scripted):
    """A recogniser that takes several groups."""

    def __init__(self, failing=()):
        super().__init__(failing=failing)
        self.groups = []

    def transcribe_batch(self, groups, options):
        self.groups.append([[segment.id for segment in group] for group in groups])
        return [self.transcribe(group, options) for group in groups]


def test_of_a_recording_four_groups_are_recognised_at_once_and_live_each_alone():
    ten = [speech(number, 4 * number, 4 * number + 1) for number in range(10)]
    both = AtOnce()
    assert order(run(both, ten, single=True)) == [*range(10), EndOfInput(20.0)]
    assert both.groups == [[[0], [1], [2], [3]], [[4], [5], [6], [7]], [[8], [9]]]
    both = AtOnce()
    run_live(both, ten, single=True)
    assert both.groups == [[[number]] for number in range(10)]


def test_while_a_recording_is_read_groups_wait_for_others():
    both = AtOnce()
    run_live(
        both, [speech(number, 4 * number, 4 * number + 1) for number in range(6)], single=True, live=False, reading=True
    )
    assert both.groups == [[[0], [1], [2], [3]], [[4], [5]]]


def test_what_is_not_live_has_no_drafts():
    recognizer, segment = Scripted(), speech(0, 0, 3)
    found, _ = run_live(recognizer, [*growing(segment), segment], live=False, drafts=OFTEN)
    assert (recognizer.drafts, so_far(found)) == ([], [])


def test_speech_is_drafted_after_the_final_text_before_it():
    recognizer, first = Scripted(), speech(0, 0, 2)
    run_live(recognizer, [first, Pause(2.0, 1.0), *growing(speech(1, 3, 4))], drafts=OFTEN)
    assert {context for context, _ in recognizer.drafts} == {"It was the best"}


def test_transcripts_that_are_put_out_are_counted():
    _, stats = run_live(Scripted(failing={0}), [speech(0, 0, 1), speech(1, 2, 4)], single=True)
    assert (stats.rejected, stats.withheld_s) == (1, {"failed": 1.0})


@pytest.mark.parametrize(
    ("closing", "closed_s"),
    [(Pause(2.0, 1.0), 3.0), (EndOfInput(2.5), 2.5), (speech(1, 3.0, 4.0, cut=True, language="zh"), 4.0)],
)
async def test_a_segment_is_late_from_the_close_of_its_group_on(closing, closed_s):
    inbox, outbox, segment = WatchedQueue(), asyncio.Queue(), speech(0, 0, 2, cut=True, language="en")
    one = stage(Scripted(), inbox, outbox)
    task = asyncio.create_task(one.run())
    one.stats.segment_closed(segment)
    for item, late in ((segment, []), (closing, [closed_s])):
        inbox.idle.clear()
        inbox.put_nowait(item)
        idle = asyncio.create_task(inbox.idle.wait())
        await asyncio.wait({task, idle}, return_when="FIRST_COMPLETED")
        assert [each.end_s for each in one.stats._pending.values()] == late
    inbox.put_nowait(EndOfInput(9.0))
    await task


def test_a_group_that_was_recognised_in_its_pause_is_not_recognised_again():
    recognizer, segment = Scripted(), speech(0, 0, 3)
    found, stats = run_live(recognizer, [*growing(segment), segment, Pause(3.0, 1.0)], drafts=OFTEN)
    assert recognizer.calls == [[0]]
    assert so_far(found)[-1][0].text == finals(found)[0].text
    assert stats.drafts == len(recognizer.drafts) > 2


def test_in_a_pause_the_group_is_recognised_however_little_was_said_since_the_last_draft():
    recognizer, said, more = Scripted(), speech(0, 0, 1.0), speech(0, 0, 1.1)
    run_live(recognizer, [SegmentSoFar(said, pausing=False), SegmentSoFar(more, pausing=False)], drafts=OFTEN)
    assert (len(recognizer.drafts), recognizer.calls) == (1, [])
    run_live(recognizer, [SegmentSoFar(said, pausing=False), SegmentSoFar(more)], drafts=OFTEN)
    assert (len(recognizer.drafts), recognizer.calls) == (2, [[0]])


def test_a_segment_without_drafts_while_behind_is_counted_if_it_is_long_enough():
    load = LoadControl(OverloadOptions())
    load.observe(6.0)
    recognizer = Scripted()
    items = grown([speech(0, 0.0, 0.7), speech(1, 10.0, 10.8), speech(2, 20.0, 22.0)])
    _, stats = run_live(recognizer, items, drafts=DraftOptions(first_ms=800), load=load)
    assert (stats.undrafted, recognizer.drafts) == (2, [])


class Refusing(Scripted):
    """A recogniser that others need more whenever a draft is asked for the first time."""

    def __init__(self):
        super().__init__()
        self.refused = 0

    def draft(self, segment, options):
        if self.refused == len(self.drafts):
            self.refused += 1
            raise DraftRefusedError
        return super().draft(segment, options)


class Deaf(Scripted):
    def draft(self, segment, options):
        raise OSError("connection refused")


@pytest.mark.parametrize(("make", "shown"), [(Refusing, True), (Deaf, False)])
def test_a_draft_that_is_refused_or_fails_costs_nothing(make, shown):
    segment = speech(0, 0, 3)
    found, stats = run_live(make(), [*growing(segment), segment], drafts=OFTEN)
    assert any(one.end_s < 3 for (one,) in so_far(found)) == shown
    assert finals(found) == finals(run(Scripted(), [segment]))
    assert stats.failures == {}


@st.composite
def streams(draw):
    """Segments in progress and ended, and the pauses after them, as the VAD puts them out."""
    items, at_s = [], 0.0
    for number in range(draw(st.integers(1, 8))):
        end_s = at_s + draw(st.integers(2, 60)) / 10
        forced = draw(st.booleans())
        segment = speech(number, at_s, end_s, cut=forced)
        parts = growing(segment, draw(st.sampled_from([0.3, 0.7, 2.0])))
        items += [*(parts[:-1] if forced else parts), segment]
        at_s = end_s
        if not forced:
            length_s = draw(st.integers(2, 25)) / 10
            items += [Pause(end_s, part / 10) for part in (5, 8, 10, 20) if part / 10 <= length_s]
            at_s += length_s
    return items


@settings(max_examples=examples(25))
@given(streams(), st.sets(st.integers(0, 8), max_size=2))
def test_drafts_change_no_transcript(items, failing):
    segments = [item for item in items if not isinstance(item, SegmentSoFar)]
    plain = run(AtOnce(failing), segments)  # several groups at once, if none of their segments fails
    drafted, _ = run_live(Scripted(failing=failing), items, drafts=OFTEN)
    other, _ = run_live(Scripted(failing=failing), items, drafts=OFTEN, drafter=Scripted(said=("uh", "oh")))
    assert [item for item in drafted if not isinstance(item, TranscriptSoFar)] == plain
    assert [item for item in other if not isinstance(item, TranscriptSoFar)] == plain
    assert len(finals(plain)) == sum(isinstance(item, SpeechSegment) for item in items)


@pytest.mark.slow
def test_words_come_while_their_group_is_open(demo_models, segments):
    recognizer = demo_models.recognizer
    found, _ = run_live(recognizer, grown(segments), drafts=OFTEN)
    assert finals(found) == finals(run(recognizer, segments))
    early = [one for each in so_far(found) for one in each if one.words]
    assert len(early) >= 6
    assert any(one.steady_words for one in early)
    last = so_far(found)[-1][-1]
    assert letters(last.text) == letters(finals(found)[-1].text)


@pytest.mark.slow
def test_drafts_of_silence_and_noise_show_nothing(demo_models):
    noise = (np.random.default_rng(0).standard_normal(4 * SAMPLE_RATE) * 1_000).astype(np.int16)
    for samples in (np.zeros(4 * SAMPLE_RATE, np.int16), noise):
        segment = SpeechSegment(0, 0, samples, speech_end_sample=len(samples), heard_sample=len(samples))
        found, _ = run_live(demo_models.recognizer, [*growing(segment), segment], drafts=DraftOptions())
        assert not any(one.text for each in so_far(found) for one in each if one.rejected is None)
        assert finals(found)[0].rejected is not None


@pytest.mark.parametrize("live", [False, True])
def test_a_sound_follows_the_group_that_was_open_when_it_came(live):
    """In a live run, a group that is long enough closes before the next segment has ended."""
    first, second = speech(0, 0, 10, cut=True), speech(1, 10, 20)
    sounds = [SoundEvent("music", start_s, start_s + 3, start_s + 5) for start_s in (6, 12, 21)]
    between = growing(second) if live else []
    found, _ = run_live(
        Scripted(), [first, sounds[0], *between, second, sounds[1], Pause(20.0, 2.0), sounds[2]], live=live
    )
    pause = Pause(20.0, 2.0)
    assert order(found)[:-1] == [0, sounds[0], 1, sounds[1], pause, sounds[2]]
    assert order(run(Scripted(), [sounds[0], first, sounds[1]]))[:-1] == [sounds[0], 0, sounds[1]]
