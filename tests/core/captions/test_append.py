"""Text for readers that take nothing back, from any valid stream of events."""

import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.captions.append import AppendOnlySentences, AppendOnlyText, Piece, joined_text
from pipeline.core.captions.states import State
from pipeline.events import PipelineEvent, SourceSentence, SourceText, TargetText, Translation
from pipeline.languages.chinese import conversion
from pipeline.languages.marks import letters
from tests.media.subtitles.strategies import CHINESE, ENGLISH
from tests.streams import Stream, spoken, streams


def pieces(text: AppendOnlyText, events: Iterable[PipelineEvent], language: str = "") -> list[str]:
    """What each event appends to the source, or to one translation."""
    found = []
    for event in events:
        if isinstance(event, TargetText | Translation if language else SourceText | SourceSentence):
            assert isinstance(event, State)
            if not language or event.language == language:
                found.append(joined_text(text.push(event)))
    return found


def whole(stream: Stream, language: str = "") -> str:
    """The final text of the source, or of one translation."""
    if not language:
        return " ".join(text for text in stream.sources.values() if text)
    texts = [text for (_, each), text in stream.translations.items() if each == language and text]
    return ("" if language == "zh" else " ").join(texts)


@given(streams(st.one_of(ENGLISH, CHINESE)))
def test_final_text_adds_up_to_the_text(stream):
    """Readers of a recording, and of drafts of which nothing is steady."""
    final = [event for event in stream.events if isinstance(event, SourceSentence | Translation)]
    for language in ("", "zh", "de"):
        text = AppendOnlyText()
        assert "".join(pieces(text, final, language)) == whole(stream, language)
        assert not text.differing


@given(streams(ENGLISH))
def test_what_differs_from_the_final_text_is_counted(stream):
    for language in ("", "de"):
        text = AppendOnlyText()
        appended = "".join(pieces(text, stream.events, language))
        assert text.differing or appended.split() == whole(stream, language).split()


@given(st.lists(ENGLISH.filter(str.strip), min_size=1, max_size=4), st.data())
def test_right_drafts_give_the_final_text_in_whole_words(texts, data):
    text, found = AppendOnlyText(), list[str]()
    for number, final in enumerate(texts):
        words = final.split(" ")
        cuts = data.draw(st.lists(st.integers(0, len(words)), max_size=3).map(sorted))
        states: list[State] = []
        for cut in cuts:
            steady = len(" ".join(words[:cut]))
            states.append(
                SourceText(number, "en", final[:steady] + data.draw(st.sampled_from(["", " wro", "x"])), steady)
            )
        for state in [*states, SourceSentence(number, "en", final)]:
            found.append(joined_text(text.push(state)))
    assert "".join(found) == " ".join(texts)
    assert all(piece.startswith(" ") for piece in [piece for piece in found if piece][1:])
    assert not text.differing


@pytest.mark.parametrize(
    "text", ["她的头发很长。", "我们理发以后再去后面。", "皇后面条", "干燥的饼干", "请给我一个复制的答复", "一只面包"]
)
def test_text_is_converted_as_a_whole_wherever_it_is_steady(text):
    convert = conversion("Hant", "TW")
    for cut in range(1, len(text)):
        states = (
            TargetText(0, "zh", text[:cut], cut),
            TargetText(0, "zh", text, len(text)),
            Translation(0, "zh", text),
        )
        appended = AppendOnlyText()
        assert "".join(joined_text(appended.push(state, convert)) for state in states) == convert(text)


def test_text_comes_when_it_is_steady_and_sentences_are_set_apart():
    text = AppendOnlyText()
    assert joined_text(text.push(SourceText(0, "en", "Thank you fo", steady=5))) == "Thank"
    assert joined_text(text.push(SourceText(0, "en", "Thank you all.", steady=14))) == " you all."
    assert joined_text(text.push(SourceSentence(0, "en", "Thank you all.", 0.0, 1.0))) == ""
    assert pieces(text, spoken(1, "Bye.")) == [" Bye.", ""]
    assert pieces(text, spoken(2, "再见。", language="zh")) == ["再见。", ""]


def test_text_that_turns_out_otherwise_goes_on_after_the_words_that_correspond():
    text = AppendOnlyText()
    assert joined_text(text.push(SourceText(0, "en", "He leafs at nine", steady=11))) == "He leafs at"
    assert joined_text(text.push(SourceSentence(0, "en", "She leaves at nine. Bye."))) == " nine. Bye."
    assert text.differing == 2


def test_words_of_a_sentence_that_was_divided_are_appended_once():
    text = AppendOnlyText()
    assert joined_text(text.push(SourceText(0, "en", "Good morning we begin", steady=21))) == "Good morning we begin"
    assert joined_text(text.push(SourceSentence(0, "en", "Good morning."))) == ""
    assert joined_text(text.push(SourceSentence(1, "en", "We begin now."))) == " now."


def test_a_word_that_was_withdrawn_is_not_the_beginning_of_the_one_before_it():
    text = AppendOnlyText()
    assert joined_text(text.push(SourceText(0, "en", "the", steady=3))) == "the"
    assert joined_text(text.push(SourceText(1, "en", "t", steady=1))) == " t"
    text.push(SourceText(1, "en", ""))
    assert joined_text(text.push(SourceSentence(0, "en", "the"))) == ""


def test_a_number_that_was_withdrawn_is_used_again():
    text = AppendOnlyText()
    for state in (SourceText(0, "en", "Hm"), SourceText(0, "en", ""), SourceText(0, "en", "Yes, sir", steady=4)):
        last = text.push(state)
    assert joined_text(last) == "Yes,"
    assert joined_text(text.push(SourceSentence(0, "en", "Yes, sir."))) == " sir."


def test_what_is_kept_does_not_grow_with_the_session():
    text = AppendOnlyText()
    text.push(Translation(1_000, "pt", "Um."))
    before = len(pickle.dumps(text))
    for number in range(1_001, 2_000):
        text.push(Translation(number, "pt", "Um."))
    assert len(pickle.dumps(text)) == before


@given(streams(ENGLISH))
def test_whole_sentences_add_up_to_the_appended_text(stream):
    text, sentences, appended, given_sentences = AppendOnlyText(), AppendOnlySentences(), "", []
    for event in stream.events:
        if isinstance(event, SourceText | SourceSentence):
            appended += joined_text(text.push(event))
            given_sentences += sentences.push(event)
    assert [letters(word) for one in given_sentences for word in one.text.split() if letters(word)] == [
        letters(word) for word in appended.split() if letters(word)
    ]


def test_a_sentence_is_given_once_when_it_is_steady_and_more_follows():
    sentences = AppendOnlySentences()
    assert not sentences.push(TargetText(0, "pt", "Bom dia.", 8))
    assert not sentences.push(TargetText(1, "pt", "Vamos começ"))
    assert sentences.push(TargetText(1, "pt", "Vamos começar", 5)) == [Piece(0, "Bom dia.")]
    assert not sentences.push(Translation(0, "pt", "Bom dia."))
    assert sentences.push(Translation(1, "pt", "Vamos comer já.")) == [Piece(1, "Vamos comer já.")]


def test_marks_alone_are_no_sentence():
    sentences = AppendOnlySentences()
    assert sentences.push(Translation(0, "pt", "…")) == []
    assert sentences.push(Translation(1, "pt", "Sim…")) == [Piece(1, "Sim…")]


def test_what_is_withdrawn_holds_up_nothing():
    text = AppendOnlyText()
    text.push(SourceText(0, "en", "Hm"))
    assert joined_text(text.push(SourceText(1, "en", "Yes, sir", steady=4))) == ""  # what is before it is not steady
    assert joined_text(text.push(SourceText(0, "en", ""))) == ""
    assert joined_text(text.push(SourceText(1, "en", "Yes, sir", steady=4))) == "Yes,"


def test_the_next_sentence_goes_on_after_what_was_said_of_it():
    text = AppendOnlyText()
    text.push(SourceText(0, "en", "Yes.", steady=4))
    assert joined_text(text.push(SourceText(1, "en", "We go now", steady=5))) == " We go"
    text.push(SourceSentence(0, "en", "Yes."))
    assert joined_text(text.push(SourceText(1, "en", "We go now", steady=9))) == " now"
    assert not text.differing
