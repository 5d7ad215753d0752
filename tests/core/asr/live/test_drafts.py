"""What is shown of the open group."""

from dataclasses import replace

import numpy as np

from pipeline.core.asr.context import Context
from pipeline.core.asr.final import FinalRecognition
from pipeline.core.asr.live.drafts import LiveDrafts
from pipeline.core.run.options import DraftOptions
from pipeline.events import SAMPLE_RATE, Word
from tests.core.asr import test_language_segmenter as spoken
from tests.core.asr.scripted import Scripted, speech

FIRST, SECOND = speech(0, 0.0, 2.0), speech(1, 2.5, 4.5)


OPTIONS = DraftOptions(first_ms=750, every_ms=250, steady_from_ms=0)


def drafts(recognizer, drafter=None, *, several_languages=False):
    final = FinalRecognition(recognizer, several_languages=several_languages)
    return LiveDrafts(final, drafter or recognizer, OPTIONS, Context(8_000, 2_000), lambda: 0.0)


def texts(found):
    return [each.text for each in found.transcripts]


def test_all_segments_of_the_open_group_are_shown():
    recognizer = Scripted()
    found = drafts(recognizer)
    assert texts(found.ended((FIRST,))) == ["It was the best"]
    shown = found.look((FIRST,), speech(1, 2.5, 3.5), pausing=False)
    assert texts(shown) == ["It was the best", "times It"]
    assert [each.steady_words for each in shown.transcripts] == [4, 0]
    assert recognizer.drafts == [("It was the best", "times It")]


def test_a_segment_after_a_silence_is_drafted_no_more_often_than_others():
    """Its samples begin with the silence. A segment in progress comes with every chunk of 0.1 s."""
    for silence_s in (0.0, 1.0):
        found, drafted = drafts(Scripted()), []
        for chunks in range(1, 21):
            segment = speech(1, 2.5, 2.5 + silence_s + chunks / 10)
            segment = replace(segment, speech_start_sample=round((2.5 + silence_s) * SAMPLE_RATE))
            assert found.missed(segment) == (chunks > 7 and not drafted)
            if found.due(segment):
                found.look((), segment, pausing=False)
                drafted.append(chunks)
        assert drafted == [8, 11, 14, 17, 20]


def test_nothing_is_steady_after_a_segment_that_was_not_heard_to_its_end():
    third, fourth = speech(2, 5.0, 7.0), speech(3, 7.5, 8.5)
    found = drafts(Scripted())
    found.look((), speech(0, 0.0, 1.5), pausing=False)
    assert [each.steady_words for each in found.look((), FIRST, pausing=False).transcripts] == [3]
    found.look((FIRST,), SECOND, pausing=False)
    shown = found.look((FIRST, SECOND), third, pausing=False)
    assert texts(shown) == ["It was the best", "times It was the", "of times It was"]
    assert [each.steady_words for each in shown.transcripts] == [3, 0, 0]
    shown = found.look((FIRST, SECOND, third), fourth, pausing=True)
    assert [each.steady_words for each in shown.transcripts][:3] == [4, 4, 4]


def test_later_speech_is_not_shown_while_earlier_speech_has_no_text():
    found = drafts(Scripted())
    found.look((), FIRST, pausing=False)
    shown = found.look((FIRST, SECOND), speech(2, 5.0, 6.5), pausing=False)  # there was no time for the second
    assert texts(shown) == ["It was the best"]


def test_later_speech_is_not_shown_while_no_word_of_earlier_speech_is_shown():
    found = drafts(Scripted())
    found.look((), FIRST, pausing=False)
    found._heard[FIRST.start_sample] = replace(found._heard[FIRST.start_sample], text="", words=())
    assert texts(found.look((FIRST,), SECOND, pausing=False)) == []


def test_the_text_of_a_pause_is_that_of_the_group_if_it_closes_as_it_was():
    recognizer = Scripted()
    found = drafts(recognizer)
    shown = found.look((FIRST,), SECOND, pausing=True)
    assert recognizer.calls == [[0, 1]]
    assert found.ended((FIRST, SECOND)) is None
    later = replace(SECOND, heard_sample=5 * SAMPLE_RATE)
    prepared = found.prepared((FIRST, later))
    assert [each.text for each in prepared] == texts(shown)
    assert [(each.heard_s, each.steady_words) for each in prepared] == [(2.0, 0), (5.0, 0)]
    louder = replace(SECOND, samples=np.ones_like(SECOND.samples))
    for group in [(FIRST,), (SECOND,), (FIRST, speech(1, 2.5, 4.6)), (FIRST, louder)]:
        assert found.prepared(group) is None


class InDoubt(Scripted):
    """Several at once: a brief search hears every word otherwise, and is not sure of it."""

    def __init__(self, rejected=None):
        super().__init__()
        self.rejected = rejected

    def transcribe_batch(self, groups, options):
        found = [self.transcribe(group, options) for group in groups]
        if not options.brief:
            return found
        otherwise = tuple(Word(f" {said}?", at / 2, at / 2 + 0.5) for at, said in enumerate("It was a worst".split()))
        changes = {"words": otherwise, "text": "It was a worst", "provisional": True, "rejected": self.rejected}
        return [[replace(each, **changes) for each in group] for group in found]


def test_a_group_that_was_heard_briefly_and_in_doubt_is_heard_again_when_it_closes():
    recognizer = InDoubt()
    found = drafts(recognizer)
    shown = found.look((), FIRST, pausing=True)
    assert texts(shown) == ["It was a worst"]
    assert found.ended((FIRST,)) is None
    assert recognizer.calls == [[0]]  # the end brings nothing new
    assert found.prepared((FIRST,)) is None
    (final,) = found._final.recognised([(FIRST,)])
    assert [each.text for each in final] == ["It was the best"]


def test_what_was_heard_briefly_and_in_doubt_is_shown_and_no_more_steady_than_before():
    found = drafts(InDoubt())
    found.look((), speech(0, 0.0, 1.5), pausing=False)
    (drafted,) = found.look((), FIRST, pausing=False).transcripts
    assert (drafted.text, drafted.steady_words) == ("It was the best", 3)
    (shown,) = found.look((), FIRST, pausing=True).transcripts
    assert (shown.text, shown.steady_words) == ("It was a worst", 2)
    again = found.look((FIRST,), SECOND, pausing=False)
    assert [each.steady_words for each in again.transcripts] == [2, 0]


def test_drafts_stay_where_a_brief_search_is_rejected_and_later_speech_is_shown_after_nothing():
    found = drafts(InDoubt(rejected="repetition"))
    found.look((), speech(0, 0.0, 1.5), pausing=False)
    (shown,) = found.look((), FIRST, pausing=True).transcripts
    assert (shown.text, shown.rejected) == ("It was the", None)
    assert texts(found.look((), speech(0, 0.0, 2.5), pausing=False)) == ["It was the best of"]
    found = drafts(InDoubt(rejected="repetition"))
    found.ended((FIRST,))  # of which there was no draft
    assert [each.rejected for each in found.look((FIRST,), SECOND, pausing=False).transcripts] == ["repetition", None]


def test_a_group_is_in_doubt_if_what_is_heard_before_it_is():
    class Before(Scripted):
        """Is not sure of the first segment."""

        def transcribe_batch(self, groups, options):
            found = [self.transcribe(group, options) for group in groups]
            return [
                [replace(one, provisional=options.brief and one.segment_id == 0) for one in group] for group in found
            ]

    found = drafts(Before())
    found._final.recognised([(FIRST,)])
    near = speech(1, 2.1, 3.0)
    found.look((), near, pausing=True)
    assert found._final.recognizer.calls[-1] == [0, 1]
    assert found.prepared((near,)) is None


def test_of_several_pauses_the_text_is_that_of_the_last():
    recognizer = Scripted()
    found = drafts(recognizer)
    found.look((), FIRST, pausing=True)
    found.look((FIRST,), SECOND, pausing=True)
    assert len(found.prepared((FIRST, SECOND))) == 2
    assert found.prepared((FIRST,)) is None


def test_words_after_a_cut_are_shown_in_the_next_segment():
    recognizer = Scripted()
    found = drafts(recognizer)
    found.look((), speech(0, 0.0, 2.0), pausing=False)
    cut = speech(0, 0.0, 1.2, cut=True)
    shown = found.look((cut,), speech(1, 1.2, 2.5), pausing=False)
    assert [each.end_s for each in shown.transcripts] == [1.2, 2.5]
    assert texts(shown) == ["It was", "best of"] or texts(shown) == ["It was", "the best of"]


def test_words_after_a_cut_stay_until_they_are_heard_again():
    found = drafts(Scripted())
    for _ in range(2):  # so that they are steady
        assert texts(found.look((), speech(0, 0.0, 2.5), pausing=False)) == ["It was the best of"]
    shown = found.ended((speech(0, 0.0, 1.2, cut=True),))
    assert texts(shown) == ["It was the", "best of"]
    assert [(each.start_s, each.steady_words) for each in shown.transcripts] == [(0.0, 1), (1.2, 0)]


def test_words_after_a_segment_that_ends_in_a_pause_are_not_carried_over():
    found = drafts(Scripted())
    found.look((), speech(0, 0.0, 2.5), pausing=False)
    assert texts(found.ended((speech(0, 0.0, 1.2),))) == ["It was the"]


def test_words_are_not_carried_over_a_cut_if_the_text_before_it_was_heard_otherwise():
    found = drafts(Scripted(), Scripted(said=("Some", "other", "words", "altogether", "were", "said")))
    found.look((), speech(0, 0.0, 2.5), pausing=False)
    assert texts(found.ended((speech(0, 0.0, 1.2, cut=True),))) == ["It was the"]


def test_nothing_is_kept_of_what_was_heard_before_the_end_of_a_closed_group():
    recognizer, cut, later = Scripted(), speech(0, 0.0, 1.2, cut=True), speech(1, 2.5, 4.5)
    found = drafts(recognizer)
    found.look((), speech(0, 0.0, 2.5), pausing=False)
    found.ended((cut,))  # with words that no segment begins with
    found.look((cut,), later, pausing=True)
    found.closed((cut, later), recognizer.transcribe([cut, later], None))
    assert found._heard == {}


def test_silence_before_the_speech_of_a_closed_group_is_no_context():
    class Noting(Scripted):
        def draft(self, segment, options):
            assert [each.segment.start_s for each in options.context] == [0.5]
            return super().draft(segment, options)

    recognizer, filled = Noting(), replace(FIRST, speech_start_sample=SAMPLE_RATE // 2)
    found = drafts(recognizer)
    found.closed((filled,), recognizer.transcribe([filled], None))
    assert found.look((), speech(1, 2.5, 3.5), pausing=False) is not None


class Multilingual(Scripted):
    def __init__(self):
        super().__init__()
        self.detect = spoken.Detector()


def test_a_part_in_another_language_is_heard_whole_and_forgotten_with_its_segment():
    recognizer = Multilingual()
    found = drafts(recognizer, several_languages=True)
    both = spoken.segment(spoken.speech((spoken.ENGLISH, 1.0), (spoken.CHINESE, 2.0)))
    assert len(found.look((), both, pausing=False).transcripts) == 2
    assert recognizer.calls == [[both.id]]
    assert len(found.look((), speech(4, 5.0, 6.0), pausing=False).transcripts) == 1


def test_speech_that_may_be_in_another_language_is_not_drafted():
    found = drafts(Multilingual(), several_languages=True)
    short = spoken.segment(spoken.speech((spoken.ENGLISH, 1.0), (spoken.UNSURE, 0.6)))
    assert found.look((), short, pausing=False) is None
    longer = spoken.segment(spoken.speech((spoken.ENGLISH, 1.0), (spoken.UNSURE, 1.6)))
    assert found.look((), longer, pausing=False) is not None


def test_what_was_heard_in_a_closed_group_is_context_and_not_shown():
    recognizer = Scripted()
    found = drafts(recognizer)
    found.ended((FIRST,))
    found.closed((FIRST,), recognizer.transcribe([FIRST], None))
    assert texts(found.look((), speech(1, 2.5, 3.5), pausing=False)) == ["times It"]
    assert recognizer.drafts == [("It was the best", "times It")]


def test_a_pause_whose_recognition_fails_shows_nothing():
    recognizer = Scripted(failing={0})
    found = drafts(recognizer)
    assert found.look((), FIRST, pausing=True) is None
    assert found.ended((FIRST,)) is None
    assert found.prepared((FIRST,)) is None
    assert texts(found.look((FIRST,), SECOND, pausing=False)) == []
