"""Run the benchmark: load time and memory in fresh processes, comparison of ids, then timed rounds per thread count."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.bench.comparison.engines import Candidate, Engine, open_engine
from pipeline.bench.comparison.fresh import measure_fresh
from pipeline.bench.comparison.results import REFERENCE, Profile, Row, agreement, summarise
from pipeline.bench.comparison.rounds import Turn, take_turns
from pipeline.errors import ModelError
from pipeline.run.progress import Progress

MAIN_MEMORY_BYTES = 256_000_000
"""Larger than the caches of one processor."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    sources: Sequence[Sequence[int]]
    """Source ids of each sentence."""
    tokens: int
    """Length of every translation in target tokens."""
    rounds: int
    threads: tuple[int, ...]
    starts: int = 3
    """Fresh processes per engine; their medians are reported."""


@dataclass
class Measurement:
    """Results so far; they stay valid if the run is interrupted."""

    candidates: list[Candidate]
    profiles: list[Profile] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    _reads_s: dict[tuple[int, int], float] = field(default_factory=dict)
    """(threads, bytes) → least seconds to read that many bytes."""
    _turns: dict[tuple[int, str], list[Turn]] = field(default_factory=lambda: defaultdict(list))

    def run(self, plan: Plan, progress: Progress) -> None:
        """Measure everything. ``progress`` is called with the current activity and the share that is done.

        Raises:
            ModelError: every engine was left out.
        """
        for number, threads in enumerate(plan.threads):
            progress("reading memory", number / len(plan.threads))
            self._probe_memory(threads)
        self._profile(plan, progress)
        if not self.candidates:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
            raise ModelError(f"no engine can be measured: {reasons}")
        for threads in plan.threads:
            self._run_rounds(plan, threads, progress)
            self._probe_memory(threads)  # again, because other load can only slow a probe; the faster result is kept

    def _run_rounds(self, plan: Plan, threads: int, progress: Progress) -> None:
        """Load all engines and run all rounds with this number of threads."""
        engines: dict[str, Engine] = {}
        for candidate in self.candidates:
            progress("loading all models", len(engines) / len(self.candidates))
            engines[candidate.name] = open_engine(candidate, threads)
        if threads == plan.threads[0]:
            progress("comparing translations", 0.0)
            self._compare(engines, plan)
        doing = f"{plan.rounds} rounds with {threads} thread{'s' * (threads > 1)}"
        progress(doing, 0.0)
        turns = take_turns(engines, plan.sources, plan.tokens, plan.rounds, settle=threads > 1)
        for done, (_, name, turn) in enumerate(turns, 1):
            self._turns[threads, name].append(turn)
            progress(doing, done / plan.rounds / len(engines))

    @property
    def bandwidth_gb_s(self) -> dict[int, float]:
        """Threads → GB/s (1e9 bytes) read from main memory."""
        return {
            threads: size / seconds / 1e9
            for (threads, size), seconds in self._reads_s.items()
            if size == MAIN_MEMORY_BYTES
        }

    def rows(self) -> list[Row]:
        """Summarise the rounds that all engines finished."""
        found = []
        for threads in sorted({threads for threads, _ in self._turns}):
            names = [candidate.name for candidate in self.candidates]
            done = min(len(self._turns[threads, name]) for name in names)
            if not done:
                continue
            reference = self._turns[threads, REFERENCE][:done] if REFERENCE in names else []
            for name in names:
                turns = self._turns[threads, name][:done]
                found.append(summarise(name, threads, turns, reference, self._floor_ms(threads, name)))
        return found

    def _probe_memory(self, threads: int) -> None:
        """Time reads of main memory, and of as many bytes as each engine reads per token."""
        for size in {MAIN_MEMORY_BYTES, *(candidate.weight_bytes for candidate in self.candidates)} - {0}:
            found = read_seconds(size, threads)
            self._reads_s[threads, size] = min(found, self._reads_s.get((threads, size), found))

    def _floor_ms(self, threads: int, name: str) -> float:
        (size,) = (candidate.weight_bytes for candidate in self.candidates if candidate.name == name)
        return 1000 * self._reads_s.get((threads, size), 0.0)

    def _profile(self, plan: Plan, progress: Progress) -> None:
        """Measure each engine in fresh processes. An engine that does not start is left out."""
        started = []
        for number, candidate in enumerate(self.candidates):
            progress("starting each engine in fresh processes", number / len(self.candidates))
            try:
                fresh = measure_fresh(candidate, plan.threads[0], list(plan.sources[0]), plan.tokens, plan.starts)
            except ModelError as error:
                self.left_out[candidate.name] = str(error)
                continue
            started.append(candidate)
            self.profiles.append(Profile(candidate.name, candidate.weight_bytes / 1e6, fresh, None))
        self.candidates = started

    def _compare(self, engines: dict[str, Engine], plan: Plan) -> None:
        """Translate each sentence to its natural end, and compare the ids with those of the first lossless engine."""
        reference = next((candidate.name for candidate in self.candidates if candidate.lossless), None)
        if reference is None:
            return
        expected = [engines[reference].translate(source, plan.tokens) for source in plan.sources]
        compared = []
        for candidate, profile in zip(self.candidates, self.profiles, strict=True):
            if candidate.shortlist:  # a shortlist changes the ids
                compared.append(profile)
                continue
            found = [engines[candidate.name].translate(source, plan.tokens) for source in plan.sources]
            compared.append(dataclasses.replace(profile, agreement=agreement(reference, expected, found)))
        self.profiles = compared


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
