"""python -m pipeline.bench vad: labels, scores, and the command."""

from __future__ import annotations

import re
import wave
from pathlib import Path

import numpy as np
import pytest

from pipeline.bench.__main__ import run
from pipeline.bench.vad import Score, endpoint_delays, segments_of
from pipeline.bench.vad_material import NOISES, Scene, levels_db, mixed, noise_scenes, speech_labels, speech_scenes
from pipeline.errors import UsageError
from pipeline.events import SpeechSegment
from pipeline.vad.options import VadConfig
from tests.conftest import EXAMPLES, PHRASES, read_wav
from tests.vad.test_stage import cut


def steps(*runs: tuple[bool, int]) -> np.ndarray:
    return np.concatenate([np.full(count, speech) for speech, count in runs])


def segment(first: int, after: int, heard: int) -> SpeechSegment:
    """A segment whose times are 10 ms steps."""
    samples = np.zeros((after - first) * 160, np.int16)
    return SpeechSegment(0, first * 160, samples, heard_sample=heard * 160)


def test_the_scores_equal_those_computed_by_hand() -> None:
    labels = steps((False, 100), (True, 200), (False, 100))
    spoken = Scene("speech", np.zeros(400 * 160, np.int16), labels)
    quiet = Scene("noise", np.zeros(100 * 160, np.int16), np.zeros(100, np.bool_))
    score = Score()
    score.add(spoken, [segment(80, 250, 300), segment(260, 310, 350)], cpu_s=0.02)
    score.add(quiet, [segment(10, 30, 60)], cpu_s=0.03)
    assert score.kept == pytest.approx(190 / 200)
    assert score.false == pytest.approx(30 / 220)
    assert score.taken == pytest.approx(20 / 100)
    assert score.delays_s == pytest.approx([0.5])
    assert score.row("name").split() == ["name", "95.0%", "13.6%", "20.0%", "500", "500", "10.00"]


def test_the_delay_is_measured_only_where_a_pause_follows_the_speech() -> None:
    labels = steps((True, 100), (False, 30), (True, 100), (False, 100), (True, 50), (False, 10))
    assert endpoint_delays(labels, [segment(0, 250, 290), segment(320, 390, 390)]) == pytest.approx([0.6])


def test_percentiles_do_not_exceed_the_longest_delay() -> None:
    assert Score(delays_s=[0.3, 0.5], audio_s=1).row("name").split() == ["name", "400", "480", "0.00"]


def test_the_segments_equal_those_of_the_stage() -> None:
    samples = read_wav(PHRASES)[: 16_000 * 12]
    found, expected = segments_of(samples, VadConfig()), cut(samples, 1600)
    assert len(found) > 1
    assert [(s.start_s, s.end_s, s.heard_s) for s in found] == [(s.start_s, s.end_s, s.heard_s) for s in expected]


def test_speech_is_labelled_where_it_was_inserted() -> None:
    tone = np.sin(np.arange(16_000) / 5).astype(np.float32) * 0.3
    silence = np.zeros(8_000, np.float32)
    short = np.zeros(2_400, np.float32)  # 150 ms: a pause within speech
    labels = speech_labels(np.concatenate([silence, tone, short, tone, silence, tone, silence]))
    assert np.flatnonzero(np.diff(labels.astype(int))).tolist() == [49, 264, 314, 414]


def test_noise_is_mixed_at_the_requested_snr() -> None:
    rng = np.random.default_rng(0)
    sound, noise = (rng.standard_normal(16_000).astype(np.float32) for _ in range(2))
    labels = np.ones(100, np.bool_)
    added = mixed(sound, noise, 10.0, labels) - sound
    assert levels_db(sound).mean() - levels_db(added).mean() == pytest.approx(10, abs=0.2)


def test_the_seed_determines_the_mixtures() -> None:
    recordings = [read_wav(PHRASES)]
    first, again, other = (speech_scenes(recordings, ["hum"], 5, seed) for seed in (1, 1, 2))
    for a, b, c in zip(first, again, other, strict=True):
        assert a.kind == b.kind == c.kind
        assert np.array_equal(a.samples, b.samples)
        assert not np.array_equal(a.samples, c.samples)
        assert a.labels.any()
        assert len(a.labels) == len(a.samples) // 160 == 500
    assert len({scene.kind for scene in noise_scenes(tuple(NOISES), 1, 0)}) == 1 + 4 * len(NOISES)


def test_the_command_measures_a_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "plain.toml"
    config.write_text("[vad]\ndetector = 'webrtc'\n")
    assert run(["vad", str(EXAMPLES / "meeting.wav"), "--seconds", "3", "--config", str(config), "--each"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^  rain 5 dB +[\d.]+% +[\d.]+% ", printed, re.MULTILINE)
    assert re.search(rf"^{re.escape(str(config))} *(?:100\.0|99\.\d)% +[\d.]+% +[\d.]+% ", printed, re.MULTILINE)


def test_invalid_options_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="--seconds is 1; a mixture needs at least 2"):
        run(["vad", str(PHRASES), "--seconds", "1"])
    with pytest.raises(UsageError, match="--seed is -1; give a whole number from 0"):
        run(["vad", str(PHRASES), "--seed", "-1"])


@pytest.mark.parametrize("samples", [32_000, 159], ids=["silence", "less than a label"])
def test_a_recording_without_speech_is_a_usage_error(samples: int, tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.wav"
    with wave.open(str(quiet), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(2 * samples))
    with pytest.raises(UsageError, match=r"quiet\.wav has no speech of at least 0\.2 s"):
        run(["vad", str(quiet)])
