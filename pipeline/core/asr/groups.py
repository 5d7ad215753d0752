"""Which segments are recognised together: a rule over segments and pauses alone, the same for live runs and recordings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..events import SAMPLE_RATE, EndOfInput, Pause, SpeechSegment
from .context import fits

LIMIT_MS = 19_000
"""Longest group: 20 s with the padding. The encoder takes half as much time again per second of speech in longer windows."""
# A group that is shorter is heard together with what was said before it, if that is not longer ago than this and both fit into the
# shortest window: a word or two alone are often misheard.
_SHORT_MS, _AGO_S, _WINDOW_MS = 2_000, 2.0, 9_000

Group = tuple[SpeechSegment, ...]


class Groups:
    """Collects segments until their group closes: at the end of any that was not cut, so that its text is final soon, where the
    language changes, and before it would be longer than the limit.
    """

    def __init__(self, *, single: bool = False, sure_ms: int = LIMIT_MS) -> None:
        """``single``: each segment is a group.

        ``sure_ms``: a segment that has become longer is perhaps cut, but not before this length.
        """
        self._single = single
        self._sure = sure_ms * SAMPLE_RATE // 1000
        self.open: Group = ()
        """The segments of the group that has not closed."""

    def push(self, item: SpeechSegment | Pause | EndOfInput) -> list[Group]:
        """Take the next item; return the groups that it closes."""
        if not isinstance(item, SpeechSegment):
            return self._close()
        closed = self._closed_by(item)
        self.open += (item,)
        return closed if item.forced_cut and not self._single else [*closed, *self._close()]

    def reached(self, segment: SpeechSegment) -> list[Group]:
        """The groups that the segment in progress closes already. It is not taken."""
        return self._closed_by(replace(segment, samples=segment.samples[: self._sure]))

    def _closed_by(self, segment: SpeechSegment) -> list[Group]:
        """The group that the next segment closes: it is in another language, or there is no room for it."""
        if self.open and (segment.language != self.open[-1].language or not fits(self.open, segment, LIMIT_MS)):
            return self._close()
        return []

    def _close(self) -> list[Group]:
        closed, self.open = self.open, ()
        return [closed] if closed else []


def lead(before: Sequence[SpeechSegment], group: Group) -> Group:
    """The segments ``before`` a group that are heard again together with it, because it is short."""
    leading: Group = ()
    if 1000 * (group[-1].end_s - group[0].speech_start_s) < _SHORT_MS:
        for segment in reversed(before):
            after = (*leading, *group)
            apart = after[0].speech_start_s - segment.speech_end_s >= _AGO_S or after[0].language != segment.language
            if apart or not fits((segment, *after[:-1]), after[-1], _WINDOW_MS):
                break
            leading = (segment, *leading)
    return leading
