"""Freed memory is used again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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
KEEP = "from pipeline.run.memory import keep_freed_memory; keep_freed_memory()"


def faults(setting: str) -> int:
    """Page faults of ten allocations of 80 MB on a thread."""
    command = [sys.executable, "-c", FAULTS.format(setting=setting)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator has these parameters")
def test_freed_memory_is_kept_for_the_next_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    assert faults(KEEP) * 4 < faults("")
