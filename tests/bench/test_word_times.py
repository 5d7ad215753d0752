"""When each word was first shown, committed, and whether it changed: hand-computed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.bench.errors import units
from pipeline.bench.word_times import Change, Received, ShownUnit, shown_units, source_changes, target_changes, versions
from pipeline.events import Delta, EndOfInput, SourceDelta
from pipeline.sentences.growing import TextChangeError
from tests.streams import Stream, spoken, streams
from tests.subtitles.strategies import CHINESE, ENGLISH


def changes(*steps: tuple[float, str, int, int], sentence: int = 0) -> list[Change]:
    """Changes of one sentence: (received at, text, withdrawn, committed)."""
    return [
        Change(SourceDelta(sentence, "en", text, withdrawn, committed), elapsed_s)
        for elapsed_s, text, withdrawn, committed in steps
    ]


def test_a_word_is_shown_when_it_first_comes_and_committed_when_it_is_final() -> None:
    found = shown_units(
        changes((1.0, "The meeting", 0, 0), (1.5, " is", 0, 3), (2.5, ".", 0, 11), (4.0, "", 0, 15)), "en"
    )
    assert found == [
        ShownUnit("the", 0, 1.0, 1.5, False),
        ShownUnit("meeting", 0, 1.0, 2.5, False),
        ShownUnit("is", 0, 1.5, 4.0, False),
    ]


def test_a_word_that_replaces_another_is_shown_with_its_own_text_and_has_changed() -> None:
    found = shown_units(changes((1.0, "the whether", 0, 0), (2.0, "weather is", 7, 0), (3.0, "", 0, 14)), "en")
    assert [(unit.text, unit.shown_s, unit.changed) for unit in found] == [
        ("the", 1.0, False),
        ("weather", 2.0, True),
        ("is", 2.0, False),
    ]


def test_a_word_keeps_its_first_time_when_one_before_it_is_corrected() -> None:
    """The stream withdraws from the end: what follows the correction is withdrawn and comes again."""
    found = shown_units(
        changes((1.0, "I have cat", 0, 0), (2.0, "a cat now", 3, 0), (3.0, "We have a cat now", 16, 17)), "en"
    )
    assert [(unit.text, unit.shown_s, unit.changed) for unit in found] == [
        ("we", 3.0, True),
        ("have", 1.0, False),
        ("a", 2.0, False),
        ("cat", 1.0, False),
        ("now", 2.0, False),
    ]


def test_a_word_that_comes_back_keeps_its_first_time_and_has_changed() -> None:
    found = shown_units(changes((1.0, "go home", 0, 0), (2.0, "Rome", 4, 0), (3.0, "home", 4, 7)), "en")
    assert [(unit.text, unit.shown_s, unit.committed_s, unit.changed) for unit in found] == [
        ("go", 1.0, 3.0, False),
        ("home", 1.0, 3.0, True),
    ]


def test_marks_and_capitals_are_no_change() -> None:
    found = shown_units(changes((1.0, "Yes.", 0, 3), (2.0, ", it", 1, 3), (3.0, "It is", 2, 10)), "en")
    assert [(unit.text, unit.shown_s, unit.committed_s, unit.changed) for unit in found] == [
        ("yes", 1.0, 1.0, False),
        ("it", 2.0, 3.0, False),
        ("is", 3.0, 3.0, False),
    ]


def test_a_word_is_committed_only_as_a_whole() -> None:
    found = shown_units(changes((1.0, "Nobody", 0, 2), (2.0, "", 0, 6), (3.0, " went", 0, 8)), "en")
    assert [unit.committed_s for unit in found] == [2.0, None]


def test_text_that_is_dropped_leaves_no_word() -> None:
    assert shown_units(changes((1.0, "um", 0, 0), (2.0, "", 2, 0)), "en") == []
    assert shown_units([], "en") == []


def test_chinese_is_followed_by_characters() -> None:
    found = shown_units([Change(Delta(0, "zh", "早上。", 0, 0), 1.0), Change(Delta(0, "zh", "好。", 1, 4), 2.0)], "zh")
    assert [(unit.text, unit.shown_s, unit.committed_s) for unit in found] == [
        ("早", 1.0, 2.0), ("上", 1.0, 2.0), ("好", 2.0, 2.0),
    ]  # fmt: skip


def test_sentences_are_in_order_and_languages_apart() -> None:
    events = [*spoken(1, "No."), *spoken(0, "Yes."), Delta(0, "de", "Ja."), Delta(0, "zh", "是。"), EndOfInput(3.0)]
    received = [Received(event, float(at)) for at, event in enumerate(events)]
    assert [unit.text for unit in shown_units(source_changes(received), "en")] == ["yes", "no"]
    assert [change.elapsed_s for change in target_changes(received, "zh")] == [5.0]
    with pytest.raises(TextChangeError):
        versions(changes((1.0, "a", 1, 0)))


@given(streams(st.one_of(ENGLISH, CHINESE), languages=["zh"]))
def test_no_word_is_committed_before_it_is_shown(stream: Stream) -> None:
    received = [Received(event, float(at)) for at, event in enumerate(stream.events)]
    for found, texts, language in (
        (shown_units(source_changes(received), "en"), stream.sources, "en"),
        (shown_units(target_changes(received, "zh"), "zh"), {n: t for (n, _), t in stream.translations.items()}, "zh"),
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
