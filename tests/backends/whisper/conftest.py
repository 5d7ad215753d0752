"""The demo's recogniser, and copies of it whose model is watched."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline import Models
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.events import SpeechSegment
from tests.conftest import PHRASES, read_wav
from tests.core.vad.test_stage import cut


@pytest.fixture(scope="module")
def recognizer(demo_models: Models) -> WhisperRecognizer:
    assert isinstance(demo_models.recognizer, WhisperRecognizer)
    return demo_models.recognizer


@pytest.fixture(scope="session")
def phrases() -> list[SpeechSegment]:
    return cut(read_wav(PHRASES), 1600)


class Watched:
    """Stands for the loaded ``ctranslate2.models.Whisper`` of a recogniser, and notes its calls."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.encoded: list[float] = []
        """The window of each run of the encoder, in seconds."""
        self.searches: list[tuple[int, int]] = []
        """The searches: how many windows share each, and the number of hypotheses."""
        self.windows: list[tuple[float, int]] = []
        """The searches: the window in seconds, and the number of hypotheses."""
        self.heard: Callable[[int, Any], Any] = lambda _, result: result
        """(number of the search, CTranslate2's result) → the result that takes its place."""
        self.detected: Callable[[], dict[str, float]] | None = None
        """Gives the probabilities of languages, by Whisper's codes, in place of the model's."""

    def encode(self, features: Any) -> Any:
        self.encoded.append(np.array(features).shape[2] / 100)
        return self._model.encode(features)

    def generate(self, states: Any, prompts: list[Any], **options: Any) -> list[Any]:
        beams = options["beam_size"]
        self.searches.append((len(prompts), beams))
        self.windows.append((np.array(states).shape[1] / 50, beams))
        results = self._model.generate(states, prompts, **options)
        return [self.heard(len(self.searches) - 1, result) for result in results]

    def detect_language(self, states: Any) -> Any:
        if self.detected is None:
            return self._model.detect_language(states)
        return [[(f"<|{code}|>", probability) for code, probability in self.detected().items()]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def watched(recognizer: WhisperRecognizer) -> tuple[WhisperRecognizer, Watched]:
    """A copy of a recogniser with the same weights, and its model, which has noted nothing yet."""
    weights = recognizer.engine.weights
    model = Watched(weights.model)
    copy = WhisperRecognizer(
        recognizer.config, recognizer.languages, weights.directory, weights=replace(weights, model=model)
    )
    model.encoded, model.searches, model.windows = [], [], []  # without the run that checks the model
    return copy, model


def result(tokens: Sequence[int], score: float = -0.1, no_speech: float = 0.0) -> Any:
    """A search's result as CTranslate2 gives it, with one hypothesis. ``score``: its mean log-probability."""
    return SimpleNamespace(sequences_ids=[list(tokens)], scores=[score], no_speech_prob=no_speech)
