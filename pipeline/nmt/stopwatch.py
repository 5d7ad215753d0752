"""Measures the time that a translation takes, without that of its reader."""

from __future__ import annotations

import time


class Stopwatch:
    """Measures the total time spent inside its ``with`` blocks."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._spent_s = 0.0
        self._began: float | None = None

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self._spent_s, self._began = self._total_s(), None

    def _total_s(self) -> float:
        return self._spent_s + (time.monotonic() - self._began if self._began is not None else 0.0)

    def expired(self) -> bool:
        return self._total_s() > self._limit_s
