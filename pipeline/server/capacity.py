"""How many sessions this machine serves in time, from the time that it needs for a window of speech."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..core import SAMPLE_RATE, ConcurrentRecognizer, Recognizer, StreamingRecognizer
from ..errors import UsageError
from .limits import MOST_SESSIONS

# Recognition time of a session without drafts, in encoder runs a second of its audio: that of base (docs/benchmarks.md).
_RUNS_A_S = 0.6
# CPU time for the rest of a session, in seconds a second: voice detection, translation, connections, and a few drafts; the
# most that was measured (docs/benchmarks.md).
_OTHER_S = 0.1
# Share of all time that is used then.
_SHARE = 0.85
# Runs of the encoder; the shortest counts, since other programs only make them longer.
_RUNS = 5
_SPEECH_S = 5


def sessions_for(window_s: float, cores: int) -> int:
    """The number of sessions that ``cores`` carry whose encoder needs ``window_s`` seconds for a window."""
    return min(MOST_SESSIONS, max(1, int(_SHARE / (_RUNS_A_S * window_s + _OTHER_S / cores))))


def calls_at_once(recognizers: Iterable[Recognizer | StreamingRecognizer]) -> int:
    """How many calls each of the recognisers takes at the same time; unless it says so, one."""
    return min(model.calls_at_once if isinstance(model, ConcurrentRecognizer) else 1 for model in recognizers)


def slowest_window_s(
    recognizers: Iterable[Recognizer | StreamingRecognizer], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Measure how long the encoder of each recogniser takes for a window, with as many calls at once as it takes.

    Returns:
        The longest time, divided by the number of calls at once. Blocks.
    """
    unique = {id(recognizer): recognizer for recognizer in recognizers}
    return max(_window_s(recognizer, clock) for recognizer in unique.values())


def _window_s(recognizer: Recognizer | StreamingRecognizer, clock: Callable[[], float]) -> float:
    if not isinstance(recognizer, ConcurrentRecognizer):
        raise UsageError("--max-sessions auto measures Whisper models only; give a number")
    if recognizer.on_gpu:  # whose encoder takes next to none of the time
        raise UsageError(
            "--max-sessions auto measures CPUs only; give the number that bench capacity finds for this GPU"
        )
    noise = np.random.default_rng(0).normal(0, 1_000, _SPEECH_S * SAMPLE_RATE).astype(np.int16)

    at_once = calls_at_once([recognizer])
    with ThreadPoolExecutor(at_once) as threads:

        def measured() -> float:
            began = clock()
            runs = [threads.submit(recognizer.run_encoder, noise) for _ in range(at_once)]
            for run in runs:
                run.result()
            return (clock() - began) / at_once

        measured()  # the first run allocates
        return min(measured() for _ in range(_RUNS))
