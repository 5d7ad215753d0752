"""Drafts: when speech in progress is recognised again, and which words are committed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.asr.drafts import Agreement, DraftSchedule, agreeing, spread, without_end
from pipeline.asr.engine import letters
from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript, Word
from pipeline.run.drafts import DraftOptions

TRUTH = [
    "It",
    "was",
    "the",
    "best",
    "of",
    "times,",
    "it",
    "was",
    "the",
    "worst",
    "of",
    "times.",
    "It",
    "was",
    "the",
    "age",
    "of",
    "wisdom,",
    "and",
    "nobody",
    "knew",
    "it,",
    "not",
    "even",
    "Dr.",
    "Manette,",
    "who",
    "had",
    "3.5",
    "hours",
    "for",
    "it.",
    "It",
    "was",
    "the",
    "age",
    "of",
    "foolishness.",
]


def speech(seconds: float, number: int = 0) -> SpeechSegment:
    return SpeechSegment(number, 0, np.zeros(round(seconds * SAMPLE_RATE), np.int16))


def words(texts: list[str], each_s: float = 0.5, start_s: float = 0.0) -> tuple[Word, ...]:
    return tuple(Word(f" {text}", start_s + at * each_s, start_s + (at + 1) * each_s) for at, text in enumerate(texts))


def heard(texts: list[str] | str, **options: object) -> Transcript:
    timed = words(texts.split() if isinstance(texts, str) else texts)
    text = "".join(word.text for word in timed).strip()
    end_s = timed[-1].end_s if timed else 0.0
    return replace(Transcript(0, 0.0, end_s, text, "en", words=timed), **options)  # type: ignore[arg-type]


def texts(found: list[Word] | tuple[Word, ...]) -> str:
    return "".join(word.text for word in found).strip()


def test_drafts_come_with_speech_and_leave_time_for_other_work() -> None:
    schedule = DraftSchedule(DraftOptions(first_ms=1_000, every_ms=500))
    assert not schedule.due(speech(0.9))
    assert schedule.due(speech(1.0))
    schedule.ran(speech(1.0), took_s=0.1)
    assert not schedule.due(speech(1.4))
    assert schedule.due(speech(1.5))
    schedule.ran(speech(1.5), took_s=2.0)  # a slow machine
    schedule.ran(speech(1.5), took_s=2.0)
    assert not schedule.due(speech(3.0))
    assert schedule.due(speech(4.0))
    assert not schedule.due(speech(0.9, number=1))
    assert schedule.due(speech(1.0, number=1))


def test_silence_brings_no_draft() -> None:
    schedule = DraftSchedule(DraftOptions(first_ms=1_000, every_ms=500))
    schedule.ran(speech(1.0), took_s=0.1)
    silent = replace(speech(9.0), speech_end_sample=SAMPLE_RATE)
    assert not schedule.due(silent)
    assert not schedule.due(replace(silent, id=1, speech_end_sample=SAMPLE_RATE // 2))


def test_words_on_which_two_drafts_agree_are_committed() -> None:
    agreement = Agreement(margin_s=0.4)
    agreement.begin(0)
    assert agreement.push(heard("It was a bat"), 2.0)
    assert (texts(agreement.committed), texts(agreement.draft)) == ("", "It was a bat")
    agreement.push(heard("it was the best of"), 2.5)
    assert (texts(agreement.committed), texts(agreement.draft)) == ("it was", "the best of")
    agreement.push(heard("It was the best of times"), 3.0)
    assert (texts(agreement.committed), texts(agreement.draft)) == ("it was the best of", "times")


def test_words_at_the_end_of_the_audio_are_not_committed() -> None:
    agreement = Agreement(margin_s=0.4)
    agreement.begin(0)
    agreement.push(heard("It was the best"), 2.0)
    agreement.push(heard("It was the best"), 2.0)
    assert (texts(agreement.committed), texts(agreement.draft)) == ("It was the", "best")
    agreement.push(heard("It was the best"), 2.5)
    assert texts(agreement.committed) == "It was the best"


def test_marks_after_the_last_committed_word_follow_the_newest_draft() -> None:
    agreement = Agreement(margin_s=0.0)
    agreement.begin(0)
    agreement.push(heard("My fellow Americans."), 9.0)
    agreement.push(heard("My fellow Americans."), 9.0)
    assert texts(agreement.committed) == "My fellow Americans."
    agreement.push(heard("My fellow americans, ask not"), 9.0)
    assert texts(agreement.committed) == "My fellow Americans,"
    whole = agreement.finished(heard("My fellow Americans, ask not what."))
    assert (whole.text, whole.committed_words) == ("My fellow Americans, ask not what.", 3)


def test_a_draft_that_cannot_be_used_changes_nothing() -> None:
    agreement = Agreement(margin_s=0.0)
    agreement.begin(0)
    for _ in range(2):
        agreement.push(heard("It was the best"), 9.0)
    for useless in (
        heard("It was the best of", rejected="repetition"),
        heard("It was the best of", words=()),
        heard("Es war die beste", language="de"),
        heard("and now for something completely different"),
    ):
        assert not agreement.push(useless, 9.0)
        assert (texts(agreement.committed), agreement.draft) == ("It was the best", [])


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        (heard("It was the best of times."), "It was the best of times."),
        (heard("It was the bust of times."), "It was the best of times."),
        (heard("It was the best of times.", words=()), "It was the best of times."),
        (heard("hm", rejected="uncertain"), "It was the best"),
        (heard("Es war die beste der", language="de"), "It was the best of"),
    ],
)
def test_the_final_transcript_begins_with_the_committed_words(final: Transcript, expected: str) -> None:
    agreement = Agreement(margin_s=0.0)
    agreement.begin(0)
    agreement.push(heard("It was the best"), 9.0)
    agreement.push(heard("It was the best of"), 9.0)
    found = agreement.finished(final)
    assert (found.text, found.language, found.rejected, found.committed_words) == (expected, "en", None, 4)
    assert "".join(word.text for word in found.words).strip() == expected


def test_without_committed_words_the_final_transcript_is_as_it_is() -> None:
    agreement = Agreement()
    agreement.begin(0)
    agreement.push(heard("It was a"), 9.0)
    final = heard("Hm.", rejected="uncertain")
    assert agreement.finished(final) is final


def test_words_after_a_cut_stay_for_the_next_segment() -> None:
    agreement = Agreement(margin_s=0.0)
    agreement.begin(0)
    for _ in range(2):
        agreement.push(heard("It was the best of times"), 9.0)
    assert texts(agreement.divided(2.1)) == "of times"
    assert texts(agreement.committed) == "It was the best"


def test_text_without_spaces_agrees_where_both_have_a_boundary() -> None:
    def divided(text: str) -> list[Word]:
        return [Word(part, at, at + 1) for at, part in enumerate(text.split("|"))]

    assert agreeing(divided("我|们|去"), divided("我们|去|了")) == 2
    assert agreeing(divided("我们|去"), divided("我|们|来")) == 2
    assert agreeing(divided(" the"), divided(" them")) == 0
    assert agreeing(divided(" them"), divided(" the| best")) == 0
    assert agreeing([], divided(" the")) == 0


def test_the_marks_at_the_end_of_a_draft_are_left_out() -> None:
    assert texts(without_end(heard("It was, the best.").words)) == "It was, the best"
    assert texts(without_end(heard("It was ...").words)) == "It was"
    assert without_end([]) == []


def test_words_without_times_share_the_time_of_their_segment() -> None:
    found = spread(heard("It was the", words=()))
    assert texts(found) == "It was the"
    assert (found[0].start_s, found[-1].end_s) == (0.0, 1.5)
    assert [word.end_s for word in found[:-1]] == [word.start_s for word in found[1:]]


def _changed(text: str) -> str:
    """The same word in another spelling that agrees with it."""
    return letters(text) + ("," if text[-1].isalnum() else "")


@settings(max_examples=30)
@given(st.data())
def test_nothing_is_lost_doubled_or_taken_back(data: st.DataObject) -> None:
    """Whatever the drafts get wrong at their ends."""
    agreement = Agreement(margin_s=0.4)
    agreement.begin(0)
    committed: list[str] = []
    length = 0
    while length < len(TRUTH):
        length = min(len(TRUTH), length + data.draw(st.integers(1, 4)))
        right = data.draw(st.integers(max(0, length - 2), length))
        draft = [data.draw(st.sampled_from([word, _changed(word)])) for word in TRUTH[:right]]
        draft += [data.draw(st.sampled_from(["uh", "blue", "some"])) + str(length) for _ in range(length - right)]
        agreement.push(heard(draft), length * 0.5)
        now = [letters(word.text) for word in agreement.committed]
        assert now[: len(committed)] == committed
        committed = now
    assert committed == [letters(word) for word in TRUTH[: len(committed)]]
    final = agreement.finished(heard(TRUTH))
    assert letters(final.text) == letters("".join(TRUTH))
    assert final.committed_words == len(committed)
