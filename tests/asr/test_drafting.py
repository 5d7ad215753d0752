"""The segment in progress, with a recogniser whose answers are given: what is left over and what is withheld."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline.asr.context import Context, Heard
from pipeline.asr.drafting import Drafting
from pipeline.asr.recognizer import DEFAULT, RecognitionOptions
from pipeline.asr.stage import AsrStage
from pipeline.errors import ModelError
from pipeline.events import SAMPLE_RATE, EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript, Word
from pipeline.run.options import DraftOptions
from pipeline.run.overload import LoadControl, OverloadOptions
from pipeline.run.stats import PipelineStats
from tests.chain import through

SAID = ["It", "was", "the", "best", "of", "times"]


def speech(number, start_s, end_s, *, cut=False):
    start, end = round(start_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE)
    return SpeechSegment(number, start, np.zeros(end - start, np.int16), cut, end, end)


class Scripted:
    """Hears ``SAID``, a word each half second from the start, in whatever part of it; ``withheld`` rejects what follows."""

    said: Sequence[str] = SAID
    marks: str | None = None
    """Heard before what follows the context."""

    def __init__(self, withheld=None):
        self.withheld = withheld
        self.whole = 0
        """Segments recognised as a whole."""
        self.drafts = []
        """What each draft was heard after, and what was heard."""

    def _words(self, segment):
        said = (Word(f" {text}", at / 2, at / 2 + 0.5) for at, text in enumerate(self.said))
        return tuple(word for word in said if segment.start_s <= word.start_s and word.end_s <= segment.end_s + 0.3)

    def _transcript(self, segment):
        words = self._words(segment)
        text = "".join(word.text for word in words).strip()
        return Transcript(segment.id, segment.start_s, segment.end_s, text, "en", words=words)

    def draft(self, segment, options):
        found = self._transcript(segment)
        self.drafts.append((" ".join(each.text for each in options.context), found.text))
        return found

    def transcribe(self, segments, options):
        if options.context:
            return [replace(self._transcript(segments[0]), rejected=self.withheld, previous_end=self.marks)]
        self.whole += len(segments)
        return [self._transcript(segment) for segment in segments]


class Smaller(Scripted):
    """Hears a word wrong."""

    said = ("It", "was", "the", "vest", "of", "times")


def drafting(recognizer, end_s=3.0):
    """With the words committed that end 0.4 s before ``end_s``."""
    found = Drafting(recognizer, recognizer, DraftOptions(), lambda: 0.0)
    for _ in range(2):
        found.draft(speech(0, 0.0, end_s), DEFAULT)
    return found


def run(recognizer, items, drafter=None, so_far=None):
    """What the stage puts out, without a ``TranscriptSoFar`` for each ``SegmentSoFar``, which is added to ``so_far``."""

    async def work():
        inbox, outbox, stats = asyncio.Queue(), asyncio.Queue(), PipelineStats(clock=lambda: 0.0)
        options = {"context": Context(8_000, 2_000), "drafts": DraftOptions(), "drafter": drafter}
        task = asyncio.create_task(AsrStage(recognizer, inbox, outbox, stats, **options).run())
        for item in (*items, EndOfInput(9.0)):
            inbox.put_nowait(item)
            while not inbox.empty():
                await asyncio.sleep(0)
            if isinstance(item, SegmentSoFar):
                shown = await outbox.get()
                if so_far is not None:
                    so_far.append(shown)
        await task
        found = [outbox.get_nowait() for _ in range(outbox.qsize())]
        assert sum(isinstance(each, Transcript) and each.rejected is not None for each in found) == stats.rejected
        return found

    return asyncio.run(work())


def growing(*ends_s):
    return [SegmentSoFar(speech(0, 0.0, end_s), pausing=False) for end_s in ends_s]


def test_the_rest_of_a_segment_is_recognised_after_its_committed_words():
    recognizer = Scripted()
    found = drafting(recognizer, 2.5).recognised(speech(0, 0.0, 3.0), DEFAULT)
    assert (found.text, found.committed_words, recognizer.whole) == (" ".join(SAID), 4, 0)


def test_what_follows_words_that_are_not_heard_again_is_heard_by_itself():
    class Deaf(Scripted):
        """Hears nothing after a context with the first word."""

        def draft(self, segment, options):
            found = super().draft(segment, options)
            return None if any(SAID[0] in each.text for each in options.context) else found

    recognizer = Deaf()
    found = drafting(recognizer, 1.0)
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.5, 1.8, 2.0, 2.5, 3.0)]
    assert [context for context, _ in recognizer.drafts] == ["", "", "It", "It", "", "was", "was the best"]
    assert [None if each is None else each.transcript.text for each in shown] == [
        None, None, "It was the best", "It was the best of", "It was the best of times",
    ]  # fmt: skip


def test_words_that_a_smaller_model_does_not_hear_again_are_context_of_the_bigger_one():
    class Deaf(Smaller):
        def draft(self, segment, options):
            return None if options.context else super().draft(segment, options)

    class Bigger(Scripted):
        def transcribe(self, segments, options):
            contexts.append(" ".join(each.text for each in options.context))
            return super().transcribe(segments, options)

    contexts, bigger = [], Bigger()
    found = Drafting(bigger, Deaf(), DraftOptions(), lambda: 0.0, commits=False)
    found.draft(speech(0, 0.0, 1.0), DEFAULT)
    found.pushed(speech(0, 0.0, 1.5), bigger.transcribe([speech(0, 0.0, 1.5)], DEFAULT)[0])
    assert [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (2.0, 2.3, 2.6)] == [None, None, None]
    assert found.recognised(speech(0, 0.0, 3.0), DEFAULT).text == " ".join(SAID)
    assert contexts == ["", "It was"]


def test_words_carried_over_a_cut_begin_the_next_segment():
    found = drafting(Scripted())
    cut = found.cut(speech(0, 0.0, 1.2, cut=True))
    assert (cut.text, cut.committed_words) == ("It was", 2)
    following = speech(1, 1.2, 3.0)
    assert found.left_over(following) is None
    assert found.committed_in(following)
    assert found.recognised(following, DEFAULT).text == "the best of times"


@pytest.mark.parametrize("following", [None, speech(1, 60.0, 61.0)])
def test_words_carried_over_a_cut_are_complete_if_no_speech_follows_there(following):
    found = drafting(Scripted())
    found.cut(speech(0, 0.0, 1.2, cut=True))
    left = found.left_over(following)
    assert (left.segment_id, left.text, left.committed_words) == (1, "the best of", 3)
    assert found.left_over(following) is None
    assert not found.committed_in(speech(1, 60.0, 61.0))


@pytest.mark.parametrize("after", [[], [Pause(1.2, 1.8)], [speech(1, 60.0, 61.0)]])
def test_the_stage_puts_out_what_is_left_over(after):
    found = run(Scripted(), [*growing(2.0, 3.0), speech(0, 0.0, 1.2, cut=True), *after])
    texts = [each.text for each in found if isinstance(each, Transcript)]
    assert texts[:2] == ["It was", "the best"]


def test_the_withheld_rest_of_a_segment_is_said():
    found = run(Scripted("uncertain"), [*growing(2.0, 2.5), speech(0, 0.0, 3.0)])
    shown, withheld, _ = found
    assert (shown.text, shown.rejected) == ("It was the best"[: len(shown.text)], None)
    assert (withheld.rejected, withheld.end_s) == ("uncertain", 3.0)
    assert withheld.start_s >= shown.words[-1].end_s


def test_the_final_transcript_begins_with_the_committed_words():
    class Comma(Scripted):
        """Hears a comma in drafts only."""

        def draft(self, segment, options):
            found = super().draft(segment, options)
            words = tuple(replace(word, text=word.text.replace("was", "Was,")) for word in found.words)
            return replace(found, text="".join(word.text for word in words).strip(), words=words)

    pausing = SegmentSoFar(speech(0, 0.0, 2.5))
    so_far = []
    found = run(Comma(), [*growing(1.9), pausing, pausing.segment], so_far=so_far)
    shown, final = so_far[-1], found[0]
    committed = shown.transcript.words[: shown.transcript.committed_words]
    assert "".join(word.text for word in committed).startswith(" It Was, the")
    assert final.words[: final.committed_words] == committed
    assert final.text == "It Was, the best of times"[: len(final.text)]
    assert len(final.words) > 3


class Failing(Scripted):
    """Fails to recognise segments together, and the segments ``numbers``."""

    def __init__(self, *numbers, error=None):
        super().__init__()
        self.numbers, self.error = numbers, error or OSError("connection refused")

    def transcribe(self, segments, options):
        if len(segments) > 1 or segments[0].id in self.numbers:
            raise self.error
        return super().transcribe(segments, options)


def joined(recognizer, count):
    """The transcripts of segments of a recording that are recognised together, unless that fails."""
    stats = PipelineStats()
    *found, end = through(
        lambda *queues: AsrStage(recognizer, *queues, stats, join_ms=lambda: 19_000),
        *(speech(number, 2.0 * number, 2.0 * number + 1) for number in range(count)),
    )
    assert end == EndOfInput(20.0)
    return found, stats


def test_a_failed_call_costs_one_segment(caplog):
    found, stats = joined(Failing(1, 2), 4)
    assert [each.rejected for each in found] == [None, "failed", "failed", None]
    assert [(each.start_s, each.end_s, each.text) for each in found[1:3]] == [(2.0, 3.0, ""), (4.0, 5.0, "")]
    assert [each.reason for each in stats.withheld] == ["failed", "failed"]
    assert stats.failures == {"ASR": "connection refused"}
    assert "failed 0:00:02–0:00:03" in stats.summary()
    assert [record.getMessage() for record in caplog.records] == [
        "the speech from 2.0 to 3.0 s is not recognised: connection refused",
        "the speech from 4.0 to 5.0 s is not recognised: connection refused",
    ]


def test_calls_that_fail_in_a_row_or_for_good_end_the_stage():
    with pytest.raises(OSError, match="connection refused"):
        joined(Failing(1, 2, 3), 5)
    with pytest.raises(ModelError, match="damaged"):
        joined(Failing(3, error=ModelError("damaged")), 5)


def test_a_failed_call_keeps_the_words_committed_before():
    found = run(Failing(0), [*growing(2.0, 2.5), speech(0, 0.0, 3.0)])
    shown, failed, _ = found
    assert (shown.text, shown.rejected) == ("It was the best", None)
    assert (failed.rejected, failed.end_s) == ("failed", 3.0)


async def test_a_draft_that_fails_costs_nothing():
    class Deaf(Scripted):
        def draft(self, segment, options):
            super().draft(segment, options)
            raise OSError("connection refused")

    inbox, outbox, recognizer, stats = asyncio.Queue(), asyncio.Queue(), Deaf(), PipelineStats()
    task = asyncio.create_task(AsrStage(recognizer, inbox, outbox, stats, drafts=DraftOptions()).run())
    for number, so_far in enumerate(growing(1.5, 2.0, 2.5, 3.0), 1):
        inbox.put_nowait(so_far)
        while len(recognizer.drafts) < number and not task.done():
            await asyncio.sleep(0)
    for item in (speech(0, 0.0, 3.0), EndOfInput(9.0)):
        inbox.put_nowait(item)
    await task
    final = outbox.get_nowait()
    assert (final.text, final.rejected, stats.failures) == ("It was the best of times", None, {})


def test_a_noise_after_the_committed_words_is_left_out():
    found = run(Scripted("silence"), [*growing(2.0, 2.5), speech(0, 0.0, 3.0)])
    assert [each.rejected for each in found if isinstance(each, Transcript)] == [None]


def test_the_words_of_a_smaller_model_are_never_committed():
    bigger, smaller = Scripted(), Smaller()
    found = Drafting(bigger, smaller, DraftOptions(), lambda: 0.0, commits=False)
    for end_s in (2.0, 2.5, 3.0):
        so_far = found.draft(speech(0, 0.0, end_s), DEFAULT)
        assert so_far.transcript.committed_words == 0
        assert not found.committed_in(speech(0, 0.0, end_s))
    assert so_far.transcript.text == "It was the vest of times"
    assert smaller.drafts[-1] == ("It was the vest", "of times")  # later drafts go on from earlier ones
    assert bigger.drafts == []
    shown = found.pushed(speech(0, 0.0, 3.0), bigger.transcribe([speech(0, 0.0, 3.0)], DEFAULT)[0])
    assert (shown.transcript.text, shown.transcript.committed_words) == ("It was the best of times", 5)
    found.draft(speech(0, 0.0, 3.0), DEFAULT)
    assert smaller.drafts[-1] == ("was the best of", "times")


def test_words_after_those_committed_are_heard_by_the_bigger_model():
    bigger, smaller = Scripted(), Smaller()
    found = Drafting(bigger, smaller, DraftOptions(), lambda: 0.0, commits=False)
    found.pushed(speech(0, 0.0, 1.5), bigger.transcribe([speech(0, 0.0, 1.5)], DEFAULT)[0])
    for end_s in (2.0, 2.5, 3.0):
        found.draft(speech(0, 0.0, end_s), DEFAULT)
    segment = speech(0, 0.0, 3.0)
    assert found.committed_in(segment)
    bigger.marks = ","
    whole = found.finished(segment, found.recognised(segment, DEFAULT))
    assert (whole.text, whole.committed_words) == ("It was, the best of times", 2)


def test_a_smaller_model_changes_no_mark_of_a_committed_word():
    bigger, smaller = Scripted(), Changing("It was the vest of,")
    found = Drafting(bigger, smaller, DraftOptions(), lambda: 0.0, commits=False)
    found.pushed(speech(0, 0.0, 1.5), bigger.transcribe([speech(0, 0.0, 1.5)], DEFAULT)[0])
    shown = found.draft(speech(0, 0.0, 2.5), DEFAULT)
    assert shown.transcript.text == "It was the vest of"
    assert found.recognised(speech(0, 0.0, 3.0), DEFAULT).text == "It was the best of times"


def test_only_segments_long_enough_for_a_draft_count_as_without_drafts():
    load, stats = LoadControl(OverloadOptions()), PipelineStats()
    load.observe(6.0)
    assert load.level == 1
    through(
        lambda *queues: AsrStage(Scripted(), *queues, stats, load, drafts=DraftOptions(first_ms=800)),
        *(speech(0, 0.0, 0.7), speech(1, 10.0, 10.8), speech(2, 20.0, 22.0)),
    )
    assert stats.undrafted == 2


def test_a_segment_without_a_pause_is_recognised_as_without_drafts():
    bigger, smaller = Scripted(), Smaller()
    shown = run(bigger, [*growing(2.0, 2.5, 3.0), speech(0, 0.0, 3.0)], smaller)
    (final, _) = shown
    assert (final.text, final.committed_words) == ("It was the best of times", 0)
    assert (bigger.whole, bigger.drafts, len(smaller.drafts)) == (1, [], 3)


def test_what_was_said_before_is_left_out_once_a_draft_does_not_hear_it():
    class Deaf(Scripted):
        def draft(self, segment, options):
            found = super().draft(segment, options)
            return None if options.context and options.context[0].segment.id != segment.id else found

    recognizer = Deaf()
    found = Drafting(recognizer, recognizer, DraftOptions(), lambda: 0.0)
    context = [Heard(speech(0, 0.0, 1.0), "Once.")]
    heard = [
        found.draft(speech(1, 0.0, end_s), RecognitionOptions(context=context)) is not None for end_s in (0.6, 0.7, 0.8)
    ]
    assert heard == [False, True, True]


class Changing(Scripted):
    """Hears each of ``texts`` once, with the mark that ends it before it."""

    def __init__(self, *texts):
        super().__init__()
        self._texts = list(texts)

    def _transcript(self, segment):
        self.marks, self.said = self._texts[0][-1], self._texts.pop(0)[:-1].split()
        return replace(super()._transcript(segment), previous_end=self.marks)


@pytest.mark.parametrize(
    "texts", [("My brother lives.", "my brother lives,"), ("my brother lives,", "My brother lives.")]
)
@pytest.mark.parametrize("pausing", [False, True])
def test_the_first_word_of_a_segment_is_written_as_heard_with_the_mark_before_it(texts, pausing):
    recognizer = Changing(*texts)
    found = Drafting(recognizer, recognizer, DraftOptions(), lambda: 0.0)
    segment = speech(0, 0.0, 3.0)
    found.draft(segment, DEFAULT)
    so_far = (
        found.pushed(segment, recognizer.transcribe([segment], DEFAULT)[0])
        if pausing
        else found.draft(segment, DEFAULT)
    )
    transcript = so_far.transcript
    assert transcript.committed_words == 3
    assert f"{transcript.text}{transcript.previous_end}" == texts[1]
