"""Words and characters, and when each was emitted."""

from __future__ import annotations

from pipeline.events import Delta
from pipeline.latency.emissions import Change, Emission, Piece, TextSoFar, unit_of, units


def delta(text: str, heard_s: float = 1.0, segment: int = 0, withdrawn: int = 0) -> Delta:
    return Delta(segment, 0, 0.0, heard_s, text, -0.1, 5, "source", heard_s=heard_s, withdrawn=withdrawn)


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
    text.push(delta("好。", heard_s=4.0, segment=1), 4.25)
    assert text.emissions() == [
        Emission("早", 1000, 1500),
        Emission("上", 1000, 1500),
        Emission("好", 4000, 4250),
        Emission("。", 4000, 4250),
    ]


def test_segments_of_a_spaced_language_do_not_run_together() -> None:
    text = TextSoFar("word")
    text.push(delta("Yes."), 1)
    text.push(delta("No", segment=1), 2)
    text.push(delta(".", segment=1), 3)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No."]
    text.push(delta("", segment=2), 4)  # the leading space of a sentence, a separate token
    text.push(delta("0", segment=2), 5)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No.", "0"]


def test_withdrawn_text_is_gone_and_counted() -> None:
    text = TextSoFar("word")
    text.push(delta("one two"), 1)
    text.push(delta(" three"), 2)
    change = text.push(delta("e and", withdrawn=8), 3)
    # " three" and "wo" are withdrawn; the rest of the first piece keeps its time.
    assert change == Change(
        (Piece("one two", 1000, 1000), Piece(" three", 1000, 2000)),
        (Piece("one t", 1000, 1000), Piece("e and", 1000, 3000)),
    )
    assert text.emissions() == [
        Emission("one", 1000, 1000),
        Emission("te", 1000, 3000),
        Emission("and", 1000, 3000),
    ]
    assert text.withdrawn_units == 2


def test_a_stream_that_only_appends_withdraws_nothing() -> None:
    text = TextSoFar("char")
    text.push(delta("早"), 1)
    assert text.push(delta(""), 2) == Change()
    assert text.withdrawn_units == 0
