"""Segments that are recognised after the audio before them, and where their own words begin."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.backends.whisper.continuation import consecutive, continued, with_case_of
from pipeline.backends.whisper.words import TimedWord
from pipeline.bench.words import edits, scored_units
from pipeline.core.asr.context import HeardSegment
from pipeline.core.asr.matching import first_new_word, resembles_part
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript, Word
from tests.conftest import EXAMPLES, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut


def spoken(text, *, word_s=0.5, start_s=0.0):
    """Words that follow one another, ``word_s`` each; of Chinese, each character is one."""
    parts = [f" {part}" for part in text.split()] if " " in text or text.isascii() else list(text)
    times = [start_s + word_s * at for at in range(len(parts) + 1)]
    return [Word(part, times[at], times[at + 1]) for at, part in enumerate(parts)]


# The words heard before, those heard in the window, when the new segment begins, the new words.
CASES = [
    ("all heard again", "Where is the", "Where is the post office?", 1.5, "post office?"),
    ("marks and case differ", "Where is the.", "where, is the post office?", 1.5, "post office?"),
    ("a word was cut off", "I would like three tick", "I would like three tickets to Berlin", 2.3, "to Berlin"),
    (
        "half a word, most of its time",
        "I would like three tic",
        "I would like three tickets to Berlin",
        2.4,
        "to Berlin",
    ),
    ("half a word, little of its time", "I would like three tic", "I would like three tickets now", 2.1, "tickets now"),
    ("a cut word is new", "We went to the", "We went to the restaurant in town", 2.2, "restaurant in town"),
    (
        "a number in figures",
        "It closes at a quarter past 11.",
        "It closes at a quarter past eleven. My room",
        3.45,
        "My room",
    ),
    ("a word after a number", "It was in 1998", "It was in 1998 that we met", 2.0, "that we met"),
    ("a word was heard differently", "The fair costs two", "The fare costs two euros now", 2.0, "euros now"),
    ("one word was heard as two", "It is a long the river", "It is along the river bank", 2.5, "bank"),
    ("a word was missed before", "Meet me the station", "Meet me at the station today please", 2.5, "today please"),
    ("nothing is new", "Where is the post office", "Where is the post office?", 2.5, ""),
    ("nothing is new, after a pause", "Where is the post office", "Where is the post office?", 3.4, ""),
    ("a word repeated on purpose", "no no", "no no no no", 1.0, "no no"),
    ("times a little early", "Where is the", "Where is the post office?", 1.8, "post office?"),
    ("times a little late", "Where is the", "Where is the post office?", 1.2, "post office?"),
    (
        "a long text of which many letters differ",
        "The committee will meet again next Thursday afternoon in the small room",
        "The comity will meat again next Thursday after noon in a small room upstairs",
        6.5,
        "upstairs",
    ),
    ("Chinese", "我想买两张", "我想买两张票。", 2.5, "票。"),
    ("Chinese, heard differently", "我想卖两张", "我想买两张去北京的票。", 2.5, "去北京的票。"),
    ("numbers", "The train leaves at 9", "The train leaves at 9 o'clock", 2.5, "o'clock"),
]


@pytest.mark.parametrize(
    ("known", "text", "boundary_s", "new"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_new_words_begin_after_those_that_are_known(known, text, boundary_s, new):
    words = spoken(text)
    found = first_new_word(known, words, boundary_s)
    assert found is not None
    assert "".join(word.text for word in words[found:]).strip() == new


def test_without_known_text_words_at_the_boundary_are_new():
    assert first_new_word("", spoken("Where is the post office?"), 0.0) == 0
    assert first_new_word("", [], 0.0) == 0
    assert first_new_word("...", spoken("Where is it?"), 0.0) == 0


def test_new_words_begin_nowhere_if_the_known_text_is_not_heard():
    known = "The hotel is next to the railway station and"
    assert first_new_word(known, spoken("the museum opens at nine."), 4.5) is None
    assert first_new_word(known, spoken("The hotel and the museum opens at nine."), 1.5) is None
    assert first_new_word(known, [], 4.5) is None


def test_a_text_without_letters_resembles_no_part_of_another():
    assert resembles_part("My room", "Is it my room?")
    assert not resembles_part("...", "Is it my room?")


def test_new_words_begin_nowhere_in_a_number_that_goes_on():
    assert first_new_word("They sold 65,000.", spoken("They sold 65,300 tickets."), 1.25) is None
    assert first_new_word("They sold 65,300", spoken("They sold 65,300 tickets."), 1.25) == 3
    assert first_new_word("They sold 65,000.", spoken("They sold 65,300 tickets."), 1.35) == 3  # heard to its end


@given(st.lists(st.sampled_from(["one", "two", "three", "four"]), min_size=1, max_size=9), st.integers(0, 9))
def test_text_that_is_heard_again_as_it_was_is_found_whole(said, known):
    known = min(known, len(said))
    assert first_new_word(" ".join(said[:known]), spoken(" ".join(said)), 0.5 * known) == known


def halves(whole, share):
    """A segment cut in two without regard to words."""
    at = round(len(whole.samples) * share)
    first = dataclasses.replace(whole, samples=whole.samples[:at], speech_end_sample=None, forced_cut=True)
    return first, dataclasses.replace(
        whole, id=whole.id + 100, start_sample=whole.start_sample + at, samples=whole.samples[at:]
    )


def test_only_adjoining_parts_of_one_segment_are_consecutive():
    first, second = halves(SpeechSegment(0, 0, np.zeros(2_000, np.int16)), 0.5)
    second = dataclasses.replace(second, id=0)
    assert consecutive(first, second)
    assert not consecutive(first, dataclasses.replace(second, id=1))
    assert not consecutive(first, dataclasses.replace(second, start_sample=1_001))


@pytest.mark.slow
def test_words_of_a_sentence_that_was_cut_are_neither_lost_nor_doubled(recognizer):
    said = spoken_texts()["travel"]
    in_context = alone = ended = corrected = doubtful = 0
    for whole, text in zip(cut(read_wav(EXAMPLES / "travel.wav"), 1600), said, strict=True):
        first, second = halves(whole, 0.4)
        before = recognizer.transcribe([first])[0]
        after = recognizer.draft(second, RecognitionOptions(context=[HeardSegment(first, before.text)]))
        if after is None:  # too doubtful for a draft, which a processor's rounding may decide
            doubtful += 1
            continue
        print(f"{before.text} | {after.previous_end} | {after.text}")
        assert (after.segment_id, after.start_s, after.end_s) == (second.id, second.start_s, second.end_s)
        assert "".join(word.text for word in after.words).strip() == after.text
        assert all(second.start_s <= word.start_s <= word.end_s <= second.end_s + 0.1 for word in after.words)
        in_context += edits(scored_units(text, "en"), scored_units(f"{before.text} {after.text}", "en"))
        alone += edits(
            scored_units(text, "en"), scored_units(f"{before.text} {recognizer.transcribe([second])[0].text}", "en")
        )
        ended += before.text[-1] in ".?"
        corrected += before.text[-1] in ".?" and after.previous_end == ""
        assert after.text[0].islower() or after.text.startswith("Berlin"), "it goes on with a sentence"
    assert doubtful <= 2
    assert in_context <= 5
    assert alone > in_context
    assert corrected >= ended / 2  # a mark heard where the audio ended, not where the sentence did


def test_a_sentence_after_a_whole_one_begins_anew(recognizer):
    first, second, third, *_ = cut(read_wav(PHRASES), 1600)
    texts = spoken_texts()["phrases"]
    context = [HeardSegment(first, texts[0]), HeardSegment(second, texts[1])]
    found = recognizer.draft(third, RecognitionOptions(context=context))
    assert edits(scored_units(texts[2], "en"), scored_units(found.text, "en")) <= 1  # "$12" instead of "twelve dollars"
    assert found.previous_end == texts[1][-1]
    assert found.text[0].isupper()


def test_context_that_is_not_heard_again_is_left_out(recognizer):
    first, second, *_ = cut(read_wav(PHRASES), 1600)
    other = HeardSegment(first, "Something else was said there, which nobody can hear in this audio at all.")
    assert recognizer.draft(second, RecognitionOptions(context=[other])) is None


def test_silence_after_speech_has_no_text(recognizer):
    first, *_ = cut(read_wav(PHRASES), 1600)
    silence = SpeechSegment(1, first.start_sample + len(first.samples) + 8_000, np.zeros(2 * SAMPLE_RATE, np.int16))
    known = [HeardSegment(first, recognizer.transcribe([first])[0].text)]
    found = recognizer.draft(silence, RecognitionOptions(context=known))
    assert found is None or not found.text


@pytest.mark.parametrize(
    ("before", "probability", "text", "language", "marks", "shown"),
    [
        (" hold.", 0.9, "And your call", "en", ".", "And your call"),
        (" hold.", 0.5, "And your call", "en", ",", "and your call"),
        (" so.", 0.5, "I think so", "en", ",", "I think so"),
        (" so.", 0.5, "I'm sure", "en", ",", "I'm sure"),
        (" so.”", 0.5, "And your call", "en", None, "And your call"),  # no mark inside a quotation is corrected
        (" so.", 0.5, "NATO agreed", "en", ",", "NATO agreed"),
        (" hold?", 0.5, "And your call", "en", "?", "And your call"),
        (" hold,", 0.5, "and your call", "en", ",", "and your call"),
        (" hold", 0.5, "and your call", "en", "", "and your call"),
        (" warten.", 0.5, "Anrufe kommen", "de", ",", "Anrufe kommen"),
        ("等。", 0.5, "然后", "zh", "，", "然后"),
    ],
)
def test_an_unsure_full_stop_becomes_a_comma(before, probability, text, language, marks, shown):
    word = TimedWord(before, 0.0, 1.0, (math.log(0.99), math.log(probability)))
    found = continued(Transcript(1, 1.0, 2.0, text, language, words=(Word(f" {text}", 1.0, 2.0),)), word)
    assert (found.previous_end, found.text) == (marks, shown)
    assert found.words[0].text.strip() == shown


@pytest.mark.parametrize(
    ("text", "in_context", "shown"),
    [
        ("And your call", " and", "and your call"),
        ("A call", " a", "a call"),
        ("ASK NOT", " ask", "ASK NOT"),
        ("OK.", " okay.", "OK."),
        ("NATO agreed", " nato", "NATO agreed"),
        ("But your call", " and", "But your call"),
        ("And your call", " And", "And your call"),
    ],
)
def test_a_continued_sentence_has_small_words_or_words_in_capitals(text, in_context, shown):
    found = with_case_of(Transcript(1, 1.0, 2.0, text, "en", words=(Word(f" {text}", 1.0, 2.0),)), in_context)
    assert (found.text, found.words[0].text) == (shown, f" {shown}")
