"""Probes of the process: lateness of the event loop, and memory."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

LATE_MS = 10
"""Nothing may block the event loop for longer."""
# Wake-up interval of the probe, and the histogram of its lateness.
_INTERVAL_S = 0.002
_BUCKET_S = 0.0001
_BUCKETS = 10_000


@dataclass(frozen=True)
class LoopTimes:
    """Lateness of an event loop."""

    longest_ms: float
    longest_work_ms: float
    """Most CPU time of the loop's thread between two wake-ups; excludes waiting for other threads and programs."""
    p99_ms: float
    late: int
    """How often the loop was more than ``LATE_MS`` late."""
    asked: int
    """Number of wake-ups."""


class LoopProbe:
    """A task that sleeps 2 ms at a time and counts how late it wakes up, as any other task on the loop would.

    Its memory is constant. Lateness includes callbacks that block the loop, and waiting for the GIL or for a processor.
    ``longest_work_s``, the most CPU time of the loop's thread between two wake-ups, includes only the callbacks.
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

    @property
    def times(self) -> LoopTimes:
        return LoopTimes(
            self.longest_s * 1000,
            self.longest_work_s * 1000,
            self.percentile_s(0.99) * 1000,
            self.above(LATE_MS / 1000),
            self.count,
        )

    def late(self, seconds: float) -> None:
        """Count one lateness."""
        self.count += 1
        self.longest_s = max(self.longest_s, seconds)
        self._buckets[min(_BUCKETS, max(0, int(seconds / _BUCKET_S)))] += 1

    def above(self, seconds: float) -> int:
        """Return how often the loop was more than ``seconds`` late; resolution 0.1 ms."""
        return sum(self._buckets[round(seconds / _BUCKET_S) :])

    def percentile_s(self, share: float) -> float:
        """Return the lateness that ``share`` (0 to 1) of the wake-ups did not exceed, rounded up to 0.1 ms."""
        seen = 0
        for bucket, count in enumerate(self._buckets):
            seen += count
            if seen and seen >= share * self.count:
                return min((bucket + 1) * _BUCKET_S, self.longest_s)
        return 0.0


class IdleProbe:
    """The same probe in a separate idle process: the lateness that this machine causes by itself."""

    times = LoopTimes(0.0, 0.0, 0.0, 0, 0)
    """Set at the end of the block, unless the process was terminated earlier."""

    async def __aenter__(self) -> IdleProbe:
        command = (sys.executable, "-m", "pipeline.bench.probe")
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        await self._process.stdout.readline()  # wait until the probe runs
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        output, _ = await self._process.communicate(b"")  # closes its standard input
        if output:  # none if a signal terminated it too
            self.times = LoopTimes(**json.loads(output))


async def _idle() -> None:
    """Probe until standard input ends. The parent handles interrupts, which reach both processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with LoopProbe() as probe:
        print(flush=True)
        await asyncio.to_thread(sys.stdin.read)
    print(json.dumps(dataclasses.asdict(probe.times)))


def resident_mb() -> float:
    """Return the resident memory of this process, or its peak where the system has no /proc."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        import resource

        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return peak_mb()


def peak_mb() -> float:
    """Return the peak resident memory of this process; 0 on Windows."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


if __name__ == "__main__":
    asyncio.run(_idle())
