"""Audio source for a simulated day: recorded speech, silence and noise, generated as it is read from a seed."""

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
# Probability of each kind of scene. With recordings of 20 to 30 s, a quarter of the day is speech.
_SHARES: dict[Kind, float] = {"speech": 0.3, "silence": 0.4, "noise": 0.3}
_SILENCE_OR_NOISE_S = (10.0, 40.0)
"""Shortest and longest scene of silence or noise."""
GAP_S = 1.0
"""Silence between scenes, longer than any pause inside a segment."""
_BACKGROUND_RMS = 3.0
"""RMS amplitude, of 32,768, of the background noise in all scenes: a microphone is never silent."""
_NOISE_RMS = (50.0, 1500.0)
"""Range of the RMS amplitude of noise scenes, drawn on a logarithmic scale."""
_NOISE_SAMPLES = 8 * SAMPLE_RATE


@dataclass(frozen=True)
class Scene:
    """A part of the day with one kind of sound."""

    kind: Kind
    start_s: float
    end_s: float
    recording: int = -1
    """Index of the recording; -1 for none."""


def scenes(recordings: Sequence[Samples], hours: float, seed: int) -> Iterator[tuple[Scene, Samples]]:
    """Yield the scenes of the day, each with its samples and the gap that follows."""
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
            sound = np.zeros(round(rng.uniform(*_SILENCE_OR_NOISE_S) * SAMPLE_RATE), np.float32)
            if kind == "noise":
                # Steady noise may repeat every few seconds. The spectrum of a long one would take much memory.
                sound = np.resize(noise(_NOISE_SAMPLES, rng), len(sound)) * np.float32(
                    np.exp(rng.uniform(*np.log(_NOISE_RMS)))
                )
        start_s, end_s = position / SAMPLE_RATE, (position + len(sound)) / SAMPLE_RATE
        sound = np.concatenate([sound, np.zeros(round(GAP_S * SAMPLE_RATE), np.float32)])
        sound += rng.standard_normal(len(sound), np.float32) * _BACKGROUND_RMS
        position += len(sound)
        yield Scene(kind, start_s, end_s, recording), np.clip(np.round(sound), -32768, 32767).astype(np.int16)


def noise(length: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return steady noise of unit power, with a random colour between white and brown; [length]."""
    spectrum = np.fft.rfft(rng.standard_normal(length, np.float32))
    frequencies = np.maximum(np.fft.rfftfreq(length, 1 / SAMPLE_RATE), 20.0)
    sound = np.fft.irfft(spectrum / frequencies ** rng.uniform(0.0, 1.0), length)
    return np.asarray(sound / sound.std(), np.float32)


@dataclass
class DaySource:
    """The day as an audio source. Appends each scene to ``scenes`` when it begins."""

    recordings: Sequence[Samples]
    hours: float
    seed: int = 0
    duration_s: float | None = None
    overflows: int = 0
    scenes: deque[Scene] = field(default_factory=deque)
    """Newest last. The consumer removes them."""

    def __post_init__(self) -> None:
        self.duration_s = self.hours * 3600
        self._chunks = self._generate()
        self._closed = False

    def read(self) -> Samples | None:
        return None if self._closed else next(self._chunks, None)

    def close(self) -> None:
        self._closed = True

    def _generate(self) -> Iterator[Samples]:
        for scene, samples in scenes(self.recordings, self.hours, self.seed):
            self.scenes.append(scene)
            for start in range(0, len(samples), CHUNK_SAMPLES):
                yield samples[start : start + CHUNK_SAMPLES]
