"""Masked words: what is masked, and how a text grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.captions.masking import Masking
from pipeline.core.captions.states import OpenTexts
from pipeline.events import (
    Correction,
    EndOfInput,
    MissingSpeech,
    SourceSentence,
    SourceText,
    TargetText,
    Transcript,
    Translation,
    Word,
)
from tests.streams import Stream, spoken, streams, translated

WORDS = [
    ("", "as"),
    ("en", "go to hell"),
    ("en", "go away"),
    ("zh", "他妈的"),
    ("de", "Straße"),
    ("de", "l'été"),
    ("hi", "हिन्दी"),
]


@pytest.mark.parametrize(
    ("text", "language", "masked"),
    [
        ("As as, ass AS.", "en", "A* a*, ass A*."),
        ("Go to  hell! Go to him.", "en", "G* **  ****! Go to him."),
        ("Go to hell", "de", "Go to hell"),
        ("Go to. Hell", "en", "Go to. Hell"),
        ("我他妈的！", "zh-TW", "我他**！"),
        ("其他，妈的", "zh", "其他，妈的"),
        ("STRASSE strassen", "de", "S****** strassen"),
        ("L'e\u0301te\u0301, l’été", "de", "L'*****, l’***"),
        ("हिन्दी है", "hi", "ह***** है"),
        ("class", "zh", "class"),
        ("用as的", "zh", "用a*的"),
    ],
)
def test_a_listed_word_keeps_its_first_letter(text, language, masked):
    assert Masking(WORDS).text(text, language) == masked


def test_one_letter_is_masked_whole():
    assert Masking([("zh", "屎")]).text("屎。", "zh") == "*。"


@pytest.mark.parametrize(
    ("text", "steady"),
    [
        ("I was as", "I was "),  # "ass" may follow
        ("I was ass", "I was ass"),
        ("I was as.", "I was as."),
        ("I g", "I "),
        ("They go to", "They "),
        ("They go to ", "They "),
        ("They go to h", "They "),
        ("They go to him", "They go to him"),
        ("go go", "go "),
        ("They go to hell", "They "),
        ("They go to hell ", "They "),
        ("They go to hell, but", "They go to hell, but"),
    ],
)
def test_text_that_may_become_a_listed_word_is_not_steady_yet(text, steady):
    assert Masking(WORDS).push(SourceText(0, "en", f"{text}…", len(text))).steady == len(steady)


def test_a_draft_is_masked():
    masking = Masking([("en", "damn")])
    shown = [masking.push(SourceText(0, "en", text, len(text))) for text in ("Oh dam", "Oh damn", "Oh damn it dam")]
    shown.append(masking.push(SourceSentence(0, "en", "Oh damn it damn")))
    assert [(event.text, event.steady) for event in shown] == [
        ("Oh dam", 3),
        ("Oh d***", 3),
        ("Oh d*** it dam", 11),
        ("Oh d*** it d***", 15),
    ]


def test_words_transcripts_and_terms_are_masked_too():
    masking = Masking([("en", "damn")])
    words = (Word(" A", 0, 1), Word(" damn", 1, 2, heard="damn it"), Word(" day.", 2, 3))
    sentence = masking.push(SourceSentence(0, "en", "A damn day.", words=words, terms=("Damn",)))
    assert sentence.text == "A d*** day."
    assert sentence.terms == ("D***",)
    assert [word.text for word in sentence.words] == [" A", " d***", " day."]
    assert [word.heard for word in sentence.words] == [None, "d*** it", None]
    translation = masking.push(Translation(0, "de", "Ein damn.", terms=("Damn",), missed_terms=("damn day",)))
    assert (translation.text, translation.terms, translation.missed_terms) == ("Ein damn.", ("D***",), ("d*** day",))
    missing = (MissingSpeech(3, 4, "uncertain", "damn"),)
    transcript = masking.push(Transcript(0, 0, 4, " A damn day.".strip(), "en", words=words, missing=missing))
    assert (transcript.text, transcript.missing[0].text) == ("A d*** day.", "d***")
    assert "".join(word.text for word in transcript.words) == " A d*** day."
    others = [EndOfInput(4.0), Correction(0, "", "damn")]
    assert [masking.push(event) for event in others] == others


def test_a_word_that_is_listed_later_is_masked_from_then_on():
    masking = Masking()
    first = masking.push(TargetText(0, "en", "So damn", 7))
    other = masking.fresh()
    masking.add("en-GB", "damn")
    second = masking.push(TargetText(0, "en", "So damn, damn", 13))
    assert (first.text, second.text, second.steady) == ("So damn", "So d***, d***", 9)
    assert masking.push(Translation(1, "en", "Damn.")).text == "D***."
    assert other.push(Translation(1, "en", "Damn.")).text == "Damn."
    assert masking.fresh().push(Translation(1, "en", "Damn.")).text == "D***."
    another = masking.fresh()
    another.add("en", "drat")  # of a language that has words already
    assert [each.text("drat", "en") for each in (another, masking)] == ["d***", "drat"]


LISTED = st.lists(
    st.tuples(st.sampled_from(["", "en", "zh", "de"]), st.sampled_from(["a", "ab", "a b", "b a b", "x", "是", "是的", "y a"])),
    max_size=4,
)  # fmt: skip


@given(streams(st.text("ab x是的.", max_size=8)), LISTED, st.integers(0, 40))
def test_no_stream_changes_final_text_or_its_length(stream: Stream, words, added_at):
    masking, texts, after = Masking(words[1:]), OpenTexts(), Masking(words)
    for at, event in enumerate(stream.events):
        if at == added_at:
            for language, word in words[:1]:
                masking.add(language, word)
        shown = masking.push(event)
        texts.push(shown)  # raises TextChangeError
        if isinstance(event, SourceText | TargetText | SourceSentence | Translation):
            assert len(shown.text) == len(event.text)
            assert shown.steady <= event.steady
            if isinstance(event, SourceSentence | Translation) and added_at == 0:
                assert shown.text == after.text(event.text, event.language)


def test_events_without_listed_words_stay_as_they_are():
    events = [*spoken(0, "Oh damn."), *translated(0, "可恶。"), EndOfInput(1.0)]
    assert [Masking().push(event) for event in events] == events
