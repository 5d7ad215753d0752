"""Statistics that keep when each stage was busy and when the text of each segment arrived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.events import Delta, PipelineEvent, SourceSentence, SpeechSegment, Transcript
from pipeline.run.stats import PipelineStats
from pipeline.sentences.growing import OpenTexts


class Span(NamedTuple):
    """Seconds since the stream began."""

    begin_s: float
    end_s: float


@dataclass
class SegmentTimes:
    """When one segment passed each stage.

    Times are seconds since the stream began, which equals audio time for a paced source. None: stage not reached.
    """

    id: int
    start_s: float
    speech_end_s: float
    closed_s: float
    """When the endpointer closed the segment."""
    asr: Span | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    rejected: str | None = None
    source: str = ""
    target: str = ""
    """The translation of the sentence that was in progress at the segment's end, as far as it was known then."""

    @property
    def endpoint_s(self) -> float:
        """Seconds from the end of speech to the segment leaving the VAD stage."""
        return self.closed_s - self.speech_end_s


@dataclass
class Stopwatch(PipelineStats):
    """Keeps every busy span and every segment, so its memory grows: for short benchmark runs only."""

    spans: dict[str, list[Span]] = field(default_factory=dict)
    by_id: dict[int, SegmentTimes] = field(default_factory=dict)
    spoken: list[SourceSentence] = field(default_factory=list)
    backlog_at_end_s: float = 0.0
    """``lag_s`` when the newest audio came."""
    _heard: dict[float, int] = field(default_factory=dict)
    """Audio heard when a segment was cut → the segment."""
    _texts: OpenTexts = field(default_factory=OpenTexts)

    @contextmanager
    def busy(self, stage: str) -> Iterator[None]:
        began_s = self.stream_s
        try:
            with super().busy(stage):
                yield
        finally:
            self.spans.setdefault(stage, []).append(Span(began_s, self.stream_s))

    def received(self, samples: int) -> None:
        super().received(samples)
        self.backlog_at_end_s = self.lag_s

    def segment_closed(self, segment: SpeechSegment) -> None:
        super().segment_closed(segment)
        self.by_id[segment.id] = SegmentTimes(segment.id, segment.start_s, segment.speech_end_s, self.stream_s)
        self._heard[segment.heard_s] = segment.id

    def transcribed(self, transcript: Transcript) -> None:
        super().transcribed(transcript)
        self.by_id[transcript.segment_id].asr = self.spans["asr"][-1]  # the span that has just ended

    def got(self, event: PipelineEvent) -> None:
        """Record that the consumer received ``event`` now."""
        now_s = self.stream_s
        if isinstance(event, Transcript):
            times = self.by_id[event.segment_id]
            times.rejected, times.source = event.rejected, event.text
        elif isinstance(event, SourceSentence):
            self.spoken.append(event)
        elif isinstance(event, Delta):
            text = self._texts.push(event)
            if text is not None and event.heard_s in self._heard:
                times = self.by_id[self._heard[event.heard_s]]
                times.target = text.text
                if event.text and times.first_token_s is None:
                    times.first_token_s = now_s
                times.last_token_s = now_s
