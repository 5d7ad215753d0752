"""The rules that confirm frames, on synthetic probabilities and levels, without a model or audio."""

from dataclasses import replace

import pytest

from pipeline.core.vad.gate import FrameDecision, LevelMeter, SpeechGate
from pipeline.core.vad.options import VadConfig

ROOM_DB = -60.0


def gate_in_a_room(options=None, frame_ms=20):
    """A gate after two seconds of a quiet room."""
    gate = SpeechGate(replace(options or VadConfig(), frame_ms=frame_ms))
    for _ in range(2000 // frame_ms):
        assert gate.decide(0.01, False, ROOM_DB) == FrameDecision(False, False)
    return gate


def last(gate, probability, level_db, frames=10, proposed=True):
    for _ in range(frames):
        decision = gate.decide(probability, proposed, level_db)
    return decision


def test_frames_that_both_detectors_accept_are_speech():
    assert last(gate_in_a_room(), 0.9, ROOM_DB + 20).speech


def test_frames_that_one_detector_rejects_are_not_speech():
    assert not last(gate_in_a_room(), 0.99, ROOM_DB + 20, proposed=False).speech
    assert not last(gate_in_a_room(), 0.02, ROOM_DB + 20).speech


def test_speech_continues_at_a_lower_probability_than_it_begins():
    unsure, level_db = 0.35, ROOM_DB + 12
    assert not last(gate_in_a_room(), unsure, level_db).speech
    gate = gate_in_a_room()
    last(gate, 0.9, level_db)
    assert last(gate, unsure, level_db, frames=100).speech
    assert not last(gate, 0.15, level_db).speech


def test_the_lower_threshold_ends_some_time_after_speech():
    gate = gate_in_a_room()
    last(gate, 0.9, ROOM_DB + 12)
    last(gate, 0.01, ROOM_DB, frames=20)
    assert gate.decide(0.9, True, ROOM_DB + 12).speech
    last(gate, 0.01, ROOM_DB, frames=80)
    assert not last(gate, 0.35, ROOM_DB + 12).speech


@pytest.mark.parametrize(("above_db", "needed"), [(0, 0.90), (12, 0.6), (25, 0.18), (60, 0.18)])
def test_louder_sound_needs_less_probability(above_db, needed):
    assert last(gate_in_a_room(), needed + 0.02, ROOM_DB + above_db).speech
    assert not last(gate_in_a_room(), needed - 0.02, ROOM_DB + above_db).speech


def test_without_a_weight_the_level_does_not_matter():
    for above_db in (0, 40):
        assert last(gate_in_a_room(VadConfig(level_weight=0)), 0.61, ROOM_DB + above_db).speech
        assert not last(gate_in_a_room(VadConfig(level_weight=0)), 0.59, ROOM_DB + above_db).speech


@pytest.mark.parametrize("frame_ms", [10, 20, 30])
def test_keystrokes_do_not_raise_the_level(frame_ms):
    gate = gate_in_a_room(frame_ms=frame_ms)
    for i in range(600 // frame_ms):
        stroke = i * frame_ms % 120 < frame_ms
        assert not gate.decide(0.4, True, ROOM_DB + 40 if stroke else ROOM_DB).speech


def test_loud_sound_is_audible_but_not_speech():
    assert last(gate_in_a_room(), 0.01, ROOM_DB + 11, proposed=False) == FrameDecision(False, True)
    assert last(gate_in_a_room(), 0.01, ROOM_DB + 9, proposed=False) == FrameDecision(False, False)


def test_soft_sound_that_would_continue_speech_is_audible():
    assert last(gate_in_a_room(), 0.5, ROOM_DB + 5) == FrameDecision(False, True)
    assert last(gate_in_a_room(), 0.3, ROOM_DB + 5) == FrameDecision(False, False)


def test_sound_far_above_the_floor_is_loud_if_it_may_be_speech():
    assert last(gate_in_a_room(), 0.02, ROOM_DB + 30).loud
    assert last(gate_in_a_room(), 0.02, ROOM_DB + 30, frames=1).loud, "from its first frame on"
    assert not last(gate_in_a_room(), 0.02, ROOM_DB + 30).speech
    assert not last(gate_in_a_room(), 0.02, ROOM_DB + 25).loud
    assert not last(gate_in_a_room(), 0.001, ROOM_DB + 30).loud
    assert not last(gate_in_a_room(), 0.02, ROOM_DB + 30, proposed=False).loud


def test_the_noise_floor_adapts_within_seconds():
    meter = LevelMeter(20)
    for _ in range(500):
        meter.push(-70.0)
    assert meter.push(-40.0)[1] == pytest.approx(30)
    for _ in range(300):
        above = meter.push(-40.0)
    assert above == (pytest.approx(0), pytest.approx(0))
    for _ in range(10):
        above = meter.push(-70.0)
    assert above == (pytest.approx(0), pytest.approx(0))


def test_speech_with_pauses_does_not_raise_the_noise_floor():
    meter = LevelMeter(20)
    for _ in range(40):
        for _ in range(10):
            meter.push(-60.0)
        for _ in range(80):
            above = meter.push(-30.0)
        assert above[0] == pytest.approx(30)


def test_digital_silence_has_the_minimum_noise_floor():
    meter = LevelMeter(20)
    for _ in range(100):
        meter.push(-120.0)
    assert meter.push(-60.0)[1] == pytest.approx(30)
