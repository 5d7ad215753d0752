"""Results of a benchmark run: medians, spreads, ratios."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.bench.comparison.fresh import Fresh
from pipeline.bench.comparison.machine import Machine
from pipeline.bench.comparison.rounds import Turn

REFERENCE = "CTranslate2 int8"
"""Speed ratios are relative to this engine."""


@dataclass(frozen=True)
class Spread:
    """Median and range over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = list(values)
        return cls(statistics.median(found), min(found), max(found))


@dataclass(frozen=True)
class Row:
    """One engine with one number of threads."""

    name: str
    threads: int
    first_ms: Spread
    further_ms: Spread
    sentence_ms: Spread
    ratio: Spread | None
    """Speed of further tokens relative to the reference in the same round; None without the reference."""
    sentence_ratio: Spread | None
    """Sentences per second relative to the reference."""
    floor_ms: float
    """Time to read the weights of one token, measured by reading as many bytes repeatedly; 0 if unknown."""
    turns: Sequence[Turn]


@dataclass(frozen=True)
class Agreement:
    """Greedy ids of one engine compared with those of the first lossless engine."""

    reference: str
    sentences: int
    same_sentences: int
    tokens: int
    same_tokens: int
    """Tokens before the first difference of each sentence."""


@dataclass(frozen=True)
class Profile:
    """Properties that do not depend on the number of threads."""

    name: str
    weight_mb: float
    fresh: Fresh
    agreement: Agreement | None


@dataclass(frozen=True)
class Results:
    model: str
    random_weights: bool
    machine: Machine
    sentences: int
    source_tokens: float
    """Average per sentence, including the end token."""
    target_tokens: int
    rounds: int
    bandwidth_gb_s: dict[int, float]
    """Threads → GB/s read from main memory."""
    profiles: list[Profile]
    left_out: dict[str, str]
    """Engine → reason why it was not measured."""
    rows: list[Row] = field(default_factory=list)


def summarise(name: str, threads: int, turns: Sequence[Turn], reference: Sequence[Turn], floor_ms: float) -> Row:
    """Compute the spreads of one engine's turns, and its ratios to the reference's turn in the same round."""
    pairs = list(zip(turns, reference, strict=False))
    return Row(
        name,
        threads,
        Spread.of(turn.first_ms for turn in turns),
        Spread.of(turn.further_ms for turn in turns),
        Spread.of(turn.sentence_ms for turn in turns),
        Spread.of(other.further_ms / own.further_ms for own, other in pairs) if pairs else None,
        Spread.of(other.sentence_ms / own.sentence_ms for own, other in pairs) if pairs else None,
        floor_ms,
        list(turns),
    )


def agreement(reference: str, expected: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> Agreement:
    """Compare ids sentence by sentence."""
    same = sum(_common_prefix(one, other) for one, other in zip(expected, found, strict=True))
    return Agreement(
        reference,
        len(expected),
        sum(list(one) == list(other) for one, other in zip(expected, found, strict=True)),
        sum(map(len, expected)),
        same,
    )


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of ids before the first difference."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
