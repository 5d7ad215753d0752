"""The memory allocator of this process, and its processor cores."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

# Parameters of glibc's mallopt (malloc.h).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# More than the largest block of a recognition, the attention of 1,500 positions (108 MB with Whisper small).
_KEPT_BYTES = 256 << 20
# glibc before about 2.35 refuses a higher M_MMAP_THRESHOLD (HEAP_MAX_SIZE / 2 in its malloc.c).
_MOST_UNMAPPED_BYTES = 32 << 20


def keep_freed_memory() -> None:
    """Let glibc keep up to 256 MB of freed memory for the next computations. Call this before threads are started:
    a thread that has allocated memory keeps its own pool.

    By default a thread gets pools of 64 MB. A block that does not fit into one, or that is freed at the end of one, goes
    back to the system at once, and new memory costs a page fault every 4 KB: a tenth of the time of a recognition
    (docs/benchmarks.md). Threads that share the pool take less memory, too.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            libc = ctypes.CDLL(None)
            libc.mallopt(_M_ARENA_MAX, 1)
            # The trim threshold ends the adaptation of this one, which would stay at 128 KB if it was not set.
            if not libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES):
                libc.mallopt(_M_MMAP_THRESHOLD, _MOST_UNMAPPED_BYTES)
            libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def give_back_memory() -> None:
    """Return freed memory to the system. glibc would keep it, after loading for example (40 MB for opus-mt in 8 bits)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)


def usable_cores() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
