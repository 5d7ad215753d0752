"""What the stages leave out when they fall behind a live source: drafts. Pure: lag in, measures out.

Drafts are left out while the lag is above ``behind_s``, until it has fallen to ``caught_up_s``. The rest is the same on every machine:
no audio is dropped, and final text does not depend on the load; on a machine that is too slow it comes later and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..bounds import CheckedOptions, within


@dataclass(frozen=True)
class OverloadOptions(CheckedOptions):
    """When a live run counts as behind."""

    # Lag in seconds above which there are no drafts.
    behind_s: float = within(5.0, 0.5, 3_600)
    # Lag in seconds at which there are drafts again.
    caught_up_s: float = within(2.0, 0, 3_600)
    # Maximum microphone audio that waits, in seconds: one minute in memory, the rest in a temporary file.
    backlog_s: float = within(3_600.0, 1, 86_400)

    def conflicts(self) -> Iterator[str]:
        """Options that contradict each other: one sentence each, with the names of the keys."""
        if self.caught_up_s >= self.behind_s:
            yield (
                f"overload.caught_up_s ({self.caught_up_s:g}) must be less than overload.behind_s ({self.behind_s:g})"
            )
        if self.backlog_s < 2 * self.behind_s:
            yield (
                f"overload.backlog_s ({self.backlog_s:g}) must be at least twice overload.behind_s "
                f"({self.behind_s:g}): audio would be lost before drafts are left out"
            )


class LoadControl:
    """Whether the stages are behind. Stages read ``drafts`` before each piece of work."""

    def __init__(self, options: OverloadOptions) -> None:
        self.options = options
        self.drafts = True
        """Whether there is time for drafts."""

    @property
    def level(self) -> int:
        """0: as configured; 1: without drafts."""
        return int(not self.drafts)

    def observe(self, lag_s: float) -> bool:
        """Take one observation of the lag; True if ``drafts`` changed."""
        before = self.drafts
        if lag_s > self.options.behind_s:
            self.drafts = False
        elif lag_s <= self.options.caught_up_s:
            self.drafts = True
        return self.drafts != before
