"""Time the engines in turns. Every round runs all engines on all sentences, so that load on the machine slows all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.bench.comparison.engines import Engine

_SETTLE_S = 0.3
"""OpenMP threads spin for up to 0.2 s after a run (KMP_BLOCKTIME) and would take a core from the next engine."""


@dataclass(frozen=True)
class Turn:
    """Times of one engine in one round; means over the sentences."""

    first_ms: float
    """A whole sentence of one token: encoder, first step, and the engine's overhead."""
    sentence_ms: float
    """A whole sentence of ``tokens`` tokens."""
    further_ms: float
    """Each token after the first: (sentence - first) / (tokens - 1)."""


def take_turns(
    engines: Mapping[str, Engine], sources: Sequence[Sequence[int]], tokens: int, rounds: int, *, settle: bool
) -> Iterator[tuple[int, str, Turn]]:
    """Yield (round, name of the engine, its times). Each round begins with another engine.

    Args:
        sources: ids of the sentences.
        tokens: length of every translation; more than 1.
        settle: wait between engines until the threads of the last one sleep.
    """
    names = list(engines)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            if settle:
                time.sleep(_SETTLE_S)
            yield number, name, _turn(engines[name], sources, tokens)


def _turn(engine: Engine, sources: Sequence[Sequence[int]], tokens: int) -> Turn:
    engine.decode(sources[0], 2)  # warm-up: the previous engine evicted the weights from the caches
    first = sentence = 0.0
    for source in sources:
        first += _seconds(engine.decode, source, 1)
        sentence += _seconds(engine.decode, source, tokens)
    first_ms, sentence_ms = (1000 * seconds / len(sources) for seconds in (first, sentence))
    return Turn(first_ms, sentence_ms, (sentence_ms - first_ms) / (tokens - 1))


def _seconds(decode: Callable[[Sequence[int], int], list[int]], source: Sequence[int], tokens: int) -> float:
    began = time.perf_counter()
    ids = decode(source, tokens)
    took = time.perf_counter() - began
    if len(ids) != tokens:
        raise RuntimeError(f"{len(ids)} tokens instead of {tokens}: the times are not comparable")
    return took
