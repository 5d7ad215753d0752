"""How loud an input device records. Pure."""

from __future__ import annotations

import numpy as np

from ...core import SAMPLE_RATE, InputLevel, Samples

# Lower limit of the level meter.
SILENCE_DBFS = -90.0
# Short enough to be said within 3 s of the start; some drivers begin with half a second of silence.
_WINDOW_SAMPLES = round(2.5 * SAMPLE_RATE)
# -80 dBFS: below what any open microphone picks up.
_SILENT_PEAK = 3
_CLIPPED = 0.001


def level_dbfs(samples: Samples) -> float:
    """RMS level in decibels relative to full scale: at most 0, at least SILENCE_DBFS."""
    power = float(np.mean(np.square(samples.astype(np.float32) / 32768.0))) if len(samples) else 0.0
    return max(SILENCE_DBFS, 10 * float(np.log10(max(power, 1e-12))))


class LevelCheck:
    """Tells the level of a device at its start, and once when it is too loud."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._window: list[Samples] = []
        self._told = self._told_clipped = False

    def push(self, samples: Samples, end_s: float) -> InputLevel | None:
        """The level to report after these samples, which end at ``end_s``; None: nothing new."""
        if self._told_clipped:
            return None
        self._window.append(samples)
        if sum(map(len, self._window)) < _WINDOW_SAMPLES:
            return None
        window = np.concatenate(self._window)
        self._window.clear()
        peaks = np.abs(window.astype(np.int32))
        clipped = float(np.mean(peaks >= 32767))
        self._told_clipped = clipped > _CLIPPED
        if self._told and not self._told_clipped:
            return None
        self._told = True
        silent = bool(peaks.max() <= _SILENT_PEAK)
        return InputLevel(end_s, self._device, level_dbfs(window), clipped if self._told_clipped else 0.0, silent)
