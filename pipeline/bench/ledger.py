"""The books of a long run: every segment accounted for, how late its text was, what it held in memory."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.bench.probe import held_mb
from pipeline.events import Delta, PipelineEvent, SpeechSegment, Transcript
from pipeline.run.stats import PipelineStats


@dataclass(frozen=True)
class Sample:
    """The process at one moment."""

    audio_s: float
    wall_s: float
    cpu_s: float
    memory_mb: float


@dataclass
class Hour:
    """What happened to the segments that ended in one hour of audio."""

    segments: int = 0
    translated: int = 0
    rejected: int = 0
    late_s: list[float] = field(default_factory=list, repr=False)
    """For each translated segment, wall-clock time from its end's being known to its last token."""


@dataclass
class Ledger(PipelineStats):
    """Stats that follow each segment from its end to its last token, and keep no segment that is done."""

    hours: dict[int, Hour] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    finished: int = 0
    """Segments translated to the end."""
    disorder: int = 0
    """Events of a segment that was done already, or before its turn."""
    _ends: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Segment → the hour it ended in, and when that was known."""
    _least_mb: float = math.inf
    _newest: int = -1
    _translating: int | None = None

    def weigh(self) -> None:
        """Look at the memory held, between two samples; it takes milliseconds."""
        self._least_mb = min(self._least_mb, held_mb())

    def sample(self, audio_s: float) -> None:
        """Note the process's state: of its memory the least since the last sample, for a call borrows 15 MB in its course."""
        self.weigh()
        least_mb, self._least_mb = self._least_mb, math.inf
        self.samples.append(Sample(audio_s, time.perf_counter(), time.process_time(), least_mb))

    def segment_closed(self, segment: SpeechSegment) -> None:
        super().segment_closed(segment)
        hour = int(segment.end_s // 3600)
        self._ends[segment.id] = hour, time.perf_counter()
        self.hours.setdefault(hour, Hour()).segments += 1

    def got(self, event: PipelineEvent) -> None:
        """The reader has just got ``event``."""
        if isinstance(event, Transcript):
            self.disorder += self._translating is not None or event.segment_id <= self._newest
            self._newest = event.segment_id
            if event.rejected:
                self.hours[self._ends.pop(event.segment_id)[0]].rejected += 1
            else:
                self._translating = event.segment_id
        elif isinstance(event, Delta):
            self.disorder += event.segment_id != self._translating
            if event.final:
                hour, known = self._ends.pop(event.segment_id)
                self.hours[hour].translated += 1
                self.hours[hour].late_s.append(time.perf_counter() - known)
                self.finished += 1
                self._translating = None

    @property
    def lost(self) -> int:
        """Segments without a transcript, or whose translation did not end."""
        return self.segments - self.rejected - self.finished


def slope(samples: Sequence[Sample]) -> tuple[float, float]:
    """Memory in MB an hour of audio, and the hours looked at: the least-squares line through the samples.

    Without the first fifth, which fills caches, queues and the allocator's pools, and without those taken when the input
    was over, when its source had given back what it held.
    """
    settled = [sample for sample in samples[len(samples) // 5 :] if sample.audio_s < samples[-1].audio_s]
    if len(settled) < 3:
        return 0.0, 0.0
    hours = np.array([sample.audio_s for sample in settled]) / 3600
    return float(np.polyfit(hours, [sample.memory_mb for sample in settled], 1)[0]), float(hours[-1] - hours[0])


def median_or_zero(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
