"""Music and singing where nobody speaks: the sounds of a stream, by what a detector hears."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.vad.sounds import WINDOW_S, Heard, HeardSounds
from pipeline.events import SAMPLE_RATE, SoundEvent


class Scripted:
    """Hears in a window what most of its samples say: nothing, music, singing, or speech with music."""

    KINDS = (Heard(0, 0, 0), Heard(0, 0, 1), Heard(0, 1, 0), Heard(1, 0, 1))

    def heard(self, window):
        assert len(window) == WINDOW_S * SAMPLE_RATE
        return self.KINDS[np.bincount(window).argmax()]


def sounds(detector, samples, chunk=320):
    found = HeardSounds(detector)
    for begin in range(0, len(samples), chunk):
        found.push(samples[begin : begin + chunk])
    return list(found.settled(len(samples), len(samples)))


@pytest.mark.parametrize(
    ("heard", "kind"),
    [
        (Heard(0.0, 0.1, 0.9), "music"),
        (Heard(0.05, 0.8, 1.0), "singing"),
        (Heard(0.0, 0.6, 0.7), None),  # for a part of the time
        (Heard(0.1, 0.9, 0.9), None),  # a word
        (Heard(0.0, 0.0, 0.0), None),
    ],
)
def test_a_sound_fills_its_window_and_nobody_speaks_in_it(heard, kind):
    assert heard.kind == kind


def test_sounds_are_whole_windows_that_end_with_any_second():
    kinds = [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 1]
    samples = np.repeat(np.array(kinds, np.int16), SAMPLE_RATE)
    assert [(one.kind, one.start_s, one.end_s) for one in sounds(Scripted(), samples)] == [
        ("music", 1, 4), ("music", 4, 7), ("singing", 7, 10),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 3), max_size=12), st.sampled_from([160, 480, 7_000, SAMPLE_RATE]))
def test_sounds_do_not_depend_on_how_the_audio_is_fed_and_do_not_overlap(kinds, chunk):
    samples = np.repeat(np.array(kinds, np.int16), SAMPLE_RATE)
    found = sounds(Scripted(), samples, chunk)
    assert found == sounds(Scripted(), samples)
    assert all(before.end_s <= after.start_s for before, after in pairwise(found))


def test_a_sound_waits_until_no_speech_reaches_back_to_it():
    found = HeardSounds(Scripted())
    for _ in range(3):
        found.push(np.ones(SAMPLE_RATE, np.int16))
    assert list(found.settled(3 * SAMPLE_RATE - 1, 0)) == []
    assert list(found.settled(3 * SAMPLE_RATE, 4 * SAMPLE_RATE)) == [SoundEvent("music", 0, 3, 4.0)]
    assert list(found.settled(9 * SAMPLE_RATE, 9 * SAMPLE_RATE)) == []
