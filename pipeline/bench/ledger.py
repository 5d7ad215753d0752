"""Statistics of a long run: the outcome and latency of every segment, and the memory of the process."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.bench.probe import held_mb
from pipeline.events import PipelineEvent, SourceSentence, SpeechSegment, Transcript, Translation
from pipeline.languages.marks import letters
from pipeline.run.stats import PipelineStats


@dataclass(frozen=True)
class Sample:
    """CPU time and memory of the process at one moment."""

    audio_s: float
    wall_s: float
    cpu_s: float
    memory_mb: float


@dataclass
class Hour:
    """Counts for the segments that ended in one hour of audio."""

    segments: int = 0
    translated: int = 0
    rejected: int = 0
    late_s: list[float] = field(default_factory=list, repr=False)
    """For each translated segment, wall-clock seconds from its closing to the translation of its last sentence."""


@dataclass
class Ledger(PipelineStats):
    """Follows the letters of each segment into sentences and their translations. Finished segments are not kept."""

    hours: dict[int, Hour] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    finished: int = 0
    """Segments whose translation ended."""
    disorder: int = 0
    """Events out of order, and sentences whose text is not that of the transcripts."""
    _open: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Open segment id → the hour of audio in which it ended, and the wall-clock time when it was closed."""
    _lowest_mb: float = math.inf
    _newest: int = -1
    _letters: str = ""
    """Letters and digits of transcripts that are in no sentence yet."""
    _heard: int = 0
    """Number of letters and digits heard so far."""
    _segments: deque[tuple[int, int]] = field(default_factory=deque)
    """Segments waiting for translation, and the number of letters heard at their end."""
    _sentences: deque[tuple[int, int]] = field(default_factory=deque)
    """Sentences waiting for translation, and the number of letters heard at their end."""

    def update_lowest_memory(self) -> None:
        """Update the lowest memory since the last sample. This takes milliseconds."""
        self._lowest_mb = min(self._lowest_mb, held_mb())

    def sample(self, audio_s: float) -> None:
        """Take a sample with the lowest memory since the last one, because a running model call takes 15 MB more."""
        self.update_lowest_memory()
        lowest_mb, self._lowest_mb = self._lowest_mb, math.inf
        self.samples.append(Sample(audio_s, time.perf_counter(), time.process_time(), lowest_mb))

    def segment_closed(self, segment: SpeechSegment) -> None:
        super().segment_closed(segment)
        hour = int(segment.end_s // 3600)
        self._open[segment.id] = hour, time.perf_counter()
        self.hours.setdefault(hour, Hour()).segments += 1

    def got(self, event: PipelineEvent) -> None:
        """Record that the consumer received ``event`` now."""
        if isinstance(event, Transcript):
            self.disorder += event.segment_id <= self._newest
            self._newest = event.segment_id
            if event.rejected:
                self.hours[self._open.pop(event.segment_id)[0]].rejected += 1
            else:
                heard = letters(event.text)
                self._letters += heard
                self._heard += len(heard)
                self._segments.append((event.segment_id, self._heard))
        elif isinstance(event, SourceSentence):
            said = letters(event.text)
            self.disorder += not self._letters.startswith(said)
            self._letters = self._letters[len(said) :]
            self._sentences.append((event.sentence, self._heard - len(self._letters)))
        elif isinstance(event, Translation):
            if not self._sentences or self._sentences[0][0] != event.sentence:
                self.disorder += 1
                return
            _, translated = self._sentences.popleft()
            while self._segments and self._segments[0][1] <= translated:
                hour, closed_at = self._open.pop(self._segments.popleft()[0])
                self.hours[hour].translated += 1
                self.hours[hour].late_s.append(time.perf_counter() - closed_at)
                self.finished += 1

    @property
    def lost(self) -> int:
        """Segments that were neither rejected nor translated to the end."""
        return self.segments - self.rejected - self.finished


def memory_slope(samples: Sequence[Sample]) -> tuple[float, float]:
    """Fit a least-squares line; return memory growth in MB per hour of audio, and the hours that it covers.

    The first fifth is left out, because caches, queues and the allocator's pools fill up then. Samples taken after the
    end of the input are left out too, because the source has released its memory by then.
    """
    settled = [sample for sample in samples[len(samples) // 5 :] if sample.audio_s < samples[-1].audio_s]
    if len(settled) < 3:
        return 0.0, 0.0
    hours = np.array([sample.audio_s for sample in settled]) / 3600
    return float(np.polyfit(hours, [sample.memory_mb for sample in settled], 1)[0]), float(hours[-1] - hours[0])


def median_or_zero(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
