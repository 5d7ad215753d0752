"""Freed memory is used again."""

import ctypes
import platform
import subprocess
import sys

import pytest

from pipeline.backends.machine import keep_freed_memory

FAULTS = """
import resource, threading
{setting}
def allocate():
    for _ in range(10):
        b'1' * 80_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
thread = threading.Thread(target=allocate)
thread.start()
thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
KEEP = "from pipeline.backends.machine import keep_freed_memory; keep_freed_memory()"


def faults(setting: str) -> int:
    """Page faults of ten allocations of 80 MB on a thread."""
    command = [sys.executable, "-c", FAULTS.format(setting=setting)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator has these parameters")
def test_freed_memory_is_kept_for_the_next_allocation(monkeypatch):
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    assert faults(KEEP) * 4 < faults("")


THREADS = """
import os, sys
from pipeline.backends import machine
def stop():
    print(len(os.listdir("/proc/self/task")), "numpy" in sys.modules)
    sys.exit()
machine.keep_freed_memory = stop
from pipeline.translate import main
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of a process are listed in /proc")
def test_it_is_called_before_threads_are_started():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


class OldLibrary:
    """Stands for glibc 2.34, which this machine may not have: it refuses a threshold above 32 MB."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def mallopt(self, parameter: int, value: int) -> int:
        accepted = parameter != -3 or value <= 32 << 20
        if accepted:
            self.values[parameter] = value
        if parameter == -1:  # ends the adaptation of the threshold at its value, by default 128 KB
            self.values.setdefault(-3, 128 << 10)
        return int(accepted)


def test_an_old_glibc_gets_the_highest_threshold_that_it_accepts(monkeypatch):
    library = OldLibrary()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(sys, "platform", "linux")
    keep_freed_memory()
    assert library.values == {-8: 1, -3: 32 << 20, -1: 256 << 20}
