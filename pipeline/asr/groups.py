"""Which segments are recognised together: a rule over segments and pauses alone, the same for live runs and recordings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..events import SAMPLE_RATE, EndOfInput, Pause, SpeechSegment
from .context import fits

LIMIT_MS = 19_000
"""Longest group: 20 s with the padding. The encoder takes half as much time again per second of speech in longer windows."""
LONG_MS, LONG_PAUSE_MS = 9_000, 800
"""A group of this length closes at a pause of this length: longer ones come later, and are not heard better."""
# One of this length closes at any pause.
_LONGER_MS = 14_000
# A group that is full ends at its longest pause, but not in the first part of it, which would leave it short.
_LEAST_SHARE = 0.5

Group = tuple[SpeechSegment, ...]


class Groups:
    """Collects segments until their group closes: at a long pause, at a shorter one if it is long, where the language changes.

    A group that would become longer than the limit closes at its longest pause: numbers and clauses stay whole.
    """

    def __init__(self, pause_ms: int, sure_ms: int = LIMIT_MS) -> None:
        """``pause_ms``: the pause that closes a group; 0: each segment is one.

        ``sure_ms``: a segment that has become longer is perhaps cut, but not before this length.
        """
        self._pause_s = pause_ms / 1000
        self._sure = sure_ms * SAMPLE_RATE // 1000
        self.open: Group = ()
        """The segments of the group that has not closed."""

    def push(self, item: SpeechSegment | Pause | EndOfInput) -> list[Group]:
        """Take the next item; return the groups that it closes."""
        if isinstance(item, SpeechSegment):
            closed = self._closed_by(item)
            self.open += (item,)
            full = not item.forced_cut and self._length_ms >= _LONGER_MS
            return [*closed, *self._close()] if full or not self._pause_s else closed
        if isinstance(item, Pause):
            least_s = min(self._pause_s, LONG_PAUSE_MS / 1000) if self._length_ms >= LONG_MS else self._pause_s
            if not self.open or item.start_s < self.open[-1].start_s or item.length_s < least_s:
                return []
        return self._close()

    @property
    def _length_ms(self) -> float:
        return 1000 * (self.open[-1].end_s - self.open[0].start_s) if self.open else 0.0

    def reached(self, segment: SpeechSegment) -> list[Group]:
        """The groups that the segment in progress closes already. It is not taken."""
        return self._closed_by(replace(segment, samples=segment.samples[: self._sure]))

    def _closed_by(self, segment: SpeechSegment) -> list[Group]:
        """The groups that the next segment closes: it is in another language, or there is no room for it. Then the open group is
        cut at its longest pause.
        """
        closed: list[Group] = []
        if self.open and segment.language != self.open[-1].language:
            closed += self._close()
        while self.open and not fits(self.open, segment, LIMIT_MS):
            count = _longest_pause(self.open, segment)
            closed.append(self.open[:count])
            self.open = self.open[count:]
        return closed

    def _close(self) -> list[Group]:
        closed, self.open = self.open, ()
        return [closed] if closed else []


def _longest_pause(group: Sequence[SpeechSegment], following: SpeechSegment) -> int:
    """The number of segments before the longest pause in a group, or after it."""
    least_s = group[0].start_s + _LEAST_SHARE * LIMIT_MS / 1000
    pauses = {
        count: after.speech_start_s - before.speech_end_s
        for count, (before, after) in enumerate(zip(group, (*group[1:], following), strict=True), 1)
    }
    late = [count for count in pauses if group[count - 1].end_s >= least_s] or [len(group)]
    return max(late, key=lambda count: (pauses[count], count))
