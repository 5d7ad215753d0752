"""Recognition of groups that have closed: failures, terms, languages, several at once."""

import math
from dataclasses import replace

import pytest

from pipeline.core.asr.final import FinalRecognition
from pipeline.core.asr.terms import HeardTerms
from pipeline.core.run.options import GlossaryOptions
from pipeline.errors import ModelError, PipelineError
from pipeline.events import Word
from pipeline.glossary.terms import Glossary, Term
from tests.core.asr.scripted import Scripted, speech

GROUPS = [(speech(0, 0, 1), speech(1, 2, 3)), (speech(2, 5, 6), speech(3, 7, 8)), (speech(4, 11, 12),)]


class AtOnce(Scripted):
    """Takes several groups, and notes the options of each call."""

    def __init__(self, **options):
        super().__init__(**options)
        self.batches, self.options = [], []

    def transcribe(self, segments, options):
        self.options.append(options)
        return super().transcribe(segments, options)

    def transcribe_batch(self, groups, options):
        self.batches.append(len(groups))
        return [self.transcribe(group, options) for group in groups]


@pytest.mark.parametrize("make", [Scripted, AtOnce])
def test_a_failed_call_costs_one_segment(make, caplog):
    final = FinalRecognition(make(failing={1, 2}))
    found = [transcript for group in final.recognised(GROUPS) for transcript in group]
    assert [each.rejected for each in found] == [None, "failed", "failed", None, None]
    assert [(each.start_s, each.end_s, each.text, each.language) for each in found[1:3]] == [
        (2.0, 3.0, "", ""), (5.0, 6.0, "", "en"),
    ]  # fmt: skip
    assert final.stats.failures == {"ASR": "connection refused"}
    assert [record.getMessage() for record in caplog.records] == [
        "the speech from 2.0 to 3.0 s is not recognised: connection refused",
        "the speech from 5.0 to 6.0 s is not recognised: connection refused",
    ]


def test_calls_that_fail_in_a_row_or_for_good_are_raised():
    with pytest.raises(OSError, match="connection refused"):
        FinalRecognition(Scripted(failing={1, 2, 3})).recognised([sum(GROUPS, ())])
    damaged = FinalRecognition(Scripted(failing={3}, error=ModelError("damaged")))
    for call in (lambda: damaged.recognised([GROUPS[1]]), lambda: damaged.as_if_closed(GROUPS[1])):
        with pytest.raises(ModelError, match="damaged"):
            call()


def test_a_segment_that_is_heard_begins_the_count_of_failures_anew():
    said = [(speech(number, 2 * number, 2 * number + 1),) for number in range(5)]
    found = FinalRecognition(Scripted(failing={0, 1, 3, 4})).recognised(said)
    assert [each.rejected for (each,) in found] == ["failed", "failed", None, "failed", "failed"]


def test_the_newest_failure_is_told():
    recognizer = Scripted(failing={0, 1})
    final = FinalRecognition(recognizer)
    for segment, reason in ((speech(0, 0, 1), "refused"), (speech(1, 2, 3), "timed out")):
        recognizer.error = OSError(reason)
        final.recognised([(segment,)])
    assert final.stats.failures == {"ASR": "timed out"}


SHORT = [(speech(0, 0, 3),), (speech(1, 4, 5),), (speech(2, 6, 7),), (speech(3, 8, 11),)]
HEARD_WITH = [[0], [0, 1], [0, 1, 2], [3]]


@pytest.mark.parametrize("at_a_time", [1, 4])
def test_a_short_group_is_heard_together_with_those_before_and_has_its_own_transcript_alone(at_a_time):
    final = FinalRecognition(recognizer := AtOnce())
    early, found = [], []
    for at in range(0, len(SHORT), at_a_time):
        early.append(final.as_if_closed(SHORT[at]))
        found += final.recognised(SHORT[at : at + at_a_time])
    assert [call for call in recognizer.calls if call in HEARD_WITH] == recognizer.calls
    assert recognizer.calls[-1] == HEARD_WITH[-1]
    assert found == [Scripted().transcribe(group, None) for group in SHORT]
    assert at_a_time > 1 or early == found


def test_a_recogniser_that_hears_each_segment_alone_is_not_given_those_before():
    FinalRecognition(recognizer := Scripted()).recognised(SHORT)
    FinalRecognition(several := AtOnce(), several_languages=True).recognised(SHORT)
    assert recognizer.calls == several.calls == [[0], [1], [2], [3]]


class Displacing(AtOnce):
    """Of a window, it gives the first segment the first word of the second, too."""

    def transcribe(self, segments, options):
        first, *others = super().transcribe(segments, options)
        if not others:
            return [first]
        word, rest = others[0].text.split(" ", 1)
        return [replace(first, text=f"{first.text} {word}"), replace(others[0], text=rest), *others[1:]]


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_short_group_is_heard_alone_if_what_was_said_before_ends_otherwise_with_it(at_a_time):
    final = FinalRecognition(Displacing())
    found = [one for at in range(0, 2, at_a_time) for one in final.recognised(SHORT[at : at + at_a_time])]
    assert found == [Scripted().transcribe(group, None) for group in SHORT[:2]]


def test_a_failure_in_what_was_said_before_costs_a_short_group_nothing():
    found = FinalRecognition(AtOnce(failing={0})).recognised(SHORT)
    assert [each.rejected for (each,) in found] == ["failed", None, None, None]


def test_of_a_recogniser_that_others_use_only_one_group_is_asked_at_once():
    shared = AtOnce()
    assert FinalRecognition(shared).at_once
    shared.waited_s = 0.0
    assert not FinalRecognition(shared).at_once


WRONG = {
    "None": (lambda found: None, "returned None"),
    "nothing": (lambda found: [], "returned an empty list"),
    "fewer": (lambda found: found[:1], "returned 1 transcripts"),
    "more": (lambda found: [*found, found[-1]], "returned 3 transcripts"),
    "texts": (lambda found: [one.text for one in found], "a list with an object of type str"),
    "a text": (lambda found: found[0].text, "an object of type str"),
    "other segments": (lambda found: found[::-1], "a transcript of segment 3 for segment 2"),
    "times": (
        lambda found: [replace(one, start_s=0.0, end_s=0.5) for one in found],
        "a time of 0.0 s for the segment from 5.0 to 6.0 s",
    ),
    "late times": (
        lambda found: [replace(one, end_s=one.end_s + 9) for one in found],
        "a time of 15.0 s for the segment from 5.0 to 6.0 s",
    ),
    "words": (
        lambda found: [replace(one, words=(Word(" it", 0.0, 0.5),)) for one in found],
        "a time of 0.5 s for the segment from 5.0 to 6.0 s",
    ),
    "no times": (lambda found: [replace(one, end_s=math.nan) for one in found], "a time of nan s"),
}


@pytest.mark.parametrize(("made", "said"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("make", [Scripted, AtOnce])
def test_a_recognizer_that_breaks_its_contract_is_named(make, made, said):
    class Wrong(make):
        def transcribe(self, segments, options):
            return made(super().transcribe(segments, options))

    final = FinalRecognition(Wrong())
    for call in (lambda: final.recognised(GROUPS[1:2]), lambda: final.as_if_closed(GROUPS[1])):
        with pytest.raises(
            PipelineError, match=r"^the recogniser .*; expected a list of 2 of type Transcript"
        ) as error:
            call()
        assert said in str(error.value)


@pytest.mark.parametrize("found", [None, [], [[]]])
def test_a_recognizer_of_several_groups_that_breaks_its_contract_is_named(found):
    class Wrong(AtOnce):
        def transcribe_batch(self, groups, options):
            return found

    with pytest.raises(PipelineError, match=r"returned .*; expected a list"):
        FinalRecognition(Wrong()).recognised(GROUPS)


def test_a_group_that_cannot_be_recognised_early_costs_nothing(caplog):
    final = FinalRecognition(Scripted(failing={0}))
    assert [final.as_if_closed(GROUPS[0]) for _ in range(5)] == [None] * 5
    assert (final.stats.failures, caplog.records) == ({}, [])


@pytest.mark.parametrize("failing", [(), {2}, {0, 4}])
def test_several_groups_at_once_are_heard_as_one_by_one(failing):
    both = AtOnce(failing=failing)
    found = FinalRecognition(both).recognised(GROUPS)
    assert both.batches[0] == 3
    one_by_one = FinalRecognition(AtOnce(failing=failing))
    assert found == [one_by_one.recognised([group])[0] for group in GROUPS]


def test_groups_that_were_heard_at_once_begin_the_count_of_failures_anew():
    final = FinalRecognition(AtOnce(failing={0, 1, 4}))
    for groups in ([GROUPS[0]], [(speech(2, 5, 6),), (speech(3, 7, 8),)], [GROUPS[2]]):
        found = final.recognised(groups)
    assert found[0][0].rejected == "failed"


def test_in_one_language_nothing_is_said_of_the_language_before():
    recognizer = AtOnce()
    final = FinalRecognition(recognizer)
    for group in GROUPS[:2]:
        final.recognised([group])
    assert [options.before for options in recognizer.options] == [None, None]


def test_groups_are_recognised_with_the_language_before_them_if_there_are_several():
    recognizer = AtOnce()
    final = FinalRecognition(recognizer, several_languages=True)
    assert not final.at_once
    final.as_if_closed(GROUPS[0])  # changes nothing
    for group in GROUPS[:2]:
        final.recognised([group])
    assert [options.before for options in recognizer.options] == [None, None, "en"]
    assert recognizer.batches == []


def test_terms_that_were_heard_are_remembered_when_their_group_has_closed():
    terms = HeardTerms(lambda: Glossary((Term("best", None), Term("worst", None))), GlossaryOptions(prompt_terms=1))
    heard = []
    terms.heard = heard.append
    final = FinalRecognition(AtOnce(), terms=terms)
    assert not final.at_once
    final.as_if_closed(GROUPS[0])
    assert heard == []
    (found,) = final.recognised(GROUPS[:1])
    assert heard == found
    assert FinalRecognition(AtOnce(), terms=HeardTerms(Glossary, GlossaryOptions())).at_once


def test_what_may_be_misheard_is_no_evidence_of_the_language_or_of_terms():
    class Unsure(AtOnce):
        def transcribe(self, segments, options):
            return [replace(found, uncertain=True) for found in super().transcribe(segments, options)]

    terms = HeardTerms(Glossary, GlossaryOptions())
    heard = []
    terms.heard = heard.append
    recognizer = Unsure()
    final = FinalRecognition(recognizer, several_languages=True, terms=terms)
    for group in GROUPS[:2]:
        final.recognised([group])
    assert [options.before for options in recognizer.options] == [None, None]
    assert heard == []
