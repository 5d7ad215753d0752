"""Speech probabilities by Silero's VAD, whose ONNX file ships inside faster-whisper."""

from __future__ import annotations

import functools
import threading
from collections import deque
from typing import Any

import numpy as np
from faster_whisper.vad import get_vad_model
from numpy.typing import NDArray

from pipeline.errors import ModelError, one_line
from pipeline.events import Samples

WINDOW_SAMPLES = 512
"""What the model hears at once: 32 ms."""
_CONTEXT_SAMPLES = 64  # of the window before, heard again
_INPUTS = {"input", "h", "c"}
# The recurrent state goes stale: after 30 s of a fan's noise it notices speech 300 ms late, and in long speech it misses
# more than a young one. So it lives 4 s, and a new one hears the last second before it is believed. On meetings that
# took the area under the ROC curve from 0.959 to 0.972; 2 s and 8 s of life, and less than a second of warming, gave less.
_LIFE_WINDOWS = 125
_WARM_WINDOWS = 31

_loading = threading.Lock()


def load_silero() -> Any:
    """The ONNX Runtime session that all streams share; one thread, safe to run from several.

    Raises:
        ModelError: the file is missing, damaged, or of another shape than faster-whisper 1.2's.
    """
    with _loading:
        return _session()


@functools.cache
def _session() -> Any:
    advice = "install faster-whisper 1.2.1 or newer again, or set vad.detector to 'webrtc'"
    try:
        session = get_vad_model().session
    except Exception as error:  # onnxruntime's own kinds, or none of its session
        raise ModelError(
            f"Silero's VAD, which ships inside faster-whisper, cannot be loaded: {one_line(error)}; {advice}"
        ) from error
    if (found := {node.name for node in session.get_inputs()}) != _INPUTS:
        raise ModelError(
            f"Silero's VAD inside this faster-whisper has the inputs {', '.join(sorted(found))}; "
            f"expected {', '.join(sorted(_INPUTS))}; {advice}"
        )
    return session


class SileroVad:
    """One stream's state over the shared session; bounded, and never older than a few seconds."""

    def __init__(self) -> None:
        self._session = load_silero()
        self._heard: deque[Samples] = deque(maxlen=_WARM_WINDOWS)
        self._age: int | None = None  # windows since the state began; None: there is none
        self._forget()

    def push(self, window: Samples, run: bool = True) -> float:
        """The probability that the next window [512] holds speech; 0 without asking the model if not ``run``."""
        if run and (self._age is None or self._age >= _LIFE_WINDOWS):
            self._forget()
            if self._heard:
                self._listen(np.stack(self._heard))
            self._age = 0
        self._heard.append(window)
        if not run or self._age is None:
            self._age = None
            return 0.0
        self._age += 1
        return float(self._listen(window[None])[-1])

    def _forget(self) -> None:
        self._h = self._c = np.zeros((1, 1, 128), np.float32)
        self._context: NDArray[np.float32] = np.zeros(_CONTEXT_SAMPLES, np.float32)

    def _listen(self, windows: Samples) -> NDArray[np.float32]:
        """Probabilities [n] of consecutive windows [n, 512]."""
        sound = windows.astype(np.float32) / np.float32(32768)
        before = np.vstack([self._context, sound[:-1, -_CONTEXT_SAMPLES:]])
        feeds = {"input": np.hstack([before, sound]), "h": self._h, "c": self._c}
        probabilities, self._h, self._c = self._session.run(None, feeds)
        self._context = sound[-1, -_CONTEXT_SAMPLES:]
        return np.asarray(probabilities)
