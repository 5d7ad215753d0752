"""What the stages do when they fall behind a source that does not wait. Pure: lag in, measures out.

    lag                     level   measure
    up to behind_s            0     none
    above behind_s            1     segments are cut sooner, so that text comes sooner; searches keep fewer hypotheses
    above twice behind_s      2     as well: segments that wait and follow each other are recognised together

A level ends when the lag has fallen to ``caught_up_s`` and, from the second to the first, to ``behind_s``. Audio is
kept all the while, and what has been translated is never taken back.

The second measure is what catches up: Whisper computes on a window of 10 s at least however short the segment, so that n
short segments in one window save n - 1 windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import within


@dataclass(frozen=True)
class OverloadOptions:
    """When a live run counts as behind, and what it does about it."""

    # Lag, in seconds, above which the first measures are taken; the second at twice that.
    behind_s: float = within(5.0, 0.5, 3_600)
    # Lag at which all is as before again.
    caught_up_s: float = within(2.0, 0, 3_600)
    # While behind, a segment is cut here at the latest.
    max_segment_ms: int = within(8_000, 1_000, 29_000)
    # While behind, hypotheses that recognition and translation keep at most; 1 is greedy.
    beam_size: int = within(1, 1, 20)
    # Speech recognised in one call while catching up, in milliseconds; 0 joins nothing. An encoder of 15 s costs a quarter
    # of one of 30 s.
    join_ms: int = within(14_000, 0, 29_000)
    # Audio of a microphone kept while it waits, in seconds: a minute in memory, the rest in a temporary file.
    backlog_s: float = within(3_600.0, 1, 86_400)


@dataclass(frozen=True)
class Measures:
    """What applies at one level; None and 0 change nothing."""

    max_segment_ms: int | None = within(None, 1_000, 29_000)
    beam_size: int | None = within(None, 1, 20)
    join_ms: int = within(0, 0, 29_000)


def next_level(level: int, lag_s: float, options: OverloadOptions) -> int:
    """The level after one more observation of the lag. Rises at once, falls with hysteresis."""
    starts = (options.behind_s, 2 * options.behind_s)
    ends = (options.caught_up_s, options.behind_s)
    risen = sum(lag_s > start for start in starts)
    while level > risen and lag_s <= ends[level - 1]:
        level -= 1
    return max(level, risen)


def measures(level: int, options: OverloadOptions) -> Measures:
    """What the stages do at ``level``."""
    if level == 0:
        return Measures()
    return Measures(options.max_segment_ms, options.beam_size, options.join_ms if level > 1 else 0)


class LoadControl:
    """The level that the stages work at; they read ``measures`` before each piece of work."""

    def __init__(self, options: OverloadOptions) -> None:
        self.options = options
        self.level = 0
        self.measures = Measures()

    def observe(self, lag_s: float) -> bool:
        """Take one observation of the lag; True where the level changed."""
        level = next_level(self.level, lag_s, self.options)
        changed = level != self.level
        self.level, self.measures = level, measures(level, self.options)
        return changed
