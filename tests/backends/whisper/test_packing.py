"""Packing segments into one recogniser window, and assigning its words back to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.backends.whisper.packing import pack, unpack
from pipeline.core.asr.context import fits
from pipeline.events import SAMPLE_RATE, SpeechSegment, Word


def segment(number, start_s, length_s):
    return SpeechSegment(
        number, round(start_s * SAMPLE_RATE), np.full(round(length_s * SAMPLE_RATE), number + 1, np.int16)
    )


def test_a_pack_keeps_all_samples_in_order_with_short_pauses():
    packed = pack([segment(0, 1.0, 2.0), segment(1, 3.1, 1.0), segment(2, 60.0, 1.0)])
    assert [offset / SAMPLE_RATE for offset in packed.offsets] == [0.0, pytest.approx(2.1), pytest.approx(3.4)]
    assert len(packed.samples) == round(4.4 * SAMPLE_RATE)
    for one, offset in zip(packed.segments, packed.offsets, strict=True):
        assert (packed.samples[offset : offset + len(one.samples)] == one.samples).all()
    assert np.count_nonzero(packed.samples) == 4 * SAMPLE_RATE


def test_segments_cut_from_one_utterance_are_joined_without_a_pause():
    assert pack([segment(0, 0.0, 2.0), segment(1, 2.0, 1.0)]).offsets == (0, 2 * SAMPLE_RATE)


def test_segments_fit_by_their_speech_not_by_the_pauses_between_them():
    some = [segment(0, 0.0, 4.0), segment(1, 100.0, 4.0)]
    assert fits(some, segment(2, 200.0, 1.0), 10_000)
    assert not fits(some, segment(2, 200.0, 2.0), 10_000)
    assert not fits(some, segment(2, 200.0, 1.0), 0)


def test_words_return_to_their_segments_at_their_times():
    packed = pack([segment(0, 1.0, 2.0), segment(1, 10.0, 1.0), segment(2, 20.0, 1.0)])
    words = [Word(" One", 0.2, 0.6), Word(" two.", 1.8, 2.2), Word(" Three", 2.25, 2.9), Word(" four.", 2.9, 3.5)]
    first, second, third = unpack(words, packed)
    assert first == [Word(" One", 1.2, 1.6), Word(" two.", 2.8, 3.0)]  # not beyond the segment's end
    assert [(word.text, round(word.start_s, 6), round(word.end_s, 6)) for word in second] == [
        (" Three", 10.0, 10.6), (" four.", 10.6, 11.0),
    ]  # fmt: skip
    assert third == []


@given(
    st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 5)), min_size=1, max_size=6),
    st.lists(st.floats(0, 40), max_size=12),
)
def test_no_word_is_lost_or_out_of_its_segment(lengths, times):
    segments, at = [], 0.0
    for number, (length_s, pause_s) in enumerate(lengths):
        segments.append(segment(number, at, length_s))
        at = segments[-1].end_s + pause_s
    words = [Word(f" {i}", time_s, time_s + 0.1) for i, time_s in enumerate(sorted(times))]
    found = unpack(words, pack(segments))
    assert [word.text for own in found for word in own] == [word.text for word in words]
    for one, own in zip(segments, found, strict=True):
        assert all(one.start_s - 1e-9 <= w.start_s <= w.end_s <= one.end_s + 1e-9 for w in own)


def test_a_word_that_begins_later_is_not_in_an_earlier_segment():
    packed = pack([segment(0, 1.0, 2.0), segment(1, 3.0, 2.0)])
    long, short = Word(" looooong", 1.2, 3.4), Word(" a", 1.3, 1.4)
    assert [[word.text for word in words] for words in unpack([long, short], packed)] == [[], [" looooong", " a"]]
