"""Measure voice activity detection on labelled mixtures of speech and noise: speech kept, noise kept, endpoint delay.

Clean recordings are mixed with rooms and noises (``vad_material``). The segments that the detector cuts out of the
mixtures are compared with labels from the clean recordings.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.audio.recording import read_audio
from pipeline.bench.vad_material import NOISES, STEP, Labels, Scene, noise_scenes, speech_scenes, utterances
from pipeline.config import load_config
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, Samples, SpeechSegment
from pipeline.vad.detector import SpeechDetector
from pipeline.vad.endpointing import Endpointer
from pipeline.vad.options import VadConfig

# The endpoint delay is measured where no speech follows for this long.
_PAUSE_S = 0.6
# A mixture begins with a short pause and needs room for speech after it.
_SHORTEST_S = 2


@dataclass
class Score:
    """Sums over scenes, in seconds."""

    speech_s: float = 0.0
    kept_s: float = 0.0
    """Speech inside segments."""
    segments_s: float = 0.0
    false_s: float = 0.0
    """Non-speech inside segments, in scenes with speech."""
    noise_s: float = 0.0
    taken_s: float = 0.0
    """Time inside segments, in scenes without speech."""
    delays_s: list[float] = field(default_factory=list)
    """From each end of speech until its segment was emitted."""
    audio_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, scene: Scene, segments: Sequence[SpeechSegment], cpu_s: float = 0.0) -> None:
        inside = covered(segments, len(scene.labels))
        self.audio_s += len(scene.samples) / SAMPLE_RATE
        self.cpu_s += cpu_s
        if not scene.labels.any():
            self.noise_s += len(scene.labels) / 100
            self.taken_s += float(inside.sum()) / 100
            return
        self.speech_s += float(scene.labels.sum()) / 100
        self.kept_s += float((inside & scene.labels).sum()) / 100
        self.segments_s += float(inside.sum()) / 100
        self.false_s += float((inside & ~scene.labels).sum()) / 100
        self.delays_s += endpoint_delays(scene.labels, segments)

    @property
    def kept(self) -> float:
        return self.kept_s / max(self.speech_s, 1e-9)

    @property
    def false(self) -> float:
        return self.false_s / max(self.segments_s, 1e-9)

    @property
    def taken(self) -> float:
        return self.taken_s / max(self.noise_s, 1e-9)

    def row(self, name: str) -> str:
        parts = [f"{self.kept:8.1%} {self.false:8.1%}" if self.speech_s else " " * 17]
        parts.append(f"{self.taken:8.1%}" if self.noise_s else " " * 8)
        if self.delays_s:
            late = float(np.percentile(self.delays_s, 90))
            parts.append(f"{statistics.median(self.delays_s) * 1000:7.0f} {late * 1000:7.0f}")
        else:
            parts.append(" " * 15)
        return f"{name:28s}" + " ".join([*parts, f"{self.cpu_s / self.audio_s * 1000:7.2f}"])


HEADING = f"{'':28s}{'kept':>8s} {'not sp.':>8s} {'noise':>8s} {'delay':>7s} {'9 of 10':>7s} {'CPU':>7s}"
LEGEND = (
    "kept: share of speech inside segments; not sp.: share of segments that is not speech; noise: share of noise\n"
    "inside segments; delay: ms from end of speech to its segment, median and 90th percentile; CPU: ms per s of audio"
)


def covered(segments: Iterable[SpeechSegment], steps: int) -> Labels:
    """Return which 10 ms steps lie inside a segment; [steps]."""
    inside = np.zeros(steps, np.bool_)
    for segment in segments:
        inside[segment.start_sample // STEP : (segment.start_sample + len(segment.samples)) // STEP] = True
    return inside


def endpoint_delays(labels: Labels, segments: Sequence[SpeechSegment]) -> list[float]:
    """Return the seconds from each end of speech before a pause until the segment that contains it was emitted."""
    delays: list[float] = []
    pause = round(_PAUSE_S * 100)
    for end in np.flatnonzero(labels[:-1] & ~labels[1:]) + 1:
        if end + pause <= len(labels) and not labels[end : end + pause].any():
            found = [
                segment.heard_s - end / 100 for segment in segments if segment.start_s < end / 100 <= segment.heard_s
            ]
            delays += found[-1:]
    return delays


def segments_of(samples: Samples, config: VadConfig) -> list[SpeechSegment]:
    """Return the segments that the VAD stage would emit."""
    detector, endpointer = SpeechDetector(config), Endpointer(config)
    segments: list[SpeechSegment] = []
    for frames in (detector.push(samples), detector.flush()):
        for frame, decision in frames:
            for segment in endpointer.push(frame, *decision):
                segments.append(dataclasses.replace(segment, heard_sample=detector.heard_samples))
    return segments + endpointer.flush()


def measure(scenes: Iterable[Scene], config: VadConfig, each: bool = False) -> Score:
    """Score one detector over scenes. ``each`` prints the score of every scene."""
    total = Score()
    for scene in scenes:
        began = time.process_time()
        segments = segments_of(scene.samples, config)
        spent = time.process_time() - began
        total.add(scene, segments, spent)
        if each:
            alone = Score()
            alone.add(scene, segments, spent)
            print(alone.row(f"  {scene.kind}"), flush=True)
    return total


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="FILE", help="recordings of speech without noise or music"
    )
    parser.add_argument("--seconds", type=int, default=30, help="length of each mixture (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mixtures (default: 0)")
    parser.add_argument("--config", metavar="NAME_OR_FILE", help="measure the [vad] section of this configuration")
    parser.add_argument("--each", action="store_true", help="also print the score of every mixture")


def run(options: argparse.Namespace) -> int:
    config = load_config(options.config).vad if options.config else VadConfig()
    recordings = [_samples(path) for path in options.recordings]
    if options.seconds < _SHORTEST_S:
        raise UsageError(f"--seconds is {options.seconds}; a mixture needs at least {_SHORTEST_S}")
    if options.seed < 0:
        raise UsageError(f"--seed is {options.seed}; give a whole number from 0")
    scenes = speech_scenes(recordings, tuple(NOISES), options.seconds, options.seed)
    noises = noise_scenes(tuple(NOISES), options.seconds, options.seed + 1)
    print(f"{len(scenes)} scenes with speech, {len(noises)} without, {options.seconds} s each\n{LEGEND}\n\n{HEADING}")
    print(measure([*scenes, *noises], config, options.each).row(options.config or config.detector), flush=True)
    return 0


def _samples(path: Path) -> Samples:
    samples = read_audio(path)
    if not utterances([samples]):
        raise UsageError(f"{path} has no speech of at least 0.2 s; give recordings of clean speech")
    return samples
