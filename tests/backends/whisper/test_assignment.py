"""Which segments of a window are recognised alone, and whose words may be mixed up."""

import numpy as np
import pytest

from pipeline.apps.translate import for_recordings
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper import recognizer as whisper
from pipeline.backends.whisper.packing import Share, doubted, in_order, sparse
from pipeline.bench.play import segments_of
from pipeline.bench.words import edits, scored_units
from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript, Word
from tests.conftest import EXAMPLES, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut


def segment(number, seconds=2.0):
    return SpeechSegment(number, number * 10 * SAMPLE_RATE, np.zeros(round(seconds * SAMPLE_RATE), np.int16))


def words(text, begin_s, end_s):
    """The words of a text, evenly spread."""
    parts = text.split()
    times = np.linspace(begin_s, end_s, len(parts) + 1)
    return [Word(f" {part}", times[at], times[at + 1]) for at, part in enumerate(parts)]


def share(number, text, *, doubtful=False, few=False):
    one = segment(number)
    heard = None if doubtful or not text else transcript(number, text)
    return Share(one, words(text, one.start_s, one.end_s), heard, few)


def transcript(number, text, rejected=None, *, uncertain=False):
    one = segment(number)
    return Transcript(number, one.start_s, one.end_s, text, "en", rejected=rejected, uncertain=uncertain)


def doubted_of(shares, *alone):
    return [one.id for one in doubted(shares, {each.segment_id: each for each in alone})]


@pytest.mark.parametrize(
    ("text", "begin_s", "end_s", "few"),
    [
        ("I", 2.0, 2.0, True),
        ("Union.", 0.6, 1.2, True),
        ("Yes, I would.", 0.1, 0.9, True),
        ("No.", 0.1, 1.9, False),
        ("My room number is two.", 0.1, 1.0, False),
        ("我住在二一", 0.1, 1.0, False),
    ],
)
def test_few_words_in_a_small_part_of_a_segment_are_sparse(text, begin_s, end_s, few):
    assert sparse(segment(0, 2.2), words(text, begin_s, end_s)) == few


def test_neighbours_are_doubted_only_if_they_may_have_the_words_of_a_segment_without_any():
    shares = [share(0, "Where is it?"), share(1, ""), share(2, "My room is two. Come at nine."), share(3, "Good bye.")]
    assert doubted_of(shares, transcript(1, "The museum opens at ten.")) == []
    assert doubted_of(shares, transcript(1, "My room is two.")) == [0, 2]
    assert doubted_of(shares, transcript(1, "My room is you.")) == [0, 2]
    assert doubted_of(shares, transcript(1, "My room is two.", "uncertain")) == []


def test_neighbours_of_a_segment_that_has_other_words_alone_are_doubted():
    shares = [
        share(0, "Where is it?"),
        share(1, "I", doubtful=True),
        share(2, "would like five."),
        share(3, "Good bye."),
    ]
    assert doubted_of(shares, transcript(1, "The plane leaves at ten.")) == [0, 2]
    assert doubted_of(shares, transcript(1, "I.")) == []
    assert doubted_of(shares) == []
    apart = [share(0, "Where is it?"), share(1, ""), share(2, "I", doubtful=True), share(3, ""), share(4, "Good bye.")]
    assert doubted_of(apart, transcript(2, "The plane leaves at ten.")) == [0, 4]


def test_transcripts_come_in_order_and_know_the_marks_before_them():
    shares = [share(0, "Where is it?"), share(1, ""), share(2, "My room"), share(3, "is two.")]
    found = in_order(shares, {1: transcript(1, "The museum opens.")})
    assert [each.text for each in found] == ["Where is it?", "The museum opens.", "My room", "is two."]
    assert [each.previous_end for each in found] == [None, None, None, ""]
    assert in_order(shares, {1: transcript(1, ""), 3: transcript(3, "Is two.")})[3] == transcript(3, "Is two.")


def test_the_words_of_a_window_stay_if_the_segment_alone_is_rejected():
    shares = [share(0, "Yes.", few=True), share(1, "My room is two."), share(2, "Hm.", doubtful=True), share(3, "Bye.")]
    assert [each.unsure for each in shares] == [True, False, True, False]
    found = in_order(shares, {number: transcript(number, "", "uncertain") for number in range(4)})
    assert [each.text for each in found] == ["Yes.", "My room is two.", "", "Bye."]
    assert [each.rejected for each in found] == [None, None, "uncertain", None]
    assert [each.previous_end for each in found] == [None, ".", None, None]


def test_words_at_the_place_of_others_go_back_to_the_neighbour_who_has_them_alone():
    first, last = share(0, "Where is"), share(2, "produced the block books.")
    for few, texts in (("A ticket", ("Where is", "A ticket produced the block books.")), ("it?", ("Where is it?", ""))):
        shares = [first, share(1, few, few=True), last]
        alone = {1: transcript(1, "Mm.", "uncertain")}
        assert doubted_of(shares, *alone.values()) == [0, 2]
        alone |= {
            at: transcript(at, text, None if text else "uncertain") for at, text in zip((0, 2), texts, strict=True)
        }
        found = in_order(shares, alone)
        assert [each.rejected for each in found] == [None, "uncertain", None]
        assert [found[0].text, found[2].text] == [texts[0], texts[1] or "produced the block books."]
        kept = alone | {1: transcript(1, "", "silence")}
        assert in_order(shares, kept)[1].text == few, "alone, nothing is heard"


def test_a_word_that_two_segments_have_stays_with_both():
    shares = [share(0, "Is it no? No."), share(1, "No.", few=True)]
    alone = {0: transcript(0, "Is it no? No."), 1: transcript(1, "Mm.", "uncertain")}
    assert [found.text for found in in_order(shares, alone)] == ["Is it no? No.", "No."]


def test_uncertain_text_of_a_segment_alone_does_not_replace_that_of_its_window():
    shares = [
        share(0, "Where is it?"),
        share(1, "Over", few=True),
        share(2, "Let.", doubtful=True),
        share(3, "Thank you."),
    ]
    alone = {1: transcript(1, "Clover.", uncertain=True), 2: transcript(2, "Left there.", uncertain=True)}
    found = in_order(shares, alone)
    assert [one.text for one in found] == ["Where is it?", "Over", "Left there.", "Thank you."]
    assert [one.uncertain for one in found] == [False, False, True, False]
    assert found[3].previous_end is None, "its words are not relied on for the marks before the next"
    assert doubted_of(shares, *alone.values()) == doubted_of(
        shares, transcript(1, "Clover.", "uncertain"), transcript(2, "Left there.", "uncertain")
    )


def test_segments_are_recognised_alone_once():
    shares = [share(0, "I", few=True), share(1, "I", doubtful=True), share(2, "would like five.")]
    assert doubted_of(shares, transcript(0, "Where is it?"), transcript(1, "The plane leaves at ten.")) == [2]


def test_a_segment_keeps_its_few_words_if_it_is_rejected_alone(demo_models, monkeypatch):
    recognizer = demo_models.recognizer
    assert isinstance(recognizer, WhisperRecognizer)
    segments = cut(read_wav(PHRASES), 1600)[:3]
    rejected = []

    def uncertain(self, packs, *_):
        (some,) = packs
        rejected.extend(one.id for one in some)
        return [{one.id: Transcript(one.id, one.start_s, one.end_s, "", "en", rejected="uncertain") for one in some}]

    expected = recognizer.transcribe_batch([segments])
    monkeypatch.setattr(WhisperRecognizer, "_each_alone", uncertain)
    monkeypatch.setattr(whisper, "sparse", lambda one, words: one.id == 1)
    assert recognizer.transcribe_batch([segments]) == expected
    assert rejected == [1, 0, 2]  # the neighbours may have its words


@pytest.mark.slow
def test_a_live_run_that_is_behind_does_not_lose_a_sentence_of_which_the_window_has_one_word(demo_models, demo_config):
    segments = segments_of(read_wav(EXAMPLES / "travel.wav"), demo_config.vad)
    found = demo_models.recognizer.transcribe(segments)
    for one, said in zip(found, spoken_texts()["travel"], strict=True):
        assert edits(scored_units(said, "en"), scored_units(one.text, "en")) <= 4, (
            one.text,
            said,
        )  # "6 o'clock" for "six o'clock"


@pytest.mark.slow
def test_a_sentence_that_is_far_softer_than_those_around_it_is_heard_in_its_place(demo_models, demo_config):
    """Its time was given to the end of the sentence before it when the window had no sound where the pause was."""
    loud, after, soft = [one.samples for one in segments_of(read_wav(EXAMPLES / "travel.wav"), demo_config.vad)[:3]]
    pause = np.zeros(SAMPLE_RATE * 6 // 10, np.int16)
    whole = np.concatenate([loud, pause, (soft * 10 ** (-30 / 20)).astype(np.int16), pause, after, pause])
    whole += np.random.default_rng(0).normal(0, 5, len(whole)).astype(np.int16)
    segments = segments_of(whole, for_recordings(demo_config).vad)
    assert isinstance(demo_models.recognizer, WhisperRecognizer)
    (found,) = demo_models.recognizer.transcribe_batch([segments])
    assert [one.text for one in found] == [
        "What time does the train to Berlin leave?",
        "I would like three tickets to Berlin, please.",
        "The train to Berlin leaves at half past nine.",
    ]
    assert [abs(one.words[0].start_s - one.start_s) < 0.3 for one in found] == [True] * 3


@pytest.mark.slow
def test_only_segments_that_a_window_leaves_out_are_recognised_again(demo_models, monkeypatch):
    recognizer = demo_models.recognizer
    assert isinstance(recognizer, WhisperRecognizer)
    segments = cut(read_wav(EXAMPLES / "day.wav"), 1600)
    again = []
    each_alone = WhisperRecognizer._each_alone

    def noted(self, some, *more):
        again.extend(one.id for each in some for one in each)
        return each_alone(self, some, *more)

    monkeypatch.setattr(WhisperRecognizer, "_each_alone", noted)
    found = [one for each in recognizer.transcribe_batch([segments[:7], segments[7:13], segments[13:]]) for one in each]
    assert 0 < len(again) == len(set(again)) < 13, "of 16, some of which a window leaves out"
    for one, said in zip(found, spoken_texts()["day"], strict=True):
        assert edits(scored_units(said, "en"), scored_units(one.text, "en")) <= 4, (
            one.text,
            said,
        )  # "10.20" for "ten twenty"
