"""Texts in progress: what may replace what, which are open, and which of two that wait is left out."""

from dataclasses import replace

import pytest

from pipeline.core.captions.states import OpenTexts, TextChangeError, place_of
from pipeline.events import EndOfInput, SourceSentence, SourceText, TargetText, Translation


@pytest.mark.parametrize("text", ["ab", "a", "xyz"])
def test_a_draft_may_change(text):
    texts = OpenTexts()
    texts.push(TargetText(3, "zh", "ab", steady=1))
    texts.push(TargetText(3, "zh", text))
    assert texts.get(3, "zh").text == text


@pytest.mark.parametrize("number", [0, 1])
def test_what_was_said_is_final_with_its_sentence(number):
    texts = OpenTexts()
    for ended in (1, 0):
        texts.push(SourceSentence(ended, "en", "Yes."))
    with pytest.raises(TextChangeError, match=f"the text of sentence {number} is final; it cannot become 'No'"):
        texts.push(SourceText(number, "en", "No"))
    texts.push(SourceText(2, "en", "No"))


@pytest.mark.parametrize("steady", [-1, 3])
def test_no_more_is_steady_than_there_is(steady):
    with pytest.raises(TextChangeError, match=f"the translation into zh of sentence 3 is 'ab', with {steady} steady"):
        OpenTexts().push(TargetText(3, "zh", "ab", steady=steady))


def test_texts_of_sentences_and_languages_are_kept_apart():
    texts = OpenTexts()
    source, french, later = SourceText(0, "en", "Yes"), TargetText(0, "en", "Oui"), SourceText(1, "en", "And")
    german = TargetText(0, "de", "Ja")
    assert [texts.push(each) for each in (source, french, later, german)] == [None] * 4  # whatever a language is called
    assert [texts.get(0), texts.get(0, "en"), texts.get(0, "de"), texts.get(1)] == [source, french, german, later]
    newer = replace(source, language="fr", text="Si")  # a draft may change the language
    assert (texts.push(newer), texts.get(0)) == (source, newer)
    assert texts.push(SourceSentence(0, "fr", "Si")) is newer
    assert (texts.get(0), texts.get(0, "en")) == (None, french)
    assert texts.push(Translation(0, "en", "Oui")) is french
    assert texts.push(Translation(0, "en", "Oui")) is texts.push(EndOfInput()) is None
    texts.forget_until(1)
    assert (texts.get(0, "de"), texts.get(1)) == (None, later)


@pytest.mark.parametrize("withdrawn", [SourceText(0, "en", ""), TargetText(0, "zh", "", complete=True)])
def test_nothing_is_kept_of_a_text_that_is_withdrawn(withdrawn):
    texts = OpenTexts()
    shown = replace(withdrawn, text="Noise")
    texts.push(shown)
    assert texts.push(withdrawn) is shown
    assert texts.push(withdrawn) is None


def test_a_translation_that_begins_anew_stays_in_progress():
    texts = OpenTexts()
    texts.push(TargetText(0, "zh", "Noise"))
    again = TargetText(0, "zh", "")
    texts.push(again)
    assert texts.get(0, "zh") is again


@pytest.mark.parametrize(
    ("event", "place"),
    [
        (SourceText(1, "fr", "d"), -3),
        (TargetText(1, "zh", "d"), -2),
        (TargetText(1, "de", "d"), -1),
        (TargetText(1, "en", "d"), None),  # none waits
        (SourceText(0, "en", "d"), None),  # before the end of another sentence
        (SourceSentence(1, "en", "d"), None),
    ],
)
def test_a_state_takes_the_place_of_an_older_one_of_the_same_text(event, place):
    waiting = [
        SourceText(0, "en", "a"),
        SourceSentence(0, "en", "a"),
        SourceText(1, "en", "b"),
        TargetText(1, "zh", "b"),
        TargetText(1, "de", "b"),
    ]
    assert place_of(event, reversed(waiting)) == place
