"""Deltas → cues. Pure: events in, finished cues out."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.events import Delta, PipelineEvent


@dataclass(frozen=True)
class Cue:
    """One subtitle: a translated sentence and when it was said."""

    index: int
    """From 1."""
    start_s: float
    end_s: float
    source: str
    text: str


class CueBuilder:
    """Makes one cue a sentence. Cues neither overlap nor go back in time; a sentence without text makes none."""

    def __init__(self) -> None:
        self._text = ""
        self._count = 0
        self._end_s = 0.0

    def push(self, event: PipelineEvent) -> Cue | None:
        """One more event; the cue that it completes, if it does."""
        if not isinstance(event, Delta):
            return None
        kept = self._text[: len(self._text) - event.withdrawn]
        self._text = kept + event.text
        if not event.end_of_sentence:
            return None
        text, self._text = " ".join(self._text.split()), ""
        if not text:
            return None
        self._count += 1
        start_s = max(event.start_s, self._end_s)
        self._end_s = max(event.end_s, start_s)
        return Cue(self._count, start_s, self._end_s, event.source, text)
