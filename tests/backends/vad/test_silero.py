"""Silero on its shared session: probabilities, state, and errors for an unexpected model."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from faster_whisper.vad import get_vad_model

from pipeline.backends.vad import silero
from pipeline.backends.vad.silero import WINDOW_SAMPLES, SileroVad
from pipeline.errors import ModelError
from tests.backends.vad.mixtures import NOISES, at_level
from tests.conftest import PHRASES, read_wav


def windows(samples):
    return samples[: len(samples) // WINDOW_SAMPLES * WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)


def probabilities(samples):
    vad = SileroVad()
    return [vad.push(window) for window in windows(samples)]


def test_a_new_state_gives_the_probabilities_of_faster_whisper():
    samples = read_wav(PHRASES)[: WINDOW_SAMPLES * 120]
    expected = get_vad_model()(samples.astype(np.float32) / 32768)
    # faster-whisper zeroes the end of its last window, so that differs.
    assert probabilities(samples)[:-1] == pytest.approx(expected.tolist()[:-1], abs=1e-5)
    assert max(expected) > 0.9 > 0.1 > min(expected)


@pytest.mark.slow
def test_streams_share_one_session_and_no_state():
    recordings = [windows(read_wav(PHRASES))[start : start + 300] for start in (0, 100, 200, 300)]
    alone = [probabilities(recording.ravel()) for recording in recordings]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda recording: probabilities(recording.ravel()), recordings))
    assert together == alone
    assert SileroVad()._session is SileroVad()._session
    in_turns = [SileroVad() for _ in recordings]
    found = [[vad.push(recording[i]) for vad, recording in zip(in_turns, recordings, strict=True)] for i in range(300)]
    assert [list(column) for column in zip(*found, strict=True)] == alone


def test_a_state_is_replaced_after_four_seconds_by_one_that_has_heard_the_last_second(monkeypatch):
    vad, runs, silence = SileroVad(), list[int](), np.zeros(WINDOW_SAMPLES, np.int16)

    def run(heard):
        runs.append(len(heard))
        return np.zeros(len(heard), np.float32)

    monkeypatch.setattr(vad, "_run_model", run)
    for _ in range(251):
        vad.push(silence)
    assert runs == [*[1] * 125, 31, *[1] * 125, 31, 1]


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [1, 3])
def test_minutes_of_noise_do_not_delay_the_detection_of_speech(minutes):
    speech = windows(read_wav(PHRASES))[19:80]  # from the first sound
    noise = windows(at_level(NOISES["fan"](16_000 * 60, np.random.default_rng(0)), -40))
    with_noise = (speech.astype(np.int32) + noise[: len(speech)]).clip(-32768, 32767).astype(np.int16)

    def heard_at(vad):
        return next(i for i, window in enumerate(with_noise) if vad.push(window) >= 0.5)

    fresh, tired = SileroVad(), SileroVad()
    for window in noise[-31:]:
        fresh.push(window)
    for window in np.concatenate([noise] * minutes):
        tired.push(window)
    assert heard_at(tired) <= heard_at(fresh) + 1


def test_a_stream_that_was_idle_is_warmed_up_with_the_last_second():
    samples = windows(read_wav(PHRASES))[:60]
    rested, fresh = SileroVad(), SileroVad()
    for window in windows(read_wav(PHRASES))[100:130]:
        rested.push(window)
    for window in samples[:31]:
        assert rested.push(window, run=False) == 0.0
        fresh.push(window)
    assert [rested.push(w) for w in samples[31:]] == pytest.approx([fresh.push(w) for w in samples[31:]], abs=1e-5)


def test_the_memory_of_a_stream_does_not_grow():
    vad = SileroVad()
    for _ in range(1000):
        vad.push(np.zeros(WINDOW_SAMPLES, np.int16))
    assert len(vad._recent) == 31
    assert vad._h.nbytes + vad._c.nbytes + vad._context.nbytes < 2000


def test_a_missing_model_file_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(silero, "_FILE", "silero_vad_v7.onnx")
    silero._session.cache_clear()
    with pytest.raises(ModelError, match=r"cannot be loaded: .*v7\.onnx.*install faster-whisper.*vad\.detector"):
        silero.load_silero()


def test_the_error_for_a_different_model_names_its_inputs(monkeypatch):
    session = SimpleNamespace(get_inputs=lambda: [SimpleNamespace(name="input"), SimpleNamespace(name="state")])
    monkeypatch.setattr(silero, "open_session", lambda path, threads: session)
    silero._session.cache_clear()
    with pytest.raises(ModelError, match="has the inputs input, state; expected c, h, input"):
        silero.load_silero()
