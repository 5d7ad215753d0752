"""What a run does to its process: how late the event loop is, and how much memory is held."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from types import TracebackType

# How often the probe asks to be woken, and how finely its lateness is counted.
_INTERVAL_S = 0.002
_BUCKET_S = 0.0001
_BUCKETS = 10_000


class LoopProbe:
    """A task that wants to run every 2 ms and counts how late it does: as late as anything else on the loop would be.

    Its memory does not grow. Lateness is the loop blocked by callbacks, and also its waiting for the interpreter's lock or
    for a processor; ``longest_work_s``, the loop's own processor time between two wakings, is the callbacks' alone.
    """

    def __init__(self) -> None:
        self.longest_s = self.longest_work_s = 0.0
        self.count = 0
        self._buckets = [0] * (_BUCKETS + 1)

    async def __aenter__(self) -> LoopProbe:
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, worked = loop.time() + _INTERVAL_S, time.thread_time()
            await asyncio.sleep(_INTERVAL_S)
            self.late(loop.time() - due)
            self.longest_work_s = max(self.longest_work_s, time.thread_time() - worked)

    def late(self, seconds: float) -> None:
        """Count one lateness."""
        self.count += 1
        self.longest_s = max(self.longest_s, seconds)
        self._buckets[min(_BUCKETS, max(0, int(seconds / _BUCKET_S)))] += 1

    def above(self, seconds: float) -> int:
        """How often the loop was later than ``seconds``, to a tenth of a millisecond."""
        return sum(self._buckets[round(seconds / _BUCKET_S) :])

    def percentile_s(self, share: float) -> float:
        """The lateness that ``share`` of all (0 to 1) did not exceed, rounded up to a tenth of a millisecond."""
        seen = 0
        for bucket, count in enumerate(self._buckets):
            seen += count
            if seen and seen >= share * self.count:
                return min((bucket + 1) * _BUCKET_S, self.longest_s)
        return 0.0


def resident_mb() -> float:
    """Memory that this process holds; where the system does not say, the most that it has held."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        import resource

        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return peak_mb()


def peak_mb() -> float:
    """The most memory that this process has held; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 1e6 if sys.platform == "darwin" else held * 1024 / 1e6
