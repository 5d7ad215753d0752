"""The measures that the stages take when they fall behind a live source. Pure: lag in, measures out.

    lag                     level   measure
    up to behind_s            0     none
    above behind_s            1     segments are cut sooner, so that text appears sooner; searches keep fewer hypotheses;
                                    segments are recognised without context, and not before they end: no drafts
    above 2 * behind_s        2     the measures of level 1, and consecutive waiting segments are recognised together

Level 2 ends when the lag has fallen to ``behind_s``, level 1 when it has fallen to ``caught_up_s``. No audio is
dropped, and no translated text is withdrawn.

Level 2 is the one that catches up: Whisper computes a window of at least 10 s however short the segment is, so n short
segments in one window save n - 1 windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bounds import Checked, within

LIVE_WINDOW_MS = 14_000
"""Length up to which segments share one recogniser window in a live run, in milliseconds: encoding 15 s costs a quarter of
encoding 30 s."""


@dataclass(frozen=True)
class OverloadOptions(Checked):
    """When a live run counts as behind, and which measures it takes."""

    # Lag in seconds above which level 1 begins; level 2 begins at twice that.
    behind_s: float = within(5.0, 0.5, 3_600)
    # Lag in seconds at which level 1 ends.
    caught_up_s: float = within(2.0, 0, 3_600)
    # Maximum segment length while behind.
    max_segment_ms: int = within(8_000, 1_000, 29_000)
    # Maximum beam size of recognition and translation while behind; 1 is greedy.
    beam_size: int = within(1, 1, 20)
    # Maximum speech recognised in one call at level 2, in milliseconds; 0 joins no segments.
    join_ms: int = within(LIVE_WINDOW_MS, 0, 29_000)
    # Maximum microphone audio that waits, in seconds: one minute in memory, the rest in a temporary file.
    backlog_s: float = within(3_600.0, 1, 86_400)


@dataclass(frozen=True)
class Measures:
    """The measures of one level. The defaults change nothing."""

    max_segment_ms: int | None = within(None, 1_000, 29_000)
    beam_size: int | None = within(None, 1, 20)
    join_ms: int = within(0, 0, 29_000)
    context: bool = True
    """Whether a segment is recognised after the speech before it (``AsrConfig.context_ms``)."""
    early: bool = True
    """Whether a segment is recognised in the silence after it, before it has ended (``VadConfig.early_ms``). The work is
    wasted if the segment goes on."""


def measures(level: int, options: OverloadOptions) -> Measures:
    """The measures of ``level``."""
    if level == 0:
        return Measures()
    join_ms = options.join_ms if level > 1 else 0
    return Measures(options.max_segment_ms, options.beam_size, join_ms, context=False, early=False)


class LoadControl:
    """The current level. Stages read ``measures`` before each piece of work."""

    def __init__(self, options: OverloadOptions) -> None:
        self.options = options
        self.level = 0
        self.measures = Measures()

    def observe(self, lag_s: float) -> bool:
        """Take one observation of the lag. The level rises at once and falls with hysteresis; True if it changed."""
        options, level = self.options, self.level
        starts, ends = (options.behind_s, 2 * options.behind_s), (options.caught_up_s, options.behind_s)
        risen = sum(lag_s > start for start in starts)
        while level > risen and lag_s <= ends[level - 1]:
            level -= 1
        level = max(level, risen)
        changed = level != self.level
        self.level, self.measures = level, measures(level, options)
        return changed
