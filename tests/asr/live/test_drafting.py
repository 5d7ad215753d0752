"""The segment in progress, with a recogniser whose answers are given."""

from dataclasses import replace

import pytest

from pipeline.asr.context import HeardSegment
from pipeline.asr.live.drafting import Drafting
from pipeline.asr.recognizer import DEFAULT, RecognitionOptions, by_segment
from pipeline.errors import PipelineError
from pipeline.events import Transcript
from pipeline.run.options import DraftOptions
from tests.asr.scripted import SAID, Scripted, speech


def drafting(recognizer):
    return Drafting(recognizer, DraftOptions(), lambda: 0.0)


def test_what_follows_steady_words_is_heard_after_them():
    recognizer = Scripted()
    found = drafting(recognizer)
    shown = [found.draft(speech(0, 0.0, end_s), DEFAULT) for end_s in (1.0, 1.5, 2.5)]
    assert recognizer.drafts == [("", "It was"), ("", "It was the"), ("It was", "the best of")]
    assert [each.text for each in shown] == ["It was", "It was the", "It was the best of"]
    assert [each.steady_words for each in shown] == [0, 2, 3]


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
        self._texts = list(texts)

    def _words(self, segment):
        return super()._words(segment)[:3]

    def _transcript(self, segment):
        marks, self.said = self._texts[0][-1], self._texts.pop(0)[:-1].split()
        return replace(super()._transcript(segment), previous_end=marks)


@pytest.mark.parametrize(
    "texts", [("My brother lives.", "my brother lives,"), ("my brother lives,", "My brother lives.")]
)
@pytest.mark.parametrize("pausing", [False, True])
def test_the_first_word_of_a_segment_is_written_as_heard_with_the_mark_before_it(texts, pausing):
    recognizer = Changing(*texts)
    found, segment = drafting(recognizer), speech(0, 0.0, 3.0)
    found.draft(segment, DEFAULT)
    shown = (
        found.confirm(segment, recognizer.transcribe([segment], DEFAULT)[0])
        if pausing
        else found.draft(segment, DEFAULT)
    )
    assert shown.steady_words == 3
    assert f"{shown.text}{shown.previous_end}" == texts[1]
