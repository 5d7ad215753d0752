"""Speech probabilities from the Silero VAD, whose ONNX file ships with faster-whisper."""

from __future__ import annotations

import functools
import threading
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper.utils import get_assets_path
from numpy.typing import NDArray

from ...core import Samples
from ...errors import ModelError
from ..onnx_session import open_session

WINDOW_SAMPLES = 512
"""Input length of the model: 32 ms."""
_CONTEXT_SAMPLES = 64  # end of the previous window, prepended to the next
_FILE, _INPUTS = "silero_vad_v6.onnx", {"input", "h", "c"}
# The recurrent state degrades: after noise it detects speech late, and in long speech it misses more than a new state.
# Therefore a state is used for 4 s, and a new one is warmed up with the last second of audio (docs/benchmarks.md).
_STATE_WINDOWS = 125
_WARM_UP_WINDOWS = 31

_loading = threading.Lock()


def load_silero() -> Any:
    """The ONNX Runtime session shared by all streams. It uses one thread and may be called from several."""
    with _loading:
        return _session()


@functools.cache
def _session() -> Any:
    advice = "reinstall faster-whisper 1.2.1 or newer, or set vad.detector to 'webrtc'"
    try:
        session = open_session(Path(get_assets_path()) / _FILE, 1)
    except ModelError as error:
        raise ModelError(
            f"the Silero VAD that ships with faster-whisper cannot be loaded: {error}; {advice}"
        ) from error
    if (found := {node.name for node in session.get_inputs()}) != _INPUTS:
        raise ModelError(
            f"the Silero VAD of this faster-whisper has the inputs {', '.join(sorted(found))}; "
            f"expected {', '.join(sorted(_INPUTS))}; {advice}"
        )
    return session


class SileroVad:
    """The recurrent state of one stream, run on the shared session. The state is renewed every 4 s."""

    def __init__(self) -> None:
        self._session = load_silero()
        self._recent: deque[Samples] = deque(maxlen=_WARM_UP_WINDOWS)
        self._state_age: int | None = None  # windows since the state was renewed; None if there is no state
        self._reset_state()

    def push(self, window: Samples, run: bool = True) -> float:
        """The probability that the next window [512] contains speech. If not ``run``, 0 without running the model."""
        if run and (self._state_age is None or self._state_age >= _STATE_WINDOWS):
            self._reset_state()
            if self._recent:
                self._run_model(np.stack(self._recent))
            self._state_age = 0
        self._recent.append(window)
        if not run or self._state_age is None:
            self._state_age = None
            return 0.0
        self._state_age += 1
        return float(self._run_model(window[None])[-1])

    def _reset_state(self) -> None:
        self._h = self._c = np.zeros((1, 1, 128), np.float32)
        self._context: NDArray[np.float32] = np.zeros(_CONTEXT_SAMPLES, np.float32)

    def _run_model(self, windows: Samples) -> NDArray[np.float32]:
        """Probabilities [n] of consecutive windows [n, 512]."""
        sound = windows.astype(np.float32) / np.float32(32768)
        before = np.vstack([self._context, sound[:-1, -_CONTEXT_SAMPLES:]])
        feeds = {"input": np.hstack([before, sound]), "h": self._h, "c": self._c}
        probabilities, self._h, self._c = self._session.run(None, feeds)
        self._context = sound[-1, -_CONTEXT_SAMPLES:]
        return np.asarray(probabilities)
