"""Music and singing where nobody speaks: a pure rule over what a detector hears."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ..events import SAMPLE_RATE, Samples, SoundEvent

WINDOW_S = 3
"""Seconds of audio that are judged at once, and the length of a ``SoundEvent``: long enough for the detector, and for a caption."""
# More speech in a window is a word; as much of a sound fills it. Measured: docs/benchmarks.md.
_WORD, _MOST = 0.1, 0.8


class Heard(NamedTuple):
    """The shares of a window in which each is heard, 0 to 1. They may be heard together."""

    speech: float
    singing: float
    music: float

    @property
    def kind(self) -> str | None:
        """The kind of sound that fills the window; None if there is none, or somebody speaks."""
        if self.speech >= _WORD:
            return None
        return "singing" if self.singing >= _MOST else "music" if self.music >= _MOST else None


class SoundDetector(Protocol):
    """Tells speech, singing and music apart. Thread-safe."""

    def heard(self, window: Samples) -> Heard:
        """The shares of speech, singing and music in ``WINDOW_S`` of audio [48000]."""


class HeardSounds:
    """Finds the sounds of one stream. They depend on the audio alone, not on how it is fed, and do not overlap."""

    def __init__(self, detector: SoundDetector) -> None:
        self._detector = detector
        self._window: Samples = np.zeros(0, np.int16)
        """The last seconds that are in no sound."""
        self._begun: list[Samples] = []
        """Frames of the second that has begun."""
        self._begun_samples = self._seconds = 0
        self._found: deque[tuple[str, int]] = deque()
        """Kind and end in seconds of the sounds to which speech may reach back."""

    def push(self, samples: Samples) -> None:
        """Take the next samples [n], of at most a second."""
        self._begun.append(samples)
        self._begun_samples += len(samples)
        if self._begun_samples < SAMPLE_RATE:
            return
        heard = np.concatenate(self._begun)
        self._begun, self._begun_samples = [heard[SAMPLE_RATE:]], len(heard) - SAMPLE_RATE
        self._window = np.concatenate([self._window[-(WINDOW_S - 1) * SAMPLE_RATE :], heard[:SAMPLE_RATE]])
        self._seconds += 1
        if len(self._window) == WINDOW_S * SAMPLE_RATE and (kind := self._detector.heard(self._window).kind):
            self._found.append((kind, self._seconds))
            self._window = self._window[:0]

    def settled(self, until: int, heard: int) -> Iterator[SoundEvent]:
        """The sounds that end before the sample ``until``, once each. ``heard``: samples received so far."""
        while self._found and self._found[0][1] * SAMPLE_RATE <= until:
            kind, end_s = self._found.popleft()
            yield SoundEvent(kind, float(end_s - WINDOW_S), float(end_s), heard / SAMPLE_RATE)
