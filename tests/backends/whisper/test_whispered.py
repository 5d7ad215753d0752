"""Whispered speech, made from voiced speech: the sound of the vocal tract stays, and noise replaces the voice."""

import numpy as np
import pytest

from pipeline.backends.whisper import WhisperRecognizer
from pipeline.bench.words import edits, scored_units
from pipeline.events import SAMPLE_RATE
from tests.conftest import EXAMPLES, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut

# Length of a frame and the distance of two, in samples, and the order of linear prediction.
FRAME, STEP, ORDER = 512, 128, 18
NOISE_DB = -70.0


def whispered(voiced):
    """Linear prediction (Atal and Hanauer, 1971): each frame's filter, with white noise as its input; [n]."""
    random, window = np.random.default_rng(0), np.hanning(FRAME)
    sound, found = voiced.astype(np.float64), np.zeros(len(voiced))
    for begin in range(0, len(sound) - FRAME, STEP):
        frame = sound[begin : begin + FRAME] * window
        like = np.correlate(frame, frame, "full")[FRAME - 1 : FRAME + ORDER]
        if like[0] < 1:
            continue
        lags = np.abs(np.subtract.outer(np.arange(ORDER), np.arange(ORDER)))
        predictor = np.linalg.solve(like[lags] + np.eye(ORDER) * like[0] * 1e-4, like[1:])
        gain = np.sqrt(max(like[0] - predictor @ like[1:], 0.0) / (window @ window))
        noise = np.fft.rfft(random.standard_normal(FRAME), 4 * FRAME)
        shaped = np.fft.irfft(noise / np.fft.rfft(np.r_[1.0, -predictor], 4 * FRAME))[:FRAME]
        found[begin : begin + FRAME] += gain * shaped * window
    return found


def at_level(sound, peak_db):
    """The sound with that peak level, over the noise of a quiet room."""
    noise = np.random.default_rng(1).standard_normal(len(sound)) * 10 ** (NOISE_DB / 20)
    scaled = sound / np.abs(sound).max() * 10 ** (peak_db / 20) + noise
    return (scaled * 2**15).clip(-(2**15), 2**15 - 1).astype(np.int16)


@pytest.mark.slow
@pytest.mark.parametrize("peak_db", [-24, -30])
@pytest.mark.parametrize("recording", [PHRASES, EXAMPLES / "travel.wav"], ids=lambda path: path.stem)
def test_quiet_whispering_is_heard_as_the_same_speech_voiced(recording, peak_db, demo_models):
    recognizer = demo_models.recognizer
    assert isinstance(recognizer, WhisperRecognizer)

    voiced = np.pad(read_wav(recording), SAMPLE_RATE)
    said = scored_units(" ".join(spoken_texts()[recording.stem]), "en")
    wrong = []
    for sound in (voiced.astype(np.float64), whispered(voiced)):
        found = recognizer.transcribe_batch([cut(at_level(sound, peak_db), 1600)])[0]
        assert all(one.rejected is None for one in found)
        wrong.append(edits(said, scored_units(" ".join(one.text for one in found), "en")))
    assert wrong[1] <= wrong[0] + 2
