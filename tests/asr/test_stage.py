"""The ASR stage: which audio is recognised together, and pauses between transcripts."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pipeline.asr.context import Context
from pipeline.asr.options import AsrConfig
from pipeline.asr.recognizer import BatchRecognizer, DraftRecognizer, DraftRefusedError, RecognitionOptions
from pipeline.asr.stage import AsrStage
from pipeline.asr.terms import HeardTerms
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.events import SAMPLE_RATE, EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript, TranscriptSoFar
from pipeline.glossary.terms import Glossary, Term
from pipeline.languages.marks import letters
from pipeline.run.options import DraftOptions, GlossaryOptions
from pipeline.run.overload import LoadControl, OverloadOptions
from pipeline.run.stats import PipelineStats
from tests.chain import through
from tests.conftest import PHRASES, read_wav
from tests.vad.test_stage import cut

PAUSE, LONGER = Pause(5.0, 1.0), Pause(5.0, 2.0)
MARKER = Pause(0.0, 0.1)


class Watched:
    """A recogniser that notes which segments are recognised together: (those before, the segments)."""

    def __init__(self, recognizer):
        self._recognizer = recognizer
        self.calls = []
        self.drafts = []
        """Where the audio of each draft ended, in samples."""

    def transcribe(self, segments, options):
        self.calls.append(([each.segment.id for each in options.context], [segment.id for segment in segments]))
        return self._recognizer.transcribe(segments, options)

    def draft(self, segment, options):
        assert isinstance(self._recognizer, DraftRecognizer)
        self.drafts.append(segment.start_sample + len(segment.samples))
        return self._recognizer.draft(segment, options)


@pytest.fixture
def recognizer(demo_models):
    return Watched(demo_models.recognizer)


@pytest.fixture(scope="module")
def segments():
    return cut(read_wav(PHRASES), 1600)[:3]


def run(recognizer, items, **options):
    return through(lambda *queues: AsrStage(recognizer, *queues, **options), *items)


def order(items):
    return [item.segment_id if isinstance(item, Transcript) else item for item in items]


def test_a_segment_is_recognised_after_those_before_it(recognizer, segments):
    found = run(recognizer, segments, context=Context(8_000, 2_000))
    assert recognizer.calls == [([], [0]), ([0], [1]), ([0, 1], [2])]
    assert order(found) == [0, 1, 2, EndOfInput(20.0)]
    assert [item.previous_end for item in found if isinstance(item, Transcript)] == [None, ".", "?"]


def test_without_context_a_segment_is_recognised_alone(recognizer, segments):
    run(recognizer, segments[:2])
    run(recognizer, segments[:2], context=Context(0, 2_000))
    assert recognizer.calls == [([], [0]), ([], [1])] * 2


def test_a_stage_that_is_behind_does_without_context(recognizer, segments):
    load = LoadControl(OverloadOptions(join_ms=0))
    load.observe(1e9)
    assert load.level > 0
    run(recognizer, segments[:2], context=Context(8_000, 2_000), load=load)
    assert recognizer.calls == [([], [0]), ([], [1])]


def test_joined_segments_need_no_context(recognizer, segments):
    run(recognizer, segments, context=Context(8_000, 2_000), join_ms=lambda: 7_000)
    assert recognizer.calls == [([], [0, 1]), ([], [2])]


class AtOnce(Watched):
    """A recogniser that also notes which groups are recognised at once."""

    def __init__(self, recognizer):
        super().__init__(recognizer)
        self.groups = []

    def transcribe_batch(self, groups, options):
        self.groups.append([[segment.id for segment in group] for group in groups])
        assert isinstance(self._recognizer, BatchRecognizer)
        return self._recognizer.transcribe_batch(groups, options)


def test_several_windows_of_a_recording_are_recognised_at_once(demo_models, segments):
    first, second, third = segments
    both = AtOnce(demo_models.recognizer)
    items = [LONGER, first, SegmentSoFar(second), second, PAUSE, third]
    found = run(both, items, context=Context(8_000, 2_000), join_ms=lambda: 7_000)
    assert (both.groups, both.calls) == ([[[0, 1], [2]]], [])
    assert order(found) == [LONGER, 0, 1, 2, EndOfInput(20.0)]
    with_both = demo_models.recognizer
    assert found[1:4] == [one for each in with_both.transcribe_batch([[first, second], [third]]) for one in each]


@pytest.mark.slow
def test_no_more_than_four_windows_are_recognised_at_once(demo_models, segments):
    ten = [replace(segments[0], id=n, start_sample=n * 100_000, speech_end_sample=None) for n in range(10)]
    both = AtOnce(demo_models.recognizer)
    assert order(run(both, ten, join_ms=lambda: 100)) == [*range(10), EndOfInput(20.0)]
    assert both.groups == [[[0], [1], [2], [3]], [[4], [5], [6], [7]], [[8], [9]]]


def test_a_recording_with_one_window_is_recognised_as_one_of_several(demo_models, segments):
    both = AtOnce(demo_models.recognizer)
    run(both, segments[:2], join_ms=lambda: 7_000)
    assert (both.groups, both.calls) == ([[[0, 1]]], [])


@pytest.mark.slow
def test_windows_that_depend_on_those_before_are_recognised_one_by_one(demo_models, segments):
    both = AtOnce(demo_models.recognizer)
    terms = HeardTerms(lambda: Glossary((Term("Shanghai", None),)), GlossaryOptions())
    run(both, segments, join_ms=lambda: 7_000, terms=terms)
    assert both.calls == [([], [0, 1]), ([], [2])]
    run(both, segments, join_ms=lambda: 7_000, several_languages=True)
    run(both, segments)  # live
    assert both.groups == []


def test_pauses_keep_their_place(recognizer, segments):
    first, second, _ = segments
    found = run(recognizer, [first, PAUSE, LONGER, second, PAUSE], context=Context(8_000, 2_000))
    assert order(found) == [0, PAUSE, LONGER, 1, PAUSE, EndOfInput(20.0)]


def test_a_pause_does_not_keep_segments_from_being_joined(recognizer, segments):
    """Their times show the pause."""
    first, second, _ = segments
    found = run(recognizer, [first, PAUSE, second], join_ms=lambda: 9_000)
    assert recognizer.calls == [([], [0, 1])]
    assert order(found) == [0, 1, EndOfInput(20.0)]


def test_a_pause_after_waiting_segments_is_passed_on(recognizer, segments):
    """Behind, segments that wait are joined; the sentence after the last of them can still end with the pause."""
    load = LoadControl(OverloadOptions(join_ms=9_000))
    while load.level < 2:
        load.observe(1e9)

    async def work():
        inbox, outbox = asyncio.Queue(), asyncio.Queue()
        for item in (*segments[:2], PAUSE, LONGER):
            inbox.put_nowait(item)
        stage = asyncio.create_task(AsrStage(recognizer, inbox, outbox, load=load).run())
        found = [await outbox.get() for _ in range(3)]
        inbox.put_nowait(EndOfInput(20.0))
        await stage
        return order([*found, *(outbox.get_nowait() for _ in range(outbox.qsize()))])

    assert asyncio.run(work()) == [0, 1, LONGER, EndOfInput(20.0)]
    assert recognizer.calls == [([], [0, 1])]


def test_a_segment_that_ends_as_announced_is_recognised_once(recognizer, segments):
    first, second = segments[:2]
    early = replace(first, heard_sample=first.heard_sample - 4_000 if first.heard_sample else None)
    found = run(recognizer, [SegmentSoFar(early), first, second])
    assert recognizer.calls == [([], [0]), ([], [1])]
    assert found == run(recognizer, [first, second])
    assert isinstance(found[0], Transcript)
    assert found[0].heard_s == first.heard_s


def test_a_segment_that_goes_on_is_recognised_again(recognizer, segments):
    first, second = segments[:2]
    early = replace(first, samples=first.samples[:-1_600])
    found = run(recognizer, [SegmentSoFar(early), first, SegmentSoFar(early), second])
    assert recognizer.calls == [([], [0]), ([], [1])]  # the segment itself was there already
    assert found == run(recognizer, [first, second])


def test_segments_that_are_joined_do_not_wait_for_announcements(recognizer, segments):
    items = [segments[0], SegmentSoFar(segments[1]), segments[1], segments[2]]
    run(recognizer, items, join_ms=lambda: 28_000)
    assert recognizer.calls == [([], [0, 1, 2])]


def said(text):
    """The letters of a text; Whisper writes the phrases' number as a word or a digit."""
    return letters(text).replace("seven", "7")


def growing(segment, step_s=0.3):
    """The segment as it is heard, then in the pause after it."""
    step = round(step_s * SAMPLE_RATE)
    found = []
    for length in range(step, len(segment.samples), step):
        end = segment.start_sample + length
        part = replace(segment, samples=segment.samples[:length], speech_end_sample=end, heard_sample=end)
        found.append(SegmentSoFar(part, pausing=False))
    return [*found, SegmentSoFar(segment)]


def run_live(recognizer, items, **options):
    """Hand over each item when the stage has dealt with the one before."""

    async def work():
        inbox, outbox = asyncio.Queue(), asyncio.Queue()
        instant = PipelineStats(clock=lambda: 0.0)  # a machine that needs no time for a draft
        stage = asyncio.create_task(AsrStage(recognizer, inbox, outbox, instant, **options).run())
        found = []
        for item in (*items, EndOfInput(20.0)):
            inbox.put_nowait(item)
            while not inbox.empty():  # until the stage has taken it
                await asyncio.sleep(0)
            if not isinstance(item, EndOfInput):
                inbox.put_nowait(MARKER)
                while found[-1:] != [MARKER] and not stage.done():
                    waiting = asyncio.create_task(outbox.get())
                    await asyncio.wait({stage, waiting}, return_when="FIRST_COMPLETED")
                    if waiting.done():
                        found.append(waiting.result())
                found.pop()
        await stage
        return [*found, *(outbox.get_nowait() for _ in range(outbox.qsize()))]

    return asyncio.run(work())


@pytest.mark.slow
def test_words_come_while_their_segment_is_in_progress(recognizer, segments):
    items = [item for segment in segments for item in (*growing(segment), segment)]
    found = run_live(recognizer, items, context=Context(8_000, 2_000), drafts=DraftOptions(every_ms=300))
    without = run(recognizer, segments, context=Context(8_000, 2_000))
    finals = [item for item in found if isinstance(item, Transcript)]
    assert [said(item.text) for item in finals] == [said(item.text) for item in without if isinstance(item, Transcript)]
    early = 0
    for final in finals:
        committed = []
        for item in found:
            if not isinstance(item, TranscriptSoFar) or item.transcript.segment_id != final.segment_id:
                continue
            words = item.transcript.words
            now = [letters(word.text) for word in words[: item.transcript.committed_words]]
            assert now[: len(committed)] == committed
            assert all(word.end_s <= item.transcript.heard_s - 0.4 for word in words[: len(now)])
            committed = now
            early += item.transcript.end_s < final.end_s and bool(words)
        assert [letters(word.text) for word in final.words[: len(committed)]] == committed
        assert final.committed_words == len(committed) > 0
    assert early >= 2 * len(finals)


@pytest.mark.slow
def test_a_smaller_model_drafts_for_the_one_that_commits(recognizer, segments):
    smaller = Watched(WhisperRecognizer(AsrConfig(model="tiny.en"), "en"))
    segments = segments[:2]
    items = [item for segment in segments for item in (*growing(segment, 0.5), segment)]
    found = run_live(recognizer, items, context=Context(8_000, 2_000), drafts=DraftOptions(), drafter=smaller)
    assert recognizer.drafts == smaller.calls == []
    assert len(smaller.drafts) >= 2 * len(segments)
    without = run(recognizer, segments, context=Context(8_000, 2_000))
    assert [replace(item, committed_words=0) for item in found if isinstance(item, Transcript)] == without[:-1]
    so_far = [item.transcript for item in found if isinstance(item, TranscriptSoFar)]
    ends = {segment.end_s for segment in segments}
    assert all(item.committed_words == 0 for item in so_far if item.end_s not in ends)
    assert any(item.committed_words > 0 for item in so_far)
    assert {item.segment_id for item in so_far if item.end_s not in ends and item.words} == {0, 1}


@pytest.mark.slow
def test_drafts_wait_for_speech_and_are_left_out_while_behind(recognizer, segments):
    first, _, _ = segments
    run_live(recognizer, [*growing(first, 0.1), first], drafts=DraftOptions(first_ms=1_000, every_ms=600))
    ends_s = [(end - first.start_sample) / SAMPLE_RATE for end in recognizer.drafts]
    assert 1.0 <= ends_s[0] <= 1.1
    assert min(after - before for before, after in pairwise(ends_s)) >= 0.59
    recognizer.drafts.clear()
    run_live(recognizer, [*growing(first), first])
    run_live(recognizer, [*growing(first), first], drafts=DraftOptions(enabled=False))
    load = LoadControl(OverloadOptions(join_ms=0))
    load.observe(1e9)
    run_live(recognizer, [*growing(first), first], drafts=DraftOptions(), load=load)
    assert recognizer.drafts == []


class Shared(Watched):
    """A recogniser that others need more whenever a draft is asked for the first time."""

    def __init__(self, recognizer):
        super().__init__(recognizer)
        self.refused = []

    def draft(self, segment, options):
        if len(self.refused) == len(self.drafts):
            self.refused.append(segment.start_sample + len(segment.samples))
            raise DraftRefusedError
        return super().draft(segment, options)


def test_a_refused_draft_is_asked_for_again_with_more_speech(demo_models, segments):
    first, _, _ = segments
    recognizer = Shared(demo_models.recognizer)
    found = run_live(recognizer, [*growing(first, 0.1), first], drafts=DraftOptions(first_ms=1_000, every_ms=600))
    assert len(recognizer.drafts) >= 2
    for refused, made in zip(recognizer.refused, recognizer.drafts, strict=False):
        assert made - refused == SAMPLE_RATE // 10
    drafts = [item for item in found if isinstance(item, TranscriptSoFar) and item.transcript.end_s < first.end_s]
    assert len(drafts) == len(recognizer.drafts)
    (final,) = [item for item in found if isinstance(item, Transcript)]
    assert said(final.text) == said(demo_models.recognizer.transcribe([first])[0].text)


@pytest.mark.slow
def test_drafts_of_silence_and_noise_show_nothing(recognizer):
    noise = (np.random.default_rng(0).standard_normal(4 * SAMPLE_RATE) * 1_000).astype(np.int16)
    for samples in (np.zeros(4 * SAMPLE_RATE, np.int16), noise):
        segment = SpeechSegment(0, 0, samples, speech_end_sample=len(samples), heard_sample=len(samples))
        found = run_live(recognizer, [*growing(segment), segment], drafts=DraftOptions())
        assert [type(item) for item in found] == [Transcript, EndOfInput]
        assert found[0].rejected is not None
    assert len(recognizer.drafts) > 2


@pytest.mark.slow
def test_words_committed_beyond_a_cut_are_in_the_next_segment(recognizer, segments):
    first, _, _ = segments
    at = len(first.samples) // 2
    left = replace(first, samples=first.samples[:at], forced_cut=True, speech_end_sample=first.start_sample + at)
    right = replace(first, id=1, start_sample=first.start_sample + at, samples=first.samples[at:])
    items = [*growing(first)[:-1], left, *growing(right), right]
    found = run_live(recognizer, items, drafts=DraftOptions(every_ms=300))
    (one, two) = [item for item in found if isinstance(item, Transcript)]
    (whole,) = [item for item in run(recognizer, [first]) if isinstance(item, Transcript)]
    assert one.committed_words > 0
    assert two.committed_words > 0
    assert said(one.text + two.text) == said(whole.text)


@pytest.mark.parametrize(("pause_s", "one"), [(0.7, True), (1.2, False)])
def test_a_number_goes_on_over_a_short_pause(recognizer, segments, pause_s, one):
    whole = segments[0]  # "The plane from Tokyo arrives at seven o'clock in the evening."
    heard = recognizer.transcribe([whole], RecognitionOptions())[0].words
    seven = next(word for word in heard if letters(word.text) in ("7", "seven"))
    end = round(seven.end_s * SAMPLE_RATE)
    known = end - whole.start_sample
    ended = replace(whole, samples=whole.samples[:known], speech_end_sample=end, heard_sample=end)
    later = round(pause_s * SAMPLE_RATE)
    rest = replace(
        whole, id=1, start_sample=end + later, samples=whole.samples[known:], speech_start_sample=end + later,
        speech_end_sample=whole.speech_end_sample and whole.speech_end_sample + later, heard_sample=None,
    )  # fmt: skip
    items = [SegmentSoFar(ended), ended, SegmentSoFar(rest), rest]
    found = run_live(recognizer, items, context=Context(8_000, 2_000), max_segment_ms=15_000)
    finals = [item for item in found if isinstance(item, Transcript)]
    assert [item.segment_id for item in finals] == ([1] if one else [0, 1])
    text = said("".join(item.text for item in finals))
    assert text == "theplanefromtokyoarrivesat7oclockintheevening"


def test_a_segment_that_ends_in_a_number_comes_out_before_the_pause_after_it(recognizer, segments):
    third = segments[2]  # "This umbrella costs twelve dollars."
    pause = Pause(third.speech_end_s, 1.0)
    found = run_live(recognizer, [SegmentSoFar(third), third, pause], max_segment_ms=15_000)
    assert order(found) == [third.id, pause, EndOfInput(20.0)]
    ended = run_live(recognizer, [SegmentSoFar(third), third], max_segment_ms=15_000)
    assert order(ended) == [third.id, EndOfInput(20.0)]
    assert len(recognizer.calls) == 2
