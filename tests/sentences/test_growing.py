"""The one type that applies changes of text: what it allows, and that all ways of applying changes agree."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Delta, EndOfInput, SourceDelta, SourceSentence, Translation
from pipeline.sentences.growing import GrowingText, OpenTexts, TextChangeError, edit, merged


@dataclass(frozen=True)
class Step:
    """A change of a text, and the text after it."""

    change: Delta
    text: str


@st.composite
def valid_changes(draw: st.DrawFn, sentence: int = 0, language: str = "zh") -> list[Step]:
    steps: list[Step] = []
    text, committed = "", 0
    for _ in range(draw(st.integers(0, 8))):
        withdrawn = draw(st.integers(0, len(text) - committed))
        added = draw(st.text("ab 你。", max_size=4))
        text = text[: len(text) - withdrawn] + added
        committed = draw(st.integers(committed, len(text)))
        steps.append(Step(Delta(sentence, language, added, withdrawn, committed, token=1), text))
    return steps


@given(valid_changes())
def test_changes_add_up_and_what_is_committed_stays(steps: list[Step]) -> None:
    text = GrowingText()
    committed = ""
    for step in steps:
        before = text.text
        applied = text.apply(step.change)
        assert text.text == step.text
        assert text.text.startswith(committed)
        assert len(text) == len(step.text)
        assert text.committed_text + text.draft == text.text
        assert "".join(piece.text for piece in text.pieces) == text.text
        assert before.endswith(applied.withdrawn_text)
        assert len(applied.withdrawn_text) == step.change.withdrawn
        committed = text.committed_text


@given(valid_changes(), st.data())
def test_changes_taken_together_give_the_same_text(steps: list[Step], data: st.DataObject) -> None:
    text = GrowingText()
    waiting: Delta | None = None
    for step in steps:
        both = merged(waiting, step.change) if waiting is not None else step.change
        assert isinstance(both, Delta)
        waiting = both
        if data.draw(st.booleans()):
            text.apply(waiting)
            waiting = None
            assert text.text == step.text
    if waiting is not None:
        text.apply(waiting)
    assert text.text == (steps[-1].text if steps else "")
    assert text.committed == (steps[-1].change.committed if steps else 0)


def test_only_changes_of_one_text_are_taken_together() -> None:
    first = Delta(0, "zh", "早")
    assert merged(first, Delta(1, "zh", "好")) is None
    assert merged(first, Delta(0, "de", "Guten")) is None
    assert merged(SourceDelta(0, "zh", "早"), first) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Delta(0, "zh", "", withdrawn=2, committed=1), "withdraws 2 of 2 characters, of which 1 are committed"),
        (Delta(0, "zh", "", withdrawn=3, committed=1), "withdraws 3 of 2"),
        (Delta(0, "zh", "", withdrawn=-1, committed=1), "withdraws -1"),
        (Delta(0, "zh", "c", committed=0), "commits 0 characters of 3"),
        (Delta(0, "zh", "c", committed=4), "commits 4 characters of 3"),
    ],
)
def test_a_change_of_committed_text_is_refused_and_changes_nothing(change: Delta, message: str) -> None:
    text = GrowingText()
    text.apply(Delta(0, "zh", "ab", committed=1))
    with pytest.raises(TextChangeError, match=message):
        text.apply(change)
    assert (text.text, text.committed) == ("ab", 1)


@given(st.text("abc你", max_size=6), st.text("abc你", max_size=6))
def test_an_edit_is_the_smallest_one_at_the_end(old: str, new: str) -> None:
    withdrawn, text = edit(old, new)
    assert old[: len(old) - withdrawn] + text == new
    assert not (withdrawn and text and old[len(old) - withdrawn] == text[0])


@given(valid_changes(0, "zh"), valid_changes(0, "de"), valid_changes(1, "zh"), st.randoms(use_true_random=False))
def test_texts_of_several_sentences_and_languages_do_not_mix(
    first: list[Step], second: list[Step], third: list[Step], random: object
) -> None:
    texts = OpenTexts()
    rest = [list(steps) for steps in (first, second, third) if steps]
    while rest:
        steps = random.choice(rest)  # type: ignore[attr-defined]
        step = steps.pop(0)
        changed = texts.push(step.change)
        assert changed is not None
        assert changed.text == step.text
        if not steps:
            rest.remove(steps)
            finished = texts.push(Translation(step.change.sentence, step.change.language, step.text))
            assert finished is changed


def test_source_and_translation_grow_apart_and_are_forgotten() -> None:
    texts = OpenTexts()
    texts.push(SourceDelta(0, "en", "Yes"))
    texts.push(Delta(0, "en", "Oui"))  # whatever the language is called
    source = texts.push(SourceSentence(0, "en", "Yes"))
    assert source is not None
    assert source.text == "Yes"
    assert texts.push(EndOfInput()) is None
    texts.forget("en")
    translation = texts.push(Translation(0, "en", ""))
    assert translation is not None
    assert translation.text == ""
    again = texts.push(SourceDelta(0, "en", "No"))
    assert again is not None
    assert again.text == "No"
