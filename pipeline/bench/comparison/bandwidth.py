"""How fast this machine reads memory, which is the floor of decoding one sentence: every token reads all weights."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

MAIN_MEMORY_BYTES = 256_000_000
"""More than the caches of one processor hold."""


def read_seconds(size_bytes: int, threads: int, repeats: int = 7) -> float:
    """Seconds to read ``size_bytes`` once, at best, when the same bytes were read just before.

    What fits into a cache is read from there, as a model's weights of that size would be. A bitwise-or over 64-bit words
    is one vector instruction a load, and numpy lets other threads run meanwhile; each thread reads a part of its own.
    """
    # Written to, for untouched pages of zeros would all be one page.
    words = np.full(max(threads, size_bytes // 8), 1, np.uint64)
    parts = np.array_split(words, threads)
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in pool.map(_read, parts):
                pass
            best = min(best, time.perf_counter() - began)
    return best


def _read(words: NDArray[np.uint64]) -> np.uint64:
    found: np.uint64 = np.bitwise_or.reduce(words)
    return found
