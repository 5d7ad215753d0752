"""Frame decisions of whole streams, on real speech."""

import dataclasses

import numpy as np
import pytest

from pipeline.backends.vad.detector import SpeechDetector, level_db
from pipeline.bench.play import segments_of
from pipeline.core.vad.options import VadConfig
from tests.backends.vad.mixtures import NOISES, at_level
from tests.conftest import PHRASES, read_wav, spoken_texts

DETECTORS = ("webrtc+silero", "webrtc", "silero")


def decisions(samples, config, chunk=1600):
    detector = SpeechDetector(config)
    found = [pair for start in range(0, len(samples), chunk) for pair in detector.push(samples[start : start + chunk])]
    return found + list(detector.flush())


def silence(seconds):
    return np.zeros(round(seconds * 16_000), np.int16)


@pytest.mark.parametrize("frame_ms", [10, 20, 30])
@pytest.mark.parametrize("detector", DETECTORS)
def test_every_sample_comes_back_once_and_in_order(detector, frame_ms):
    samples = read_wav(PHRASES)[: 16_000 * 3 + 77]
    found = decisions(samples, VadConfig(detector=detector, frame_ms=frame_ms), chunk=1000)
    assert np.array_equal(np.concatenate([frame for frame, _ in found]), samples)
    assert {len(frame) for frame, _ in found[:-1]} == {16 * frame_ms}
    assert any(decision.speech for _, decision in found)


@pytest.mark.parametrize("frame_ms", [10, 20, 30])
def test_a_frame_waits_for_a_window_and_a_frame_at_most(frame_ms):
    detector = SpeechDetector(VadConfig(frame_ms=frame_ms))
    given = 0
    for frame in read_wav(PHRASES)[: 16 * frame_ms * 200].reshape(-1, 16 * frame_ms):
        given += sum(len(decided) for decided, _ in detector.push(frame))
        assert detector.heard_samples - given < 512 + 16 * frame_ms


@pytest.mark.parametrize("frame_ms", [10, 20, 30])
@pytest.mark.parametrize("detector", DETECTORS)
def test_every_detector_hears_each_sentence(detector, frame_ms):
    segments = segments_of(read_wav(PHRASES), VadConfig(detector=detector, frame_ms=frame_ms, mode=2))
    assert len(segments) == len(spoken_texts()["phrases"])


def test_silero_does_not_run_while_nothing_is_proposed():
    detector = SpeechDetector(VadConfig())
    assert detector._silero is not None
    asked = []
    push = detector._silero.push
    detector._silero.push = lambda window, run=True: asked.append(run) or push(window, run)
    for _ in detector.push(silence(60)):
        pass
    assert len(asked) == 60 * 16_000 // 512
    assert not any(asked)
    for _ in detector.push(read_wav(PHRASES)[:48_000]):
        pass
    assert any(asked)
    asked.clear()
    for _ in detector.push(silence(2)):
        pass
    assert (asked[0], asked[-1]) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS)
def test_twenty_minutes_of_silence_change_no_cut(detector):
    config = VadConfig(detector=detector)
    samples = read_wav(PHRASES)[: 16_000 * 8]
    before, long = 1.024, 1200.0 if detector != "silero" else 120.0  # whole windows and frames
    expected = segments_of(np.concatenate([silence(before), samples]), config)
    found = segments_of(np.concatenate([silence(before + long), samples]), config)
    assert len(expected) >= 2
    assert [s.start_sample - long * 16_000 for s in found] == [s.start_sample for s in expected]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(found, expected, strict=True))


@pytest.mark.slow
def test_repeated_audio_is_cut_the_same_way_every_time():
    speech = read_wav(PHRASES)[: 16_000 * 15]
    noise = at_level(NOISES["fan"](16_000 * 20, np.random.default_rng(0)), -40)
    minute = np.concatenate([speech, noise, silence(25)])
    segments = segments_of(np.tile(minute, 5), VadConfig())
    cut = [[] for _ in range(5)]  # type: list[list[tuple[int, int]]]
    for segment in segments:
        cut[segment.start_sample // len(minute)].append((segment.start_sample % len(minute), len(segment.samples)))
    assert len(cut[1]) >= 3
    assert cut[1:] == [cut[1]] * 4


def test_the_first_word_is_whole_after_a_minute_of_noise():
    speech = read_wav(PHRASES)[: 16_000 * 4]
    noise = at_level(NOISES["fan"](16_000 * 64, np.random.default_rng(0)), -45).astype(np.int32)
    noise[16_000 * 60 :] += speech
    alone = segments_of(speech, VadConfig())[0]
    first = segments_of(noise.clip(-32768, 32767).astype(np.int16), VadConfig())[0]
    assert first.start_s - 60 <= alone.start_s + 0.1
    assert first.speech_end_s - 60 >= alone.speech_end_s - 0.1


def test_a_dc_offset_does_not_raise_the_level():
    quiet = at_level(NOISES["white"](1600, np.random.default_rng(0)), -70)
    assert level_db(quiet + np.int16(3000)) == pytest.approx(level_db(quiet), abs=0.1) == pytest.approx(-70, abs=0.5)
    assert level_db(silence(0.02)) == pytest.approx(-120)
    shifted = (read_wav(PHRASES).astype(np.int32) // 2 + 2000).astype(np.int16)
    assert len(segments_of(shifted, VadConfig())) == len(spoken_texts()["phrases"])


def test_the_memory_of_a_detector_does_not_grow():
    detector = SpeechDetector(VadConfig())
    noise = at_level(NOISES["pink"](16_000 * 30, np.random.default_rng(0)), -20)
    for start in range(0, len(noise), 1600):
        for _ in detector.push(noise[start : start + 1600]):
            pass
        assert len(detector._undecided) <= 2
        assert len(detector._partial_window) < 512
        assert len(detector._partial_frame) < 320
        # A view would keep its whole chunk in memory.
        assert all(
            np.asarray(part.base if part.base is not None else part).size <= 2 * 512
            for part in (detector._partial_window, detector._partial_frame)
        )


def test_settings_of_one_stream_do_not_reach_another():
    strict = SpeechDetector(dataclasses.replace(VadConfig(), threshold=0.99, release_threshold=0.99, level_weight=0))
    usual = SpeechDetector(VadConfig())
    samples = read_wav(PHRASES)[: 16_000 * 4]
    counts = [sum(decision.speech for _, decision in detector.push(samples)) for detector in (strict, usual)]
    assert counts[0] < counts[1]


def test_a_frame_is_decided_by_the_window_that_holds_its_end():
    detector = SpeechDetector(VadConfig(detector="silero", level_weight=0))
    assert detector._silero is not None
    # Replaces the model: returns 1 for a window with a nonzero sample, to show which window decides a frame.
    detector._silero.push = lambda window, run=True: float(window.any())
    samples = np.zeros(320 * 10, np.int16)
    samples[1000] = 1  # in the second window, 512 … 1023
    found = [*detector.push(samples), *detector.flush()]
    # Frames end at 320, 640, 960, 1280 …
    assert [i for i, (_, decision) in enumerate(found) if decision.speech] == [1, 2]
