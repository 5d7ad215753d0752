"""Accuracy of the complete detector, measured on mixtures made from the repository's recordings."""

import dataclasses

import numpy as np
import pytest

from pipeline.core.vad.options import VadConfig
from tests.backends.vad.mixtures import (
    NOISES,
    Scene,
    at_level,
    conversation,
    in_room,
    measure,
    mixed,
    noise_scenes,
    speech_scenes,
    utterances,
)
from tests.conftest import EXAMPLES, read_wav

RECORDINGS = [read_wav(EXAMPLES / name) for name in ("travel.wav", "meeting.wav")]
# webrtcvad alone, with the former default settings.
PLAIN = VadConfig(fill_ms=0)  # with the silence before it, a segment begins early
ALONE = VadConfig(detector="webrtc", mode=2, fill_ms=0)


@pytest.fixture(scope="module")
def speech():
    return speech_scenes(RECORDINGS, ("white", "fan", "clicks", "music"), seconds=12, seed=5)


@pytest.fixture(scope="module")
def noise():
    return noise_scenes(tuple(NOISES), seconds=8, seed=6)


@pytest.fixture(scope="module")
def faint():
    """Quiet speech from the far end of large rooms, over noise that is only slightly quieter."""
    spoken = utterances([read_wav(EXAMPLES / "day.wav")])  # contains all four voices
    scenes = []
    for seed, (reverberation_s, direct_db, name, snr_db, level_db) in enumerate(
        [(1.0, -10.0, "fan", 15.0, -55.0), (0.7, -6.0, "white", 10.0, -50.0)] * 2, start=1
    ):
        rng = np.random.default_rng(seed)
        sound, labels = conversation(spoken, 25, rng)
        sound = in_room(sound, reverberation_s, direct_db, rng)
        samples = at_level(mixed(sound, NOISES[name](len(sound), rng), snr_db, labels), level_db)
        scenes.append(Scene(f"far field, {name}", samples, labels))
    return scenes


def test_speech_is_kept_and_little_noise_with_it(speech):
    score = measure(speech, PLAIN)
    assert score.kept >= 0.95
    assert score.false <= 0.12


def test_noise_is_not_taken_for_speech(noise):
    assert measure(noise, PLAIN).taken <= 0.05


@pytest.mark.slow
def test_segments_come_no_later_than_from_webrtcvad_alone(speech):
    ours, alone = (sorted(measure(speech, config).delays_s) for config in (PLAIN, ALONE))
    assert len(ours) > 20
    assert ours[len(ours) // 2] <= alone[len(alone) // 2]
    assert ours[len(ours) * 9 // 10] <= 0.75


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_the_material_is_hard_without_confirmation(speech, noise, mode):
    config = VadConfig(detector="webrtc", mode=mode, fill_ms=0)
    assert measure(noise, config).taken > 0.25
    assert measure(speech, config).false > 0.15


def test_faint_speech_is_kept(faint):
    assert measure(faint, PLAIN).kept >= 0.98


@pytest.mark.parametrize(
    "without",
    [
        {"level_weight": 0.0, "faint_ms": 0},
        {"release_threshold": PLAIN.threshold, "faint_ms": 0},
        {"detector": "silero", "release_threshold": PLAIN.threshold, "level_weight": 0.0, "faint_ms": 0},
    ],
    ids=["no level", "no hysteresis", "Silero alone"],
)
def test_faint_speech_needs_every_part_of_the_detector(faint, without):
    assert measure(faint, dataclasses.replace(PLAIN, **without)).kept < 0.96
