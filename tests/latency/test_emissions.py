"""Words and characters, and when each was emitted."""

from __future__ import annotations

import pytest

from pipeline.events import Delta, SourceDelta
from pipeline.latency.emissions import CommittedOnly, Emission, TextSoFar, Times, unit_of, units
from pipeline.sentences.growing import Piece, TextChangeError


def delta(text: str, heard_s: float = 1.0, sentence: int = 0, withdrawn: int = 0) -> Delta:
    return Delta(sentence, "zh", text, withdrawn, token=5, log_probability=-0.1, heard_s=heard_s)


def test_chinese_is_counted_in_characters_and_english_in_words() -> None:
    assert (unit_of("zh"), unit_of("zho_Hans"), unit_of("en"), unit_of("de")) == ("char", "char", "word", "word")
    assert units(" one  two\nthree", "word") == ["one", "two", "three"]
    assert units("一 二三 ", "char") == ["一", "二", "三"]


def test_a_word_is_emitted_with_its_last_letter() -> None:
    text = TextSoFar("word")
    for received_s, piece in enumerate(["Good", " morn", "ing", ", all", "."]):
        text.push(delta(piece), received_s)
    assert text.emissions() == [
        Emission("Good", 1000, 0),
        Emission("morning,", 1000, 3000),
        Emission("all.", 1000, 4000),
    ]


def test_characters_of_one_piece_come_together_and_spaces_do_not_count() -> None:
    text = TextSoFar("char")
    text.push(delta("早上 "), 1.5)
    text.push(delta("好。", heard_s=4.0, sentence=1), 4.25)
    assert text.emissions() == [
        Emission("早", 1000, 1500),
        Emission("上", 1000, 1500),
        Emission("好", 4000, 4250),
        Emission("。", 4000, 4250),
    ]


def test_sentences_of_a_spaced_language_do_not_run_together() -> None:
    text = TextSoFar("word")
    text.push(delta("Yes."), 1)
    text.push(delta("No", sentence=1), 2)
    text.push(delta(".", sentence=1), 3)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No."]
    text.push(delta("", sentence=2), 4)  # the leading space of a sentence, a separate token
    text.push(delta("0", sentence=2), 5)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No.", "0"]


def test_withdrawn_text_is_gone_and_counted() -> None:
    text = TextSoFar("word")
    text.push(delta("one two"), 1)
    text.push(delta(" three"), 2)
    change = text.push(delta("e and", withdrawn=8), 3)
    # " three" and "wo" are withdrawn; the rest of the first piece keeps its time.
    assert change.withdrawn == (Piece("one two", Times(1000, 1000)), Piece(" three", Times(1000, 2000)))
    assert change.appended == (Piece("one t", Times(1000, 1000)), Piece("e and", Times(1000, 3000)))
    assert change.withdrawn_text == "wo three"
    assert text.emissions() == [
        Emission("one", 1000, 1000),
        Emission("te", 1000, 3000),
        Emission("and", 1000, 3000),
    ]
    assert text.withdrawn_units == 2


def test_a_sentence_that_begins_anew_is_still_set_apart() -> None:
    text = TextSoFar("word")
    for received_s, change in enumerate(
        [delta("Yes."), delta("No", sentence=1), delta("", sentence=1, withdrawn=2), delta("Now", sentence=1)]
    ):
        text.push(change, received_s)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "Now"]
    assert text.withdrawn_units == 1
    assert [piece.mark.gap for piece in text.push(delta("w.", sentence=1, withdrawn=1), 4).appended] == [" ", ""]


def test_text_that_does_not_exist_cannot_be_withdrawn() -> None:
    text = TextSoFar("char")
    text.push(delta("早"), 1)
    with pytest.raises(TextChangeError, match="withdraws 2 of 1 characters"):
        text.push(delta("晚", withdrawn=2), 2)


def test_a_stream_that_only_appends_withdraws_nothing() -> None:
    text = TextSoFar("char")
    text.push(delta("早"), 1)
    change = text.push(delta(""), 2)
    assert (change.withdrawn, change.withdrawn_text, [piece.text for piece in change.appended]) == ((), "", [""])
    assert text.withdrawn_units == 0


def test_committed_text_has_the_time_at_which_it_was_committed() -> None:
    changes = [
        SourceDelta(0, "en", "the quick", 0, 0, heard_s=1.0),
        SourceDelta(0, "en", " fox", 0, 3, heard_s=2.0),
        SourceDelta(0, "en", "brown fox", 9, 13, heard_s=3.0),  # "quick fox" is withdrawn
    ]
    only, displayed, committed = CommittedOnly(), TextSoFar("word"), TextSoFar("word")
    for received_s, change in enumerate(changes, 1):
        displayed.push(change, received_s + 0.5)
        committed.push(only.push(change), received_s + 0.5)
    assert displayed.withdrawn_units == 2
    assert committed.withdrawn_units == 0
    assert displayed.emissions() == [
        Emission("the", 1000, 1500),
        Emission("brown", 3000, 3500),
        Emission("fox", 3000, 3500),
    ]
    assert committed.emissions() == [
        Emission("the", 2000, 2500),
        Emission("brown", 3000, 3500),
        Emission("fox", 3000, 3500),
    ]


def test_a_token_that_is_committed_later_is_a_part_of_a_longer_change() -> None:
    only = CommittedOnly()
    assert only.push(delta("早")) == Delta(0, "zh", "", log_probability=-0.1, heard_s=1.0)
    assert only.push(Delta(0, "zh", "上", 0, 2, token=5)) == Delta(0, "zh", "早上", 0, 2)
    only.forget(0)
    assert only.push(Delta(0, "zh", "晚", 0, 1)).text == "晚"
