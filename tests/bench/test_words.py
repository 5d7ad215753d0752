"""When each word was first shown, committed, and whether it changed: hand-computed."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.bench.words import Newest, Received, ShownUnit, shown_units, source_texts, target_texts, units
from pipeline.events import EndOfInput, SourceText, TargetText
from tests.streams import spoken, streams
from tests.subtitles.strategies import CHINESE, ENGLISH


def states(*steps: tuple[float, str, int]) -> list[Newest]:
    """States of one sentence: (received at, text, committed)."""
    return [Newest(SourceText(0, "en", text, committed), elapsed_s) for elapsed_s, text, committed in steps]


def test_a_word_is_shown_when_it_first_comes_and_committed_when_it_is_final():
    steps = (1.0, "The bus", 0), (1.5, "The bus is", 3), (2.5, "The bus is.", 7), (4.0, "The bus is.", 11)
    found = shown_units(states(*steps), "en")
    assert found == [
        ShownUnit("the", 0, 1.0, 1.5, False),
        ShownUnit("bus", 0, 1.0, 2.5, False),
        ShownUnit("is", 0, 1.5, 4.0, False),
    ]


def test_a_word_that_replaces_another_is_shown_with_its_own_text_and_has_changed():
    found = shown_units(states((1.0, "the whether", 0), (2.0, "the weather is", 0), (3.0, "the weather is", 14)), "en")
    assert [(unit.text, unit.shown_s, unit.changed) for unit in found] == [
        ("the", 1.0, False),
        ("weather", 2.0, True),
        ("is", 2.0, False),
    ]


def test_a_word_keeps_its_first_time_when_one_before_it_is_corrected():
    steps = (1.0, "I have cat", 0), (2.0, "I have a cat now", 0), (3.0, "We have a cat now", 17)
    found = shown_units(states(*steps), "en")
    assert [(unit.text, unit.shown_s, unit.changed) for unit in found] == [
        ("we", 3.0, True),
        ("have", 1.0, False),
        ("a", 2.0, False),
        ("cat", 1.0, False),
        ("now", 2.0, False),
    ]


def test_a_word_that_comes_back_keeps_its_first_time_and_has_changed():
    found = shown_units(states((1.0, "go home", 0), (2.0, "go Rome", 0), (3.0, "go home", 7)), "en")
    assert [(unit.text, unit.shown_s, unit.committed_s, unit.changed) for unit in found] == [
        ("go", 1.0, 3.0, False),
        ("home", 1.0, 3.0, True),
    ]


def test_marks_and_capitals_are_no_change():
    found = shown_units(states((1.0, "Yes.", 3), (2.0, "Yes, it", 3), (3.0, "Yes, It is", 10)), "en")
    assert [(unit.text, unit.shown_s, unit.committed_s, unit.changed) for unit in found] == [
        ("yes", 1.0, 1.0, False),
        ("it", 2.0, 3.0, False),
        ("is", 3.0, 3.0, False),
    ]


def test_a_word_is_committed_only_as_a_whole():
    found = shown_units(states((1.0, "Nobody", 2), (2.0, "Nobody", 6), (3.0, "Nobody went", 8)), "en")
    assert [unit.committed_s for unit in found] == [2.0, None]


def test_text_that_is_dropped_leaves_no_word():
    assert shown_units(states((1.0, "um", 0), (2.0, "", 0)), "en") == []
    assert shown_units([], "en") == []


def test_chinese_is_followed_by_characters():
    before, after = TargetText(0, "zh", "早上。"), TargetText(0, "zh", "早上好。", 4)
    found = shown_units([Newest(before, 1.0), Newest(after, 2.0)], "zh")
    assert [(unit.text, unit.shown_s, unit.committed_s) for unit in found] == [
        ("早", 1.0, 2.0), ("上", 1.0, 2.0), ("好", 2.0, 2.0),
    ]  # fmt: skip


def test_sentences_are_in_order_and_languages_apart():
    targets = TargetText(0, "de", "Ja."), TargetText(0, "zh", "是。")
    events = [*spoken(1, "No."), *spoken(0, "Yes."), *targets, EndOfInput(3.0)]
    received = [Received(event, float(at)) for at, event in enumerate(events)]
    assert [unit.text for unit in shown_units(source_texts(received), "en")] == ["yes", "no"]
    assert [newest.elapsed_s for newest in target_texts(received, "zh")] == [5.0]


@given(streams(st.one_of(ENGLISH, CHINESE), languages=["zh"]))
def test_no_word_is_committed_before_it_is_shown(stream):
    received = [Received(event, float(at)) for at, event in enumerate(stream.events)]
    for found, texts, language in (
        (shown_units(source_texts(received), "en"), stream.sources, "en"),
        (shown_units(target_texts(received, "zh"), "zh"), {n: t for (n, _), t in stream.translations.items()}, "zh"),
    ):
        expected = [unit for _, text in sorted(texts.items()) for unit in units(text, language)]
        assert [unit.text for unit in found] == expected
        for unit in found:
            assert unit.committed_s is not None
            assert unit.shown_s <= unit.committed_s
        for before, after in pairwise(found):
            if before.sentence == after.sentence:
                assert before.committed_s is not None
                assert after.committed_s is not None
                assert before.committed_s <= after.committed_s
