"""Sentences from events: where their text may break, who says them, and what is built before they are final."""

import pytest

from pipeline.events import SourceSentence, SourceText, TargetText, TargetToken, Transcript, Translation, Word
from pipeline.media.subtitles import sentences
from pipeline.media.subtitles.early import EarlySentenceBuilder
from pipeline.media.subtitles.sentences import Sentence, SentenceBuilder
from pipeline.media.subtitles.spoken import whisper_segment, whisper_words
from tests.streams import spoken, translated


def pushed(builder, events):
    return [found for event in events if (found := builder.push(event)) is not None]


def text_of(number: int, text: str, ends: list[int]) -> TargetText:
    """A translation, with a token up to each end."""
    return TargetText(number, "zh", text, tokens=tuple(TargetToken(5, -0.1, end) for end in ends), complete=True)


def test_the_seams_of_a_sentence_are_those_of_its_own_newest_text_as_it_is_shown():
    builder = SentenceBuilder()
    said = [*spoken(0, "Yes, no."), *spoken(1, "So.")]
    events = [text_of(0, "是", [1]), text_of(0, " 是，  不。", [2, 6, 7]), Translation(0, "zh", " 是，  不。")]
    assert pushed(builder, [*said, *events])[0].seams == {1, 4, 5}
    # A draft of the next sentence has come since.
    late = [text_of(1, "所以。", [2, 3]), text_of(2, "那么", [1]), Translation(1, "zh", "所以。")]
    assert [each.seams for each in pushed(builder, late)] == [frozenset()]


def test_a_name_moves_the_seams_and_is_said_when_text_is_shown():
    builder = SentenceBuilder(named=True, bilingual=True)
    whole = Sentence(0.0, 1.0, "Yes.", "Ana：是。", frozenset({5, 6}), speaker="Ana")

    def said(number, text, speaker, ends=()):
        source = SourceSentence(number, "en", "Yes.", 0.0, 1.0, speaker=speaker)
        return pushed(builder, [source, text_of(number, text, list(ends)), Translation(number, "zh", text)])

    (first,) = said(0, "是。", "Ana", [1, 2])
    assert (first.text, first.seams, first.speaker) == (whole.text, whole.seams, "Ana")
    assert [each.text for each in said(1, "", "Ben")] == [""]  # its source alone is shown
    assert [each.text for each in said(2, "不。", "Ana")] == ["不。"]  # still the same
    assert [each.text for each in said(3, "不。", "Ben")] == ["Ben：不。"]


def test_two_sentences_joined_have_the_seams_of_both_and_the_end_of_the_later():
    one = Sentence(1.0, 3.0, "Yes.", "是。", frozenset({1}), before_pause=False, speaker="Ana")
    two = Sentence(2.0, 2.5, "No way.", "不行。", frozenset({2}), before_pause=True, speaker="Ana")
    both = one.joined(two)
    assert (both.text, both.source, both.seams) == ("是。不行。", "Yes. No way.", {1, 2, 4})
    assert (both.start_s, both.end_s, both.before_pause, both.speaker) == (1.0, 3.0, True, "Ana")
    assert two.joined(one).before_pause is False
    assert Sentence(0.0, 1.0, "", "Ja.").joined(Sentence(1.0, 2.0, "", "Nein.")).text == "Ja. Nein."


def test_translations_may_be_some_sentences_behind_and_then_the_oldest_sources_are_forgotten(monkeypatch):
    monkeypatch.setattr(sentences, "_MAX_WAITING", 3)
    builder = SentenceBuilder()
    said = [event for number in range(4) for event in spoken(number, f"Number {number}.")]
    found = pushed(builder, [*said, *(event for number in range(4) for event in translated(number, ["号。"]))])
    assert [each.source for each in found] == ["Number 1.", "Number 2.", "Number 3."]


def test_a_sentence_is_built_early_with_the_times_and_the_speaker_of_what_is_said():
    builder = EarlySentenceBuilder("de")

    def built(*events):
        return [found for event in events for found in builder.push(event)]

    first = SourceText(0, "en", "Where  is it?", 12, 1.0, 2.5, 2.6, speaker="Ana")
    second = SourceText(1, "en", "Here it", 4, 3.0, 3.5)
    assert built(first, TargetText(0, "de", "Wo ist es?", 10)) == []
    assert built(TargetText(0, "fr", "Où ?", 4), TargetText(1, "fr", "Ici", 3)) == []  # another reader's
    (early,) = built(second, TargetText(1, "de", "Hier", 4))
    assert (early.text, early.source, early.start_s, early.end_s, early.speaker) == (
        *("Wo ist es?", "Where is it?", 1.0, 2.5, "Ana"),
    )
    final = [SourceSentence(0, "en", "Where is it?", 1.0, 2.4), Translation(0, "de", "Wo ist es?")]
    assert built(*final) == []  # it was sent
    assert list(builder._sources) == [1]
    (late,) = built(SourceSentence(1, "en", "Here it is.", 3.0, 4.0), Translation(1, "de", "Hier ist es."))
    assert (late.text, late.source, late.end_s) == ("Hier ist es.", "Here it is.", 4.0)
    assert builder._sources == {}


def test_a_sentence_that_ends_otherwise_keeps_the_words_that_were_steady():
    builder = EarlySentenceBuilder("de")
    for event in (SourceText(0, "en", "Here it", 7), TargetText(0, "de", "Hier war", 8)):
        assert builder.push(event) == []
    builder.push(SourceSentence(0, "en", "Here it is."))
    assert [sent.text for sent in builder.push(Translation(0, "de", "Hier ist es."))] == ["Hier war es."]
    assert builder.differing == 1


HEARD = Transcript(0, 1.0, 2.0, "Yes.", "en", 0.1, -0.2, 1.3)


@pytest.mark.parametrize(
    ("heard", "measures"),
    [
        ([], (0.0, 1.0, 0.0)),
        ([HEARD], (-0.2, 1.3, 0.1)),
        ([HEARD, Transcript(1, 2.0, 3.0, "No.", "en", 0.5, -0.1, 1.1)], (-0.2, 1.3, 0.5)),  # the worst of each
        ([HEARD, Transcript(1, 0.0, 1.0, "No.", "en", 0.5, -0.9, 2.0)], (-0.2, 1.3, 0.1)),  # before it
        ([HEARD, Transcript(1, 3.0, 4.0, "No.", "en", 0.5, -0.9, 2.0)], (-0.2, 1.3, 0.1)),  # after it
        ([HEARD, Transcript(1, 1.0, 3.0, "No.", "en", 0.5, -0.9, 2.0, speaker="Ben")], (-0.2, 1.3, 0.1)),
        ([HEARD, Transcript(1, 1.0, 3.0, "No.", "en", 0.5, -0.9, 2.0, rejected="uncertain")], (-0.2, 1.3, 0.1)),
    ],
)
def test_the_measures_of_a_sentence_are_the_worst_of_what_was_heard_of_it(heard, measures):
    found = whisper_segment(0, SourceSentence(0, "en", "Yes. No.", 1.0, 3.0), "Yes. No.", heard)
    assert tuple(found[name] for name in ("avg_logprob", "compression_ratio", "no_speech_prob")) == measures


def test_a_word_has_its_probability_if_it_is_known():
    words = (Word("Yes", 1.0, 1.5, probability=0.0), Word(" now", 1.5, 2.0))
    found = whisper_words(SourceSentence(0, "en", "Yes now", 1.0, 2.0, words=words))
    assert [each.get("probability") for each in found] == [0.0, None]
