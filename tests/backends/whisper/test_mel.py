"""Whisper's features and encoder: the same whatever the number of threads and cores."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor

from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper.engine import WhisperEngine
from pipeline.backends.whisper.mel import MelFilters
from pipeline.backends.whisper.weights import WhisperWeights
from tests.conftest import EXAMPLES, HANG_S, read_wav

FEATURES = """
import hashlib, sys
from pathlib import Path
from pipeline.backends.whisper.engine import WhisperEngine
from pipeline.backends.whisper.weights import WhisperWeights
from tests.conftest import read_wav
engine = WhisperEngine(WhisperWeights.load(Path(sys.argv[1]), threads=1), "en")
features = engine.features(read_wav(Path(sys.argv[2]))[:144_000], 10.0)
print(hashlib.sha256(features).hexdigest())
"""


@pytest.fixture
def directory(demo_models):
    assert isinstance(demo_models.recognizer, WhisperRecognizer)
    return demo_models.recognizer.engine.weights.directory


@pytest.mark.parametrize("bands", [80, 128])
def test_the_product_is_that_of_the_whole_matrix(bands):
    weights = FeatureExtractor(feature_size=bands).mel_filters
    spectrum = np.random.default_rng(0).standard_normal((weights.shape[1], 500)).astype(np.float32) ** 2
    exact = weights.astype(np.float64) @ spectrum
    for given in (spectrum, np.asfortranarray(spectrum)):
        np.testing.assert_allclose(MelFilters(weights) @ given, exact, rtol=5e-7)


def test_a_filter_without_bins_gives_nothing():
    weights = np.array([[0, 0, 0], [0, 2, 1]], np.float32)
    np.testing.assert_array_equal(MelFilters(weights) @ np.ones((3, 2), np.float32), [[0, 0], [3, 3]])


@pytest.mark.slow
def test_the_threads_of_blas_do_not_change_the_features(directory):
    def features(threads):
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, "-c", FEATURES, str(directory), str(EXAMPLES / "novel.wav")]
        return subprocess.run(command, env=os.environ | limits, check=True, stdout=-1, text=True, timeout=HANG_S).stdout

    one, two = map(features, "12")
    assert len(one) == len("\n") + 64
    assert one == two


@pytest.mark.slow
def test_the_threads_of_a_call_do_not_change_what_the_encoder_gives(directory):
    samples = read_wav(EXAMPLES / "novel.wav")[:144_000]
    found = [
        WhisperEngine(WhisperWeights.load(directory, threads=threads), "en").encode(samples, 10.0) for threads in (1, 2)
    ]
    first, second = (hashlib.sha256(np.ascontiguousarray(each.states)).hexdigest() for each in found)
    assert first == second
