"""Counters and timings of one run, readable by an embedding app while it runs."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipeline.events import SAMPLE_RATE, SpeechSegment


@dataclass
class PipelineStats:
    """All times in seconds. What grows with the run is bounded: latencies keep the newest 1,000."""

    audio_samples: int = 0
    """Audio consumed."""
    segments: int = 0
    overflows: int = 0
    """Times that the audio source lost audio because it was not read in time."""
    rejected: int = 0
    """Transcripts flagged and not translated."""
    sentences: int = 0
    tokens: int = 0
    busy_s: dict[str, float] = field(default_factory=dict)
    """Time each stage spent working."""
    load_s: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    first_token_s: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    """For each segment, from its end being known to its first target token."""
    _closed: dict[int, float] = field(default_factory=dict)

    @property
    def audio_s(self) -> float:
        return self.audio_samples / SAMPLE_RATE

    @contextmanager
    def busy(self, stage: str) -> Iterator[None]:
        """Count the time inside the block as work of ``stage``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.busy_s[stage] = self.busy_s.get(stage, 0.0) + time.perf_counter() - began

    def segment_closed(self, segment: SpeechSegment) -> None:
        self.segments += 1
        self._closed[segment.id] = time.perf_counter()

    def segment_rejected(self, segment_id: int) -> None:
        self.rejected += 1
        self._closed.pop(segment_id, None)

    def token(self, segment_id: int) -> None:
        self.tokens += 1
        if (closed := self._closed.pop(segment_id, None)) is not None:
            self.first_token_s.append(time.perf_counter() - closed)

    def summary(self) -> str:
        """One paragraph for the end of a run."""
        elapsed = time.perf_counter() - self.started
        stages = ", ".join(f"{name} {spent:.2f} s" for name, spent in self.busy_s.items())
        lines = [
            f"{self.audio_s:.1f} s of audio in {elapsed:.1f} s ({self.audio_s / max(elapsed, 1e-9):.1f} times real time), "
            f"models loaded in {self.load_s:.2f} s",
            f"{self.segments} segments, {self.rejected} not translated, {self.sentences} sentences, {self.tokens} tokens; "
            f"time in stages: {stages or 'none'}",
        ]
        if self.overflows:
            lines.append(f"audio was lost {self.overflows} times: this machine does not keep up")
        if self.first_token_s:
            lines.append(
                f"first token after a segment's end: median {statistics.median(self.first_token_s):.2f} s, "
                f"longest {max(self.first_token_s):.2f} s"
            )
        return "\n".join(lines)
