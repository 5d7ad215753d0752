"""When each stage worked, and when each segment's text came: stats that keep every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.events import Delta, PipelineEvent, SpeechSegment, Transcript
from pipeline.run.stats import PipelineStats


class Span(NamedTuple):
    """Seconds since the stream began."""

    begin_s: float
    end_s: float


@dataclass
class SegmentTimes:
    """One segment's way through the stages. All times in seconds since the stream began, which is the audio's own time
    for a source at its own pace; None where it did not come so far."""

    id: int
    start_s: float
    speech_end_s: float
    closed_s: float
    """The endpointer was sure that the speech had ended."""
    asr: Span | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    rejected: str | None = None
    source: str = ""
    target: str = ""

    @property
    def endpoint_s(self) -> float:
        """From the end of speech to the segment's being handed on."""
        return self.closed_s - self.speech_end_s


@dataclass
class Stopwatch(PipelineStats):
    """Keeps every span of work and every segment: for a measured run, not for one that lasts all day."""

    spans: dict[str, list[Span]] = field(default_factory=dict)
    by_id: dict[int, SegmentTimes] = field(default_factory=dict)
    shown_s: list[float] = field(default_factory=list)
    """When text came."""

    @contextmanager
    def busy(self, stage: str) -> Iterator[None]:
        began_s = self.stream_s
        try:
            with super().busy(stage):
                yield
        finally:
            self.spans.setdefault(stage, []).append(Span(began_s, self.stream_s))

    def segment_closed(self, segment: SpeechSegment) -> None:
        super().segment_closed(segment)
        self.by_id[segment.id] = SegmentTimes(segment.id, segment.start_s, segment.speech_end_s, self.stream_s)

    def transcribed(self, transcript: Transcript) -> None:
        super().transcribed(transcript)
        self.by_id[transcript.segment_id].asr = self.spans["asr"][-1]  # which the stage's work has just ended

    def got(self, event: PipelineEvent) -> None:
        """The reader has just got ``event``."""
        now_s = self.stream_s
        if isinstance(event, Transcript):
            of = self.by_id[event.segment_id]
            of.rejected, of.source = event.rejected, event.text
        elif isinstance(event, Delta):
            of = self.by_id[event.segment_id]
            of.target = event.applied_to(of.target)
            if event.text:
                self.shown_s.append(now_s)
                of.first_token_s = of.first_token_s or now_s
            of.last_token_s = now_s
