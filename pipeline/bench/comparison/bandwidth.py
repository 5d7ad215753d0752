"""Measure memory read speed. It limits decoding one sentence, because every token reads all weights."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

MAIN_MEMORY_BYTES = 256_000_000
"""Larger than the caches of one processor."""


def read_seconds(size_bytes: int, threads: int, repeats: int = 7) -> float:
    """Return the least seconds to read ``size_bytes`` that were read just before.

    Bytes that fit into a cache are read from there, like a model's weights of that size. A bitwise-or over 64-bit words
    takes one vector instruction per load, and numpy releases the GIL meanwhile. Each thread reads its own part.
    """
    # Filled with ones, because untouched pages of zeros would share one physical page.
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
