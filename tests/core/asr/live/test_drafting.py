"""The segment in progress, with a recogniser whose answers are given."""

from dataclasses import replace

import pytest

from pipeline.core.asr.context import HeardSegment
from pipeline.core.asr.live.drafting import Drafting
from pipeline.core.asr.recognizer import DEFAULT, PartialText, RecognitionOptions, by_segment
from pipeline.core.run.options import DraftOptions
from pipeline.errors import PipelineError
from pipeline.events import MissingSpeech, Transcript, Word
from tests.core.asr.scripted import SAID, Scripted, speech


def drafting(recognizer):
    return Drafting(recognizer, DraftOptions(steady_from_ms=0), lambda: 0.0)


def test_what_follows_steady_words_is_heard_after_them():
    recognizer = Scripted()
    found = drafting(recognizer)
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.0, 1.5, 2.5)]
    assert recognizer.drafts == [("", "It was"), ("", "It was the"), ("It was", "the best of")]
    assert [each.text for each in shown] == ["It was", "It was the", "It was the best of"]
    assert [each.steady_words for each in shown] == [0, 2, 3]


def test_no_word_is_steady_before_its_segment_has_some_seconds_of_speech():
    found = Drafting(Scripted(), DraftOptions(steady_from_ms=2_000), lambda: 0.0)
    shown = [found.draft(speech(0, 5.0, 5.0 + length_s), DEFAULT) for length_s in (1.0, 1.5, 1.9, 2.0)]
    assert [each.steady_words for each in shown] == [0, 0, 0, 3]


@pytest.mark.parametrize(("probability", "steady"), [(None, [0, 0]), (0.5, [0, 0]), (0.7, [0, 3])])
def test_probable_words_of_one_draft_are_steady_once_their_segment_has_some_speech(probability, steady):
    class Sure(Scripted):
        def draft(self, segment, options):
            found = super().draft(segment, options)
            return replace(found, words=tuple(replace(word, probability=probability) for word in found.words))

    found = Drafting(Sure(), DraftOptions(steady_from_ms=4_000), lambda: 0.0)
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.9, 2.0)]
    assert [each.steady_words for each in shown] == steady


def test_an_improbable_word_that_is_heard_in_a_pause_is_not_steady():
    found = drafting(Scripted())
    paused = speech(0, 0.0, 3.0)
    heard = found.draft(paused, DEFAULT)
    doubtful = tuple(replace(word, probability=0.1 if at == 1 else 0.9) for at, word in enumerate(heard.words))
    assert found.confirm(paused, replace(heard, words=doubtful)).steady_words == 1


def test_what_follows_words_that_are_not_heard_again_is_heard_by_itself():
    class Deaf(Scripted):
        """Hears nothing after a context with the first word."""

        def draft(self, segment, options):
            found = super().draft(segment, options)
            return None if any(SAID[0] in each.text for each in options.context) else found

    recognizer = Deaf()
    found = drafting(recognizer)
    for _ in range(2):
        found.draft(speech(0, 0.0, 1.0), DEFAULT)
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.5, 1.8, 2.0, 2.5, 3.0)]
    assert [context for context, _ in recognizer.drafts] == ["", "", "It", "It", "", "was", "was the best"]
    assert [None if each is None else each.text for each in shown] == [
        None, None, "It was the best", "It was the best of", "It was the best of times",
    ]  # fmt: skip


class Noting(Scripted):
    """Notes the options of each draft, and hears nothing in the drafts ``deaf``, counted from 0."""

    def __init__(self, deaf=(), changes=()):
        super().__init__()
        self.options, self._deaf, self._changes = [], deaf, changes

    def draft(self, segment, options):
        self.options.append(options)
        found = replace(super().draft(segment, options), **dict(self._changes))
        return None if len(self.options) - 1 in self._deaf else found

    def contexts(self):
        return [" ".join(each.text for each in options.context) for options in self.options]


def doubting(recognizer):
    """A segment whose first word two drafts in a row have not heard again."""
    found = drafting(recognizer)
    for end_s in (1.0, 1.0, 1.5, 1.8):
        found.draft(speech(0, 0.0, end_s), DEFAULT)
    return found


def test_a_pause_ends_the_doubt_in_the_words_before_it():
    recognizer, paused = Noting(deaf={2, 3}), speech(0, 0.0, 2.0)
    found = doubting(recognizer)
    found.confirm(paused, Scripted().transcribe([paused], DEFAULT)[0])
    found.draft(speech(0, 0.0, 2.5), DEFAULT)
    assert recognizer.contexts()[2:] == ["It", "It", "It was the"]


def test_doubt_in_the_words_of_a_segment_ends_with_it():
    recognizer = Noting(deaf={2, 3})
    found = doubting(recognizer)
    for end_s in (4.0, 4.0, 4.5):
        found.draft(speech(1, 3.0, end_s), DEFAULT)
    assert recognizer.contexts()[-1] == "It"


def test_drafts_that_come_to_nothing_now_and_then_cast_no_doubt():
    recognizer = Noting(deaf={2, 4})
    found = drafting(recognizer)
    for end_s in (1.0, 1.0, 1.5, 1.8, 2.0, 2.5):
        found.draft(speech(0, 0.0, end_s), DEFAULT)
    assert recognizer.contexts()[-1] == "It was"


@pytest.mark.parametrize(("hears_whole", "begins_s"), [(False, [5.5, 0.0, 6.0]), (True, [0.0, 0.0, 0.0])])
def test_all_steady_words_are_heard_again_if_a_draft_came_to_nothing_or_the_recogniser_needs_it(hears_whole, begins_s):
    recognizer = Noting(deaf={2})
    recognizer.hears_whole = hears_whole
    found = drafting(recognizer)
    for end_s in (8.0, 8.0, 8.2, 8.5, 9.0):
        found.draft(speech(0, 0.0, end_s), DEFAULT)
    assert [options.context[0].segment.start_s for options in recognizer.options[2:]] == begins_s


def test_a_draft_is_recognised_in_the_language_of_the_segments_beginning_and_with_what_the_last_one_heard():
    recognizer, terms = Noting(), object()
    found = drafting(recognizer)
    for end_s in (1.0, 1.5, 2.0):
        found.draft(speech(0, 0.0, end_s), RecognitionOptions(terms=terms))
    assert [(options.language, options.expected) for options in recognizer.options] == [
        (None, ""), (None, " It was"), ("en", " the"),
    ]  # fmt: skip
    assert all(options.terms is terms for options in recognizer.options)


def test_language_and_marks_before_a_segment_are_those_of_its_beginning():
    recognizer = Noting()
    found, shown = drafting(recognizer), []
    for language, marks, end_s in (("de", "?", 1.0), ("en", ",", 1.5), ("fr", ".", 2.0)):
        recognizer._changes = {"language": language, "previous_end": marks}
        shown.append(found.draft(speech(0, 0.0, end_s), DEFAULT))
    assert [(each.language, each.previous_end) for each in shown] == [("de", "?"), ("en", ","), ("en", ",")]


def test_a_draft_in_another_language_takes_the_place_of_the_one_before_at_once():
    recognizer = Changing("The car.", "De casa.")
    found = Drafting(recognizer, DraftOptions(steady_from_ms=9_000), lambda: 0.0)
    found.draft(speech(0, 0.0, 3.0), DEFAULT)
    recognizer.language = "pt"
    shown = found.draft(speech(0, 0.0, 3.0), DEFAULT)
    assert (shown.language, shown.text) == ("pt", "De casa De")


def test_a_pause_has_two_drafts_wait_again_before_they_change_the_mark_before_a_segment():
    recognizer = Changing("so it is.", "so it is,", "so it is.", "so it is,")
    found, segment = Drafting(recognizer, DraftOptions(steady_from_ms=9_000), lambda: 0.0), speech(0, 0.0, 3.0)
    assert [found.draft(segment, DEFAULT).previous_end for _ in range(2)] == [".", "."]
    found.confirm(segment, replace(recognizer.transcribe([segment], DEFAULT)[0], words=()))
    assert found.draft(segment, DEFAULT).previous_end == ","


def test_nothing_is_steady_after_the_first_stretch_without_words():
    stretches = (MissingSpeech(1.0, 1.4, "uncertain"), MissingSpeech(2.0, 2.4, "uncertain"))
    found = drafting(Noting(changes={"missing": stretches}))
    assert [found.draft(speech(0, 0.0, 3.0), DEFAULT).steady_words for _ in range(2)] == [0, 2]


def test_a_pause_whose_text_is_rejected_changes_nothing():
    recognizer, paused = Noting(), speech(0, 0.0, 2.0)
    found = drafting(recognizer)
    for _ in range(2):
        found.draft(speech(0, 0.0, 1.0), DEFAULT)
    (heard,) = Scripted().transcribe([paused], DEFAULT)
    assert found.confirm(paused, replace(heard, rejected="uncertain")).steady_words == 0
    found.draft(speech(0, 0.0, 2.5), DEFAULT)
    assert recognizer.contexts()[-1] == "It"


def test_the_mark_at_the_end_of_a_draft_is_not_shown():
    assert drafting(Scripted(said=("It", "was."))).draft(speech(0, 0.0, 1.0), DEFAULT).text == "It was"


def test_a_draft_without_words_is_none():
    assert drafting(Noting(changes={"text": "", "words": ()})).draft(speech(0, 0.0, 1.0), DEFAULT) is None


def test_time_in_which_others_were_served_does_not_delay_the_next_draft():
    recognizer, times_s = Scripted(), iter([0.0, 2.1])
    recognizer.waited_s = 2.0
    found = Drafting(recognizer, DraftOptions(every_ms=300), lambda: next(times_s))
    found.draft(speech(0, 0.0, 1.0), DEFAULT)
    assert not found.due(speech(0, 0.0, 1.2))
    assert found.due(speech(0, 0.0, 1.3))


def test_what_was_said_before_is_left_out_once_a_draft_does_not_hear_it():
    class Deaf(Scripted):
        def draft(self, segment, options):
            found = super().draft(segment, options)
            return None if options.context and options.context[0].segment.id != segment.id else found

    found = drafting(Deaf())
    context = [HeardSegment(speech(0, 0.0, 1.0), "Once.")]
    heard = [
        found.draft(speech(1, 0.0, end_s), RecognitionOptions(context=context)) is not None for end_s in (0.6, 0.7, 0.8)
    ]
    assert heard == [False, True, True]
    assert found.draft(speech(2, 2.0, 2.6), RecognitionOptions(context=context)) is None, "not of the next segment"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("It was", "an object of type str"),
        (Transcript(1, 0.0, 1.0, "It", "en"), "a transcript of segment 1 for segment 0"),
    ],
)
def test_a_recognizer_of_drafts_that_breaks_its_contract_is_named(found, said):
    class Wrong(Scripted):
        def draft(self, segment, options):
            return found

    with pytest.raises(PipelineError, match=said):
        drafting(Wrong()).draft(speech(0, 0.0, 1.0), DEFAULT)


def test_a_stream_that_breaks_its_contract_is_named():
    class Stream:
        def feed(self, samples):
            return None

    class Wrong:
        def open(self, options):
            return Stream()

    with pytest.raises(PipelineError, match="an object of type NoneType; expected a PartialText"):
        by_segment(Wrong()).draft(speech(0, 0.0, 1.0), DEFAULT)


def test_of_a_stream_only_the_words_that_it_calls_stable_are_steady():
    class Stream:
        length = 0

        def feed(self, samples):
            """A word each half second, and a guess of the next one."""
            self.length += len(samples)
            count = self.length // 8_000
            words = [Word(f" {word}", at / 2, at / 2 + 0.5) for at, word in enumerate((*SAID[:count], "uh"))]
            return PartialText(words, count, "en")

    class Streams:
        def open(self, options):
            return Stream()

    found = drafting(by_segment(Streams()))
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.0, 1.5, 2.0)]
    assert [(each.text, each.steady_words) for each in shown] == [
        ("It was uh", 2), ("It was the uh", 3), ("It was the best uh", 4),
    ]  # fmt: skip


def test_drafts_go_on_from_the_words_heard_in_a_pause():
    smaller, segment = Scripted(said=("It", "was", "the", "vest", "of", "times")), speech(0, 0.0, 2.5)
    found = drafting(smaller)
    for _ in range(2):
        assert found.draft(segment, DEFAULT).text == "It was the vest of"
    shown = found.confirm(segment, Scripted().transcribe([segment], DEFAULT)[0])
    assert (shown.text, shown.steady_words) == ("It was the best of", 4)
    assert found.draft(speech(0, 0.0, 3.0), DEFAULT).text == "It was the best of times"
    assert smaller.drafts[-1] == ("It was the best", "of times")


class Changing(Scripted):
    """Hears each of ``texts`` once, with the mark that ends it before it."""

    def __init__(self, *texts):
        super().__init__()
        self._texts, self.language = list(texts), "en"

    def _words(self, segment):
        return super()._words(segment)[:3]

    def _transcript(self, segment):
        marks, self.said = self._texts[0][-1], self._texts.pop(0)[:-1].split()
        return replace(super()._transcript(segment), previous_end=marks, language=self.language)


@pytest.mark.parametrize(
    "texts", [("My brother lives.", "my brother lives,"), ("my brother lives,", "My brother lives.")]
)
def test_in_a_pause_the_first_word_of_a_segment_is_written_as_heard_with_the_mark_before_it(texts):
    recognizer = Changing(*texts)
    found, segment = drafting(recognizer), speech(0, 0.0, 3.0)
    found.draft(segment, DEFAULT)
    shown = found.confirm(segment, recognizer.transcribe([segment], DEFAULT)[0])
    assert shown.steady_words == 3
    assert f"{shown.text}{shown.previous_end}" == texts[1]


@pytest.mark.parametrize(
    "texts", [("My brother lives.", "my brother lives,"), ("my brother lives,", "My brother lives.")]
)
def test_the_mark_before_a_segment_and_its_first_letter_change_if_two_drafts_in_a_row_have_others(texts):
    first, other = texts
    found = Drafting(
        Changing(first, other, first, other, other, first), DraftOptions(steady_from_ms=9_000), lambda: 0.0
    )
    shown = [found.draft(speech(0, 0.0, 3.0), DEFAULT) for _ in range(6)]
    assert [f"{one.text}{one.previous_end}" for one in shown] == [first] * 4 + [other] * 2
