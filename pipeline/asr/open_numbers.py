"""Numbers that go on after a pause: a live segment that ends in one is kept back for a moment. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..events import SAMPLE_RATE, EndOfInput, Pause, SegmentSoFar, SpeechSegment
from ..languages.numbers import ends_in_number

NUMBER_PAUSE_MS = 1_000
"""A pause of this length ends a number."""
# The longest segment that is recognised at once: Whisper's window less its padding.
_LONGEST_MS = 29_000

_Item = SpeechSegment | SegmentSoFar | Pause | EndOfInput


class OpenNumbers:
    """Keeps back a segment that ends in a number, and joins it to the speech that follows soon."""

    def __init__(self, max_segment_ms: int, joined: Callable[[SpeechSegment, SpeechSegment], None]) -> None:
        """``max_segment_ms``: the longest segment that may follow. ``joined`` is told what was kept back, and what it becomes."""
        self._most = (_LONGEST_MS - NUMBER_PAUSE_MS - max_segment_ms) * SAMPLE_RATE // 1000
        self._joined = joined
        self._kept: SpeechSegment | None = None

    def push(self, item: _Item, text: Callable[[SpeechSegment], str]) -> list[_Item]:
        """The items that can be worked on, now that ``item`` has come; none if it is kept back.

        ``text``: what was heard in a segment, or "" if that is not known yet.
        """
        if isinstance(item, Pause) and self._kept is not None and item.start_s < self._kept.start_s:
            return [item]  # a pause before it
        before, self._kept = self._kept, None
        segment = item.segment if isinstance(item, SegmentSoFar) else item
        found: list[_Item] = []
        if before is not None:
            soon = isinstance(segment, SpeechSegment) and segment.start_s - before.end_s < NUMBER_PAUSE_MS / 1000
            if isinstance(segment, SpeechSegment) and soon:
                segment = _with_more(before, segment)
                self._joined(before, segment)
                if isinstance(item, SegmentSoFar):
                    self._kept = before
                    return [replace(item, segment=segment)]
                item = segment
            else:
                found.append(before)
        ends = isinstance(item, SpeechSegment) and not item.forced_cut and len(item.samples) <= self._most
        if isinstance(item, SpeechSegment) and ends and ends_in_number(text(item)):
            self._kept = item
            return found
        return [*found, item]


def _with_more(before: SpeechSegment, segment: SpeechSegment) -> SpeechSegment:
    """One segment of both, with the silence between them."""
    gap = np.zeros(max(0, segment.start_sample - before.start_sample - len(before.samples)), np.int16)
    return replace(
        segment,
        start_sample=before.start_sample,
        samples=np.concatenate([before.samples, gap, segment.samples]),
        speech_start_sample=before.speech_start_sample,
    )
