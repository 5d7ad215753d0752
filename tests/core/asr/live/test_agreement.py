"""When speech in progress is recognised again, and which of the words heard in it are steady."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.asr.live.agreement import (
    Agreement,
    DraftSchedule,
    agreeing_words,
    cut_after_steady,
    steadied,
    without_end,
)
from pipeline.core.run.options import DraftOptions
from pipeline.events import SAMPLE_RATE, SpeechSegment, Word
from pipeline.languages.marks import letters
from tests.conftest import examples

TRUTH = (
    "It was the best of times, it was the worst of times. It was the age of wisdom, and nobody knew it, "
    "not even Dr. Manette, who had 3.5 hours for it. It was the age of foolishness."
).split()


def speech(seconds, number=0):
    return SpeechSegment(number, number * 10 * SAMPLE_RATE, np.zeros(round(seconds * SAMPLE_RATE), np.int16))


def words(texts, each_s=0.5, start_s=0.0):
    return tuple(Word(f" {text}", start_s + at * each_s, start_s + (at + 1) * each_s) for at, text in enumerate(texts))


def texts(found):
    return "".join(word.text for word in found).strip()


def agreement_on(steady):
    agreement = Agreement(0.0)
    agreement.steady = list(words(steady))
    return agreement


def test_drafts_come_with_speech_and_leave_time_for_other_work():
    schedule = DraftSchedule(DraftOptions(first_ms=1_000, every_ms=500))
    assert not schedule.due(speech(0.9))
    assert schedule.due(speech(1.0))
    schedule.ran(speech(1.0), took_s=0.1)
    assert not schedule.due(speech(1.4))
    assert schedule.due(speech(1.5))
    schedule.ran(speech(1.5), took_s=2.0)  # a slow machine
    schedule.ran(speech(1.5), took_s=2.0)
    assert not schedule.due(speech(3.3))  # 1.2 times 1.525 s, the mean with more weight for the newest
    assert schedule.due(speech(3.4))
    assert not schedule.due(speech(0.9, number=1))
    assert schedule.due(speech(1.0, number=1))


def test_silence_brings_no_draft():
    schedule = DraftSchedule(DraftOptions(first_ms=1_000, every_ms=500))
    schedule.ran(speech(1.0), took_s=0.1)
    silent = replace(speech(9.0), speech_end_sample=SAMPLE_RATE)
    assert not schedule.due(silent)
    assert not schedule.due(replace(silent, id=1, speech_end_sample=SAMPLE_RATE // 2))


def likely(texts, *probabilities):
    return tuple(replace(word, probability=p) for word, p in zip(words(texts), probabilities, strict=True))


def test_an_improbable_word_is_promised_long_after_its_end_only_and_nothing_after_it_before():
    agreement = Agreement(0.4)
    agreement.steady = list(likely(["It", "was", "gaudy", "wisdom"], 0.9, 0.5, 0.3, 0.9))
    assert [agreement.promised(heard_s) for heard_s in (2.0, 6.4, 6.5)] == [2, 2, 4]
    agreement.steady = list(words(["It", "was"]))
    assert agreement.promised(2.0) == 2, "nothing is known of how probable they are"


def test_a_probable_word_is_promised_as_soon_as_one_draft_has_it():
    agreement = Agreement(0.4)
    agreement.steady = list(likely(["It", "was"], 0.9, 0.9))
    agreement.draft = list(words(["the", "best", "of", "times"], start_s=1.0))
    agreement.visible(9.0)
    assert agreement.promised(3.4, probable=True) == 2, "nothing is known of how probable they are"
    agreement.draft = [replace(word, probability=0.5 if word.text == " of" else 0.7) for word in agreement.draft]
    assert agreement.promised(3.4, probable=True) == 4
    assert agreement.promised(2.3, probable=True) == 3, "the word that was heard last may go on"
    assert agreement.promised(3.4, 1.5, probable=True) == 3, "speech before it has no words yet"
    assert agreement.promised(3.4) == 2
    agreement.steady[1] = replace(agreement.steady[1], probability=0.1)
    assert agreement.promised(3.4, probable=True) == 1


def test_a_word_that_may_be_cut_is_shown_only_if_it_is_probable_or_shown_already():
    agreement = Agreement(0.4)
    agreement.draft = list(likely(["It", "was", "a", "ba", "in"], 0.9, 0.9, 0.9, 0.79, 0.9))
    assert texts(agreement.visible(2.3)) == "It was a"
    agreement.draft = list(likely(["It", "was", "a", "bat"], 0.9, 0.9, 0.9, 0.8))
    assert texts(agreement.visible(2.3)) == "It was a bat"
    agreement.draft = list(likely(["It", "was", "a", "bat", "in"], 0.9, 0.9, 0.9, 0.1, 0.1))
    assert texts(agreement.visible(2.3)) == "It was a bat"
    assert texts(agreement.visible(2.9)) == "It was a bat in"
    agreement.steady, agreement.draft = agreement.draft[:2], list(words(["a", "ba"], start_s=1.0))
    agreement.visible(2.0)
    assert texts(agreement.visible(2.0)) == "a ba", "nothing is known of how probable they are"
    agreement.confirm(likely(["It", "was", "a", "bat"], 0.9, 0.9, 0.9, 0.1), 2.3)
    assert texts(agreement.visible(2.3)) == "bat", "a pause shows everything"


def test_a_draft_that_takes_back_what_is_shown_is_shown_if_the_next_one_does_not_have_it_again_either():
    agreement, shown = Agreement(0.0), []
    for draft in ("It was the", "It was a", "It was the best", "It was a bad", "It was a bad one", "It was", "It"):
        agreement.draft = list(likely(draft.split(), *[0.9] * len(draft.split())))
        shown.append((texts(agreement.visible(9.0)), agreement.promised(9.0, probable=True)))
    assert shown == [
        ("It was the", 3),
        ("It was the", 2),
        ("It was the best", 4),
        ("It was the best", 2),
        ("It was a bad one", 5),
        ("It was a bad one", 2),
        ("It", 1),
    ]


def test_words_that_are_shown_although_the_newest_draft_has_others_are_not_steady():
    agreement = Agreement(0.0)
    agreement.draft = [Word("It", 0.0, 0.5), Word(" was", 0.5, 1.0), Word(" best", 1.0, 1.6)]
    agreement.visible(9.0)
    agreement.steady, agreement.draft = (
        [Word("It", 0.0, 0.5), Word(" was", 0.5, 1.2)],
        [Word(" worst", 1.2, 1.6, probability=0.9)],
    )
    assert agreement.visible(9.0) == [Word(" best", 1.2, 1.6)]
    assert agreement.promised(9.0, probable=True) == 2


def test_of_text_without_spaces_as_much_is_promised_as_is_shown():
    agreement = Agreement(0.0)
    agreement.draft = [Word(text, at, at + 1, probability=0.9) for at, text in enumerate(("東京", "都", "だ"))]
    agreement.visible(9.0)
    agreement.draft = [Word(text, at, at + 1, probability=0.9) for at, text in enumerate(("東", "京", "都"))]
    assert texts(agreement.visible(9.0)) == "東京都だ"
    assert agreement.promised(9.0, probable=True) == 2


def test_what_is_heard_in_a_pause_may_be_taken_back_by_two_drafts_as_well():
    agreement = Agreement(0.0)
    agreement.draft = list(words(["It", "was", "the"]))
    agreement.visible(9.0)
    agreement.draft = list(words(["It", "was", "a"]))
    assert texts(agreement.visible(9.0)) == "It was the"
    agreement.kept(words(["It", "is", "so"]), 9.0)
    assert texts(agreement.visible(9.0)) == "It is so"


@pytest.mark.parametrize("pause", [False, True])
def test_steady_words_and_what_is_heard_in_a_pause_are_shown_at_once(pause):
    agreement = Agreement(0.0)
    agreement.draft = list(words(["It", "was", "the"]))
    agreement.visible(9.0)
    if pause:
        agreement.confirm(words(["It", "is", "a"]), 9.0)
    else:
        agreement.steady, agreement.draft = list(words(["It", "is"])), list(words(["a"], start_s=1.0))
    assert texts([*agreement.steady, *agreement.visible(9.0)]) == "It is a"


def test_words_on_which_two_drafts_agree_are_steady():
    agreement = Agreement(0.4)
    agreement.push(words(["It", "was", "a", "bat"]), 2.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("", "It was a bat")
    agreement.push(words(["it", "was", "the", "best", "of"]), 2.5)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It was", "the best of")
    agreement.push(words(["the", "best,", "of", "times"], start_s=1.0), 3.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It was the best of", "times")


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("press the Pound key", "Press, the pound Key now", "press the Pound Key now"),
        ("press the star key", "Press the pound, key now", "press the pound, key now"),
        ("the last name. Using", "the last name using your", "the last name using your"),
        ("the last name using", "the last name. Using your", "the last name. Using your"),
        ("I see him, my Brother lives", "I see him. My brother lives here", "I see him. My Brother lives here"),
        ("I see him. My Brother lives", "I see him, my brother lives here", "I see him, my Brother lives here"),
        ("he said Go.” Then we", "he said Go,” then we went", "he said Go,” then we went"),
        ("35 per Cent", "3.5 per Cent of", "3.5 per Cent of"),
        ("-5 Degrees in", "5 degrees in the", "5 Degrees in the"),
        ("5 Euros and", "$5 euros and some", "$5 Euros and some"),
        ("well Go now", "we'll go now to", "we'll Go now to"),
        ("Press", "press,", "press,"),
        ("", "Press", "Press"),
    ],
)
def test_words_are_written_as_before_until_a_word_or_a_sentence_end_differs(old, new, shown):
    assert texts(steadied(words(old.split()), words(new.split()))) == shown


@pytest.mark.parametrize("marks", [(".", ","), (",", ".")])
@pytest.mark.parametrize("steady", [["I", "see", "him"], []])
def test_a_word_after_a_mark_that_changes_is_written_as_heard_with_it(steady, marks):
    agreement = agreement_on(steady)
    for mark in marks:
        agreement.correct_marks(mark)
        agreement.push(words(["My" if mark == "." else "my", "brother", "lives"], 0.5, 1.5), 4.0)
    expected = {".": "My brother lives", ",": "my brother lives"}[marks[1]]
    assert texts(agreement.steady) == (f"I see him{marks[1]} {expected}" if steady else expected)


def test_words_at_the_end_of_the_audio_are_not_steady():
    agreement = Agreement(0.4)
    agreement.push(words(["It", "was", "the", "best"]), 2.0)
    agreement.push(words(["It", "was", "the", "best"]), 2.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It was the", "best")
    agreement.push(words(["best"], start_s=1.5), 2.5)
    assert (texts(agreement.steady), agreement.draft) == ("It was the best", [])


def test_the_words_heard_in_a_pause_replace_those_of_drafts():
    agreement = Agreement(0.4)
    for _ in range(2):
        agreement.push(words(["It", "was", "a", "vest", "of"]), 2.5)
    agreement.confirm(words(["It", "was", "the", "best", "of", "times"]), 3.2)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It was the best of", "times")  # it ended late


@pytest.mark.parametrize(("marks", "expected"), [(",", "My fellow,"), ("", "My fellow"), (None, "My fellow.")])
def test_marks_after_the_last_steady_word_are_those_heard_last(marks, expected):
    agreement = agreement_on(["My", "fellow."])
    agreement.correct_marks(marks)
    assert texts(agreement.steady) == expected


def test_a_segment_is_divided_after_its_steady_words():
    segment = replace(speech(9.0, number=3), start_sample=SAMPLE_RATE)
    said = words(["It", "was", "the", "best", "of", "times.", "It", "was", "the", "worst", "of"], start_s=1.0)
    known, rest = cut_after_steady(segment, said[:3])
    assert (known.text, known.segment.start_sample, len(known.segment.samples)) == ("It was the", 16_000, 24_000)
    assert (rest.id, rest.start_sample, len(rest.samples)) == (3, 40_000, 120_000)
    known, rest = cut_after_steady(segment, said)  # from the beginning of the second sentence on
    assert known.text == "It was the worst of"
    assert (known.segment.start_s, known.segment.end_s, rest.start_s, rest.end_s) == (4.0, 6.5, 6.5, 10.0)
    known, _ = cut_after_steady(segment, said, whole=True)
    assert (known.text, known.segment.start_s) == ("It was the best of times. It was the worst of", 1.0)


def test_without_a_clause_the_last_seconds_are_heard_again():
    known, rest = cut_after_steady(
        speech(9.0), words(["it", "was", "the", "best", "of", "times", "and", "the", "worst"])
    )
    assert (known.text, known.segment.start_s) == ("times and the worst", 2.5)
    assert rest.start_s == 4.5


def test_a_clause_that_began_long_ago_is_not_heard_again():
    said = words(["Well,", *"it was the best of times and the worst of times".split()])
    known, _ = cut_after_steady(speech(9.0), said)
    assert (known.text, known.segment.start_s) == ("the worst of times", 4.0)


def test_doubtful_words_and_the_pause_after_them_are_not_heard_again():
    said = [*words(["Hm,"]), *words(["it", "was"], start_s=3.0)]
    for whole in (False, True):
        known, _ = cut_after_steady(speech(9.0), said, whole=whole, doubtful=1)
        assert (known.text, known.segment.start_s) == ("it was", 2.9)


BROTHER = (["My", "brother", "lives"], ["my", "brother", "lives"])


def test_marks_before_a_segment_say_nothing_of_the_next_one():
    agreement = Agreement(0.0)
    agreement.correct_marks(".")
    agreement.begin(1)
    agreement.push(words(BROTHER[0]), 4.0)
    agreement.correct_marks(",")
    agreement.push(words(BROTHER[1]), 4.0)
    assert texts(agreement.steady) == "My brother lives"


@pytest.mark.parametrize("pausing", [False, True])
def test_a_mark_counts_for_the_draft_that_it_was_heard_with(pausing):
    agreement = Agreement(0.0)
    agreement.correct_marks(".")
    agreement.confirm(words(BROTHER[0]), 0.0) if pausing else agreement.push(words(BROTHER[0]), 4.0)
    agreement.push(words(BROTHER[1]), 4.0)
    assert texts(agreement.steady) == "My brother lives"


def test_text_without_spaces_agrees_where_both_have_a_boundary():
    def said(text):
        return [Word(part, at, at + 1) for at, part in enumerate(text.split("|"))]

    assert agreeing_words(said("我|们|去"), said("我们|去|了")) == 2
    assert agreeing_words(said("我们|去"), said("我|们|来")) == 2
    assert agreeing_words(said(" the"), said(" them")) == 0
    assert agreeing_words(said(" them"), said(" the| best")) == 0
    assert agreeing_words([], said(" the")) == 0


def test_the_marks_at_the_end_of_a_draft_are_left_out():
    assert texts(without_end(words(["It", "was,", "the", "best."]))) == "It was, the best"
    assert texts(without_end(words(["It", "was", "..."]))) == "It was"
    assert without_end([]) == []


def _changed(text):
    """The same word in another spelling that agrees with it."""
    return letters(text) + ("," if text[-1].isalnum() else "")


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.data())
def test_nothing_is_lost_doubled_or_taken_back(data):
    """Whatever the drafts get wrong at their ends."""
    agreement = Agreement(0.4)
    steady = []
    length = 0
    while length < len(TRUTH):
        length = min(len(TRUTH), length + data.draw(st.integers(1, 4)))
        right = data.draw(st.integers(max(0, length - 2), length))
        draft = [data.draw(st.sampled_from([word, _changed(word)])) for word in TRUTH[:right]]
        draft += [data.draw(st.sampled_from(["uh", "blue", "some"])) + str(length) for _ in range(length - right)]
        agreement.push(words(draft)[len(steady) :], length * 0.5)
        now = [letters(word.text) for word in agreement.steady]
        assert now[: len(steady)] == steady
        assert all(word.end_s <= length * 0.5 - 0.4 for word in agreement.steady)
        steady = now
    assert steady == [letters(word) for word in TRUTH[: len(steady)]]
    times = [word.start_s for word in (*agreement.steady, *agreement.draft)]
    assert times == sorted(times)


def test_nothing_is_steady_after_speech_without_words():
    agreement = Agreement(0.4)
    for _ in range(2):
        agreement.push(words(["It", "was", "the", "best", "of", "times"]), 4.0, 1.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It was", "the best of times")
    agreement.confirm(words(["It", "was", "the", "best"]), 4.0, 1.5)
    assert texts(agreement.steady) == "It was the"


def test_a_number_is_steady_when_it_has_surely_ended():
    agreement = Agreement(0.4)
    for _ in range(2):
        agreement.push(words(["It", "has", "83"]), 2.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It has", "83")
    for heard_s in (2.5, 3.0):
        agreement.push(words(["83,200,000", "people", "now"], start_s=1.0), heard_s)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It has 83,200,000 people now", "")


def test_a_number_is_steady_when_two_words_follow_it():
    agreement = Agreement(0.4)
    for heard in (["8,800"], ["8,800", "and"]):
        agreement.push(words(["It", "is", *heard]), 4.0)
    agreement.push(words(["8,800", "and"], start_s=1.0), 4.0)
    assert (texts(agreement.steady), texts(agreement.draft)) == ("It is", "8,800 and")
    for _ in range(2):
        agreement.push(words(["8,849", "metres", "high"], start_s=1.0), 4.0)
    assert texts(agreement.steady) == "It is 8,849 metres high"
