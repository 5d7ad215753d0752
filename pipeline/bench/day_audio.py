"""A made-up day: recorded speech, silence and noise in turn, generated as it is read. The same seed gives the same day."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.events import SAMPLE_RATE, Samples

Kind = Literal["speech", "silence", "noise"]
# What the next scene is, as likely as this: with recordings of 20 to 30 s, speech is a quarter of the day.
_SHARES: dict[Kind, float] = {"speech": 0.3, "silence": 0.4, "noise": 0.3}
_OTHER_S = (10.0, 40.0)
"""How long silence and noise last."""
GAP_S = 1.0
"""Quiet between scenes, longer than any pause inside a segment."""
_ROOM = 3.0
"""Amplitude of the faint noise under everything, of 32,768: a microphone is never quite silent."""
_NOISE = (50.0, 1500.0)
"""Of loud and soft noise, alike."""
_NOISE_SAMPLES = 8 * SAMPLE_RATE


@dataclass(frozen=True)
class Scene:
    """A stretch of the day that is of one kind."""

    kind: Kind
    start_s: float
    end_s: float
    recording: int = -1
    """Which recording is heard; -1 for none."""


def scenes(recordings: Sequence[Samples], hours: float, seed: int) -> Iterator[tuple[Scene, Samples]]:
    """The day scene by scene, each with the gap that follows it."""
    rng = np.random.default_rng(seed)
    position, end = 0, round(hours * 3600 * SAMPLE_RATE)
    kinds = list(_SHARES)
    while position < end:
        kind = kinds[rng.choice(len(kinds), p=list(_SHARES.values()))]
        recording = -1
        if kind == "speech":
            recording = int(rng.integers(len(recordings)))
            sound = recordings[recording].astype(np.float32) * rng.uniform(0.5, 1.0)
        else:
            sound = np.zeros(round(rng.uniform(*_OTHER_S) * SAMPLE_RATE), np.float32)
            if kind == "noise":
                # Drawn for some seconds and repeated: a noise has no beginning, and its spectrum takes much memory.
                sound = np.resize(noise(_NOISE_SAMPLES, rng), len(sound)) * np.float32(
                    np.exp(rng.uniform(*np.log(_NOISE)))
                )
        start_s, end_s = position / SAMPLE_RATE, (position + len(sound)) / SAMPLE_RATE
        sound = np.concatenate([sound, np.zeros(round(GAP_S * SAMPLE_RATE), np.float32)])
        sound += rng.standard_normal(len(sound), np.float32) * _ROOM
        position += len(sound)
        yield Scene(kind, start_s, end_s, recording), np.clip(np.round(sound), -32768, 32767).astype(np.int16)


def noise(length: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Steady noise of a colour between white and brown, of unit power."""
    spectrum = np.fft.rfft(rng.standard_normal(length, np.float32))
    frequencies = np.maximum(np.fft.rfftfreq(length, 1 / SAMPLE_RATE), 20.0)
    sound = np.fft.irfft(spectrum / frequencies ** rng.uniform(0.0, 1.0), length)
    return np.asarray(sound / sound.std(), np.float32)


@dataclass
class DaySource:
    """The day as an audio source; notes the scenes that it goes through."""

    recordings: Sequence[Samples]
    hours: float
    seed: int = 0
    duration_s: float | None = None
    overflows: int = 0
    scenes: deque[Scene] = field(default_factory=deque)
    """The newest last; who follows the day takes them off."""

    def __post_init__(self) -> None:
        self.duration_s = self.hours * 3600
        self._chunks = self._cut()
        self._closed = False

    def read(self) -> Samples | None:
        return None if self._closed else next(self._chunks, None)

    def close(self) -> None:
        self._closed = True

    def _cut(self) -> Iterator[Samples]:
        for scene, samples in scenes(self.recordings, self.hours, self.seed):
            self.scenes.append(scene)
            for start in range(0, len(samples), CHUNK_SAMPLES):
                yield samples[start : start + CHUNK_SAMPLES]
