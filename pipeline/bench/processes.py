"""CPU time and memory of this process and of other programs on this machine, from Linux's /proc."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class Usage:
    """Memory and processor time of a process and its descendants."""

    cpu_s: float
    """CPU time; includes that of children that have ended."""
    resident_mb: float
    """Resident memory. Pages that processes share count in each."""
    cores: int
    """Processor cores that the process may use."""


def usage_of(process: int) -> Usage | None:
    """Memory and processor time of a process and its descendants; None if it has ended, or there is no /proc.

    /proc/PID/stat and /proc/PID/statm are described in proc(5).
    """
    numbers = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()] if _PROC.is_dir() else []
    stats = {number: stat for number in numbers if (stat := _stat(number)) is not None}
    if process not in stats:
        return None
    tree = {process}
    while more := {number for number, stat in stats.items() if int(stat[1]) in tree and number not in tree}:
        tree |= more
    # User and system time, and both of the children that were waited for: fields 14 to 17, here from the state, field 3.
    ticks = sum(int(value) for number in tree for value in stats[number][11:15])
    resident_mb = sum(map(_resident_mb, tree))
    try:
        cores = len(os.sched_getaffinity(process))
    except OSError:  # it has ended just now
        return None
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), resident_mb, cores)


def machine_cpu_s() -> float:
    """CPU time that all processes of the machine have used; NaN if it is not known: no /proc.

    The first line of /proc/stat has user, nice, system, idle, iowait, irq, softirq and steal; see proc(5).
    """
    try:
        fields = (_PROC / "stat").read_text("utf-8").split(maxsplit=9)[1:9]
    except OSError:
        return math.nan
    ticks = sum(int(value) for index, value in enumerate(fields) if index not in (3, 4))  # idle, iowait
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str] | None:
    """The fields after the name, which is in brackets and may hold blanks: state, parent, …"""
    try:
        return (_PROC / str(process) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None


def _resident_mb(process: int) -> float:
    try:
        pages = int((_PROC / str(process) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def resident_mb() -> float:
    """The resident memory of this process, or its peak where the system has no /proc."""
    return _resident_mb(os.getpid()) or peak_mb()


def peak_mb() -> float:
    """The peak resident memory of this process; 0 on Windows."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


@dataclass(frozen=True)
class Load:
    """Processor time and memory of the server during one part of the run."""

    cpu_share: float
    """The share used of all cores that the server may use, 0 to 1."""
    peak_mb: float
    others_share: float
    """The share of all cores of the machine, 0 to 1, that all other processes used, the clients among them. A measurement
    beside much else is worth little."""


class Sampler:
    """Looks at a process again and again while the block runs."""

    def __init__(self, process: int) -> None:
        self._process, self._found = process, list[tuple[float, float, Usage]]()

    async def __aenter__(self) -> Sampler:
        self._look()
        self._task = asyncio.create_task(self._looking())
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._task.cancel()
        self._look()

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE_S)
            self._look()

    def _look(self) -> None:
        if (usage := usage_of(self._process)) is not None:
            self._found.append((time.monotonic(), machine_cpu_s(), usage))

    def load(self) -> Load:
        if len(self._found) < 2:
            return Load(float("nan"), float("nan"), float("nan"))  # no /proc
        (began_s, all_before_s, first), *_, (ended_s, all_after_s, last) = self._found
        length_s, used_s = ended_s - began_s, last.cpu_s - first.cpu_s
        others_s = max(0.0, all_after_s - all_before_s - used_s)
        return Load(
            used_s / (length_s * last.cores),
            max(usage.resident_mb for *_, usage in self._found),
            others_s / (length_s * (os.cpu_count() or 1)),
        )
