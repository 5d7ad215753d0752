"""What a run does to its process: how late the event loop is, and how much memory is held."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

LATE_MS = 10
"""Nothing may keep the event loop longer."""
# How often the probe asks to be woken, and how finely its lateness is counted.
_INTERVAL_S = 0.002
_BUCKET_S = 0.0001
_BUCKETS = 10_000


@dataclass(frozen=True)
class LoopTimes:
    """How late an event loop was."""

    longest_ms: float
    longest_work_ms: float
    """Processor time that the loop spent at a stretch: lateness without the waiting for other threads and programs."""
    p99_ms: float
    late: int
    """Times that it was more than ``LATE_MS`` late."""
    asked: int


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


class IdleProbe:
    """The same probe in a process of its own that does nothing else: how late this machine makes any loop."""

    times = LoopTimes(0.0, 0.0, 0.0, 0, 0)
    """Filled in at the end of the block; not where the process was ended before."""

    async def __aenter__(self) -> IdleProbe:
        command = (sys.executable, "-m", "pipeline.bench.probe")
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        await self._process.stdout.readline()  # it has begun
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        output, _ = await self._process.communicate(b"")  # ends its input
        if output:  # else it was ended too, by a signal to both
            self.times = LoopTimes(**json.loads(output))


async def _idle() -> None:
    """Probe until standard input ends; an interrupt of both processes is the other's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with LoopProbe() as probe:
        print(flush=True)
        await asyncio.to_thread(sys.stdin.read)
    print(json.dumps(dataclasses.asdict(probe.times)))


def resident_mb() -> float:
    """Memory that this process holds; where the system does not say, the most that it has held."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        import resource

        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return peak_mb()


def held_mb() -> float:
    """Memory that this process holds once its allocator has given back what lies free, where glibc's can be told to.

    Free memory in an allocator's pools is no growth of what is kept, and how much of it lies there differs between
    machines by more than a run's own. Giving it back takes milliseconds: not for an event loop's thread.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
    return resident_mb()


def peak_mb() -> float:
    """The most memory that this process has held; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 1e6 if sys.platform == "darwin" else held * 1024 / 1e6


if __name__ == "__main__":
    asyncio.run(_idle())
