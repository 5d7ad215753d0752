"""What one client may have of the server: how fast its messages are read, and how many places it keeps. Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from .protocol import ProtocolError

Holder = TypeVar("Holder")

DISPLACED = (
    "the session is full, and your network had most of its places; one of them is another's now; try again later"
)
"""What one is told who gives up a place."""
# Messages that are read at once: those of this many seconds.
_AT_ONCE_S = 20.0


class Pace:
    """Tells how long to wait before the next message of a client is read: some at once, then so many a second."""

    def __init__(self, a_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._each_s, self._clock = 1 / a_second, clock
        self._due_s = clock() - _AT_ONCE_S
        """When the messages so far would have come if they had come evenly."""

    def wait_s(self) -> float:
        """Count one message; return the seconds until the next may be read."""
        now_s = self._clock()
        self._due_s = max(self._due_s, now_s - _AT_ONCE_S) + self._each_s
        return max(0.0, self._due_s - now_s)


class CountInSecond:
    """Counts what comes within one second of the clock. Pure: the caller tells the time."""

    _count = _second = 0

    def add(self, more: int, now_s: float) -> int:
        """Count more; return how many there are in this second."""
        self._count = more if int(now_s) != self._second else self._count + more
        self._second = int(now_s)
        return self._count


def gives_way(held: Sequence[str], newcomer: str, kept: int = 0) -> str | None:
    """Which address gives up one of its places for a newcomer when all places are taken: that with the most. None: none does.

    Args:
        held: the address of each place that may be given up.
        newcomer: an address, which gets no more places in this way than the other keeps.
        kept: places that an address keeps in any case.
    """
    counts = Counter(held)
    address, most = max(counts.items(), key=lambda count: count[1], default=("", 0))
    return address if most > max(counts[newcomer] + 1, kept) else None


def displaced(held: dict[Holder, str], address: str, most: int, who: str) -> Holder | None:
    """Who gives up a place of a session for one more of an address: the newest of an address that has more than half of them.

    Args:
        held: the addresses of those who have a place, oldest first.
        who: has a place, such as "readers".

    Returns:
        None: a place is free.

    Raises:
        ProtocolError: there is none.
    """
    if len(held) < most:
        return None
    if (loser := gives_way(list(held.values()), address, most // 2)) is None:
        raise ProtocolError("busy", f"the session has {len(held)} {who}, which is the limit; try again later")
    return next(holder for holder in reversed(held) if held[holder] == loser)
