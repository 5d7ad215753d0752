"""Words and characters, and when each was emitted."""

from itertools import accumulate

from pipeline.events import TargetText
from pipeline.media.latency.emissions import Emission, TextSoFar, unit_of, units


def state(text: str, sentence: int = 0, heard_s: float = 1.0) -> TargetText:
    return TargetText(sentence, "zh", text, heard_s=heard_s)


def test_chinese_is_counted_in_characters_and_english_in_words():
    assert (unit_of("zh"), unit_of("zho_Hans"), unit_of("en"), unit_of("de")) == ("char", "char", "word", "word")
    assert units(" one  two\nthree", "word") == ["one", "two", "three"]
    assert units("一 二三 ", "char") == ["一", "二", "三"]


def test_a_word_is_emitted_with_its_last_letter():
    text = TextSoFar("word")
    for received_s, newest in enumerate(accumulate(["Good", " morn", "ing", ", all", "."])):
        text.push(state(newest), received_s)
    assert text.emissions() == [
        Emission("Good", 1000, 0),
        Emission("morning,", 1000, 3000),
        Emission("all.", 1000, 4000),
    ]


def test_characters_of_one_piece_come_together_and_spaces_do_not_count():
    text = TextSoFar("char")
    text.push(state("早上 "), 1.5)
    text.push(state("好。", 1, heard_s=4.0), 4.25)
    assert text.emissions() == [
        Emission("早", 1000, 1500),
        Emission("上", 1000, 1500),
        Emission("好", 4000, 4250),
        Emission("。", 4000, 4250),
    ]


def test_sentences_of_a_spaced_language_do_not_run_together():
    text = TextSoFar("word")
    text.push(state("Yes."), 1)
    text.push(state("No", 1), 2)
    text.push(state("No.", 1), 3)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No."]
    text.push(state("", 2), 4)  # the leading space of a sentence, a separate token
    text.push(state("0", 2), 5)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "No.", "0"]


def test_withdrawn_text_is_gone_and_counted():
    text = TextSoFar("word")
    text.push(state("one two"), 1)
    text.push(state("one two three"), 2)
    change = text.push(state("one te and"), 3)
    # " three" and "wo" are withdrawn; the rest of the first piece keeps its time.
    assert change.withdrawn == (Emission("one two", 1000, 1000), Emission(" three", 1000, 2000))
    assert change.appended == (Emission("one t", 1000, 1000), Emission("e and", 1000, 3000))
    assert text.emissions() == [Emission("one", 1000, 1000), Emission("te", 1000, 3000), Emission("and", 1000, 3000)]
    assert text.withdrawn_units == 2


def test_a_sentence_that_begins_anew_is_still_set_apart():
    text = TextSoFar("word")
    for received_s, newest in enumerate([state("Yes."), state("No", 1), state("", 1), state("Now", 1)]):
        text.push(newest, received_s)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "Now"]
    assert text.withdrawn_units == 1
    assert [piece.gap for piece in text.push(state("Nor", 1), 4).appended] == [" ", ""]


def test_a_stream_that_only_appends_withdraws_nothing():
    text = TextSoFar("char")
    text.push(state("早"), 1)
    change = text.push(state("早"), 2)
    assert (change.withdrawn, [piece.text for piece in change.appended]) == ((), [""])
    assert text.withdrawn_units == 0


def test_a_text_begins_without_a_gap_until_something_stands_before_it():
    text = TextSoFar("word")
    gaps = [
        [piece.gap for piece in text.push(each, 1).appended][-1]
        for each in (state("", 0), state("Yes", 1), state("", 1), state("No", 1), state("So", 2))
    ]
    assert gaps == ["", "", "", "", " "]


def test_sentences_are_emitted_in_their_order_until_they_are_forgotten():
    text = TextSoFar("word")
    text.push(state("Bye.", 1), 1)
    text.push(state("Yes.", 0), 2)
    assert [emission.text for emission in text.emissions()] == ["Yes.", "Bye."]
    text.forget(0)
    assert (text.has(0), text.has(1), text.empty) == (False, True, False)
    text.forget(1)
    assert text.empty
