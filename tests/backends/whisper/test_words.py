"""Times of words and of sentences."""

import dataclasses

import numpy as np
import pytest

from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper.words import placed, plausible, timed_words, without_pauses
from pipeline.core.sentences.assembler import SentenceAssembler
from pipeline.events import SourceSentence, SpeechSegment, Transcript, Word
from tests.conftest import PHRASES, read_wav
from tests.core.vad.test_stage import cut

WORDS = (Word(" Yes.", 1.2, 1.5), Word(" I", 1.9, 2.0), Word(" will.", 2.0, 2.4))
SAID = Transcript(0, 1.0, 3.0, "Yes. I will.", "en", speech_end_s=2.5, words=WORDS)


def sentences(*transcripts):
    assembler = SentenceAssembler()
    events = [event for transcript in transcripts for event in assembler.push(transcript)] + assembler.end()
    return [event for event in events if isinstance(event, SourceSentence)]


def test_sentences_begin_and_end_with_their_words():
    first, second = sentences(SAID)
    assert (first.text, first.start_s, first.end_s) == ("Yes.", 1.2, 1.5)
    # The last one ends with the speech.
    assert (second.text, second.start_s, second.end_s) == ("I will.", 1.9, 2.5)


def test_without_words_letters_share_the_time_of_the_speech():
    letters = dataclasses.replace(SAID, words=())
    first, second = sentences(letters)
    assert (first.start_s, first.end_s) == (1.0, pytest.approx(1.0 + 1.5 * 5 / 12))
    assert (second.start_s, second.end_s) == (first.end_s, 2.5)
    assert second.words == ()
    assert sentences(dataclasses.replace(letters, speech_end_s=None))[1].end_s == 3.0


def test_a_share_of_a_sentence_begins_with_the_nearest_word():
    timed = SourceSentence(0, "en", "Yes. I will.", 1.0, 3.0, words=WORDS)
    # "Yes." has 4 of 10 characters, "I" one.
    times = [timed.begin_at(share) for share in (0.0, 0.1, 0.3, 0.4, 0.45, 0.5, 0.7, 0.9)]
    first, second, third = (word.start_s for word in WORDS)
    assert times == [first, first, second, second, second, third, third, 3.0]
    untimed = dataclasses.replace(timed, words=())
    assert [untimed.begin_at(share) for share in (0.0, 0.25, 1.0)] == [1.0, 1.5, 3.0]


@pytest.mark.parametrize(
    ("words", "believed"),
    [
        (WORDS, True),
        ((), False),
        (WORDS[:2], False),
        ((WORDS[0], Word(" I", 1.9, 2.1), WORDS[2]), True),
        ((WORDS[0], WORDS[2], WORDS[1]), False),
        ((WORDS[0], Word(" I", 1.0, 1.1), WORDS[2]), False),
        ((WORDS[0], WORDS[1], Word(" will.", 2.0, 3.5)), False),
        ((WORDS[0], WORDS[1], Word(" will.", 2.4, 2.0)), False),
        ((Word(" Yes.", 1.2, 1.2), *WORDS[1:]), False),
    ],
    ids=[
        "right",
        "none",
        "one lacks",
        "overlapping",
        "other text",
        "going back",
        "after the end",
        "backwards",
        "unplaced",
    ],
)
def test_only_plausible_word_times_are_used(words, believed):
    assert plausible(list(words), SAID.text, 1.0, 3.0) is believed


@pytest.mark.parametrize(("unplaced", "believed"), [(3, True), (4, False)])
def test_three_of_ten_words_may_have_no_duration(unplaced, believed):
    assert placed([Word(" so", at, at + (at >= unplaced)) for at in range(10)]) is believed


def test_silence_before_a_sentence_is_not_part_of_its_first_word():
    words = [Word(" Yes.", 0.0, 1.5), Word(" I", 1.5, 3.0), Word(" will.", 3.0, 9.0)]
    assert [round(word.start_s, 2) for word in without_pauses(words)] == [1.15, 2.8, 3.0]
    assert [word.end_s for word in without_pauses(words)] == [1.5, 3.0, 9.0]
    (word,) = without_pauses([Word("你好。", 0.0, 1.5)])
    assert round(word.start_s, 2) == 0.75


def test_punctuation_is_joined_to_its_word():
    texts = [" He", " said", ":", " “", "Yes", ",", " I", " will", ".”"]
    starts = [0.0, 0.3, 0.6, 0.7, 0.8, 1.2, 1.3, 1.5, 1.9, 2.0]
    words = timed_words(texts, [1] * 9, starts, [-0.1] * 9)
    assert [word.text for word in words] == [" He", " said:", " “Yes,", " I", " will.”"]
    # Punctuation has no sound.
    assert (words[1].start_s, words[1].end_s) == (0.3, 0.6)
    assert words[-1].log_probabilities == (-0.1, -0.1)


def pairs():
    """Two phrases with half a second between them as one segment, and the start of the second phrase."""
    phrases = [segment.samples for segment in cut(read_wav(PHRASES), 1600)]
    for first, second in zip(phrases[::2], phrases[1::2], strict=False):
        samples = np.concatenate([first, np.zeros(8_000, np.int16), second])
        loud = int(np.flatnonzero(np.abs(second) > 200)[0])
        yield SpeechSegment(0, 16_000, samples), 1 + (len(first) + 8_000 + loud) / 16_000


@pytest.mark.slow
def test_word_times_start_a_second_sentence_more_accurately_than_letters(demo_models):
    by_words, by_letters = [], []
    for segment, second_s in pairs():
        transcript = demo_models.recognizer.transcribe([segment])[0]
        timed, untimed = sentences(transcript), sentences(dataclasses.replace(transcript, words=()))
        if len(timed) < 2 or not transcript.words:
            continue
        by_words.append(abs(timed[1].start_s - second_s))
        by_letters.append(abs(untimed[1].start_s - second_s))
    print(
        f"off by {np.mean(by_words):.2f} s by words, {np.mean(by_letters):.2f} s by letters, in {len(by_words)} pairs"
    )
    assert len(by_words) >= 2
    assert np.mean(by_words) < np.mean(by_letters)


@pytest.mark.slow
def test_text_is_the_same_with_and_without_word_times(demo_models, demo_config):
    plain = WhisperRecognizer(dataclasses.replace(demo_config.asr, word_timestamps=False), "en")
    for segment in cut(read_wav(PHRASES), 1600):
        timed = demo_models.recognizer.transcribe([segment])[0]
        untimed = plain.transcribe([segment])[0]
        assert untimed.words == ()
        assert timed.text == untimed.text
        assert "".join(word.text for word in timed.words).strip() in (timed.text, "")
