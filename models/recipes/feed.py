"""Training pairs as ids, in several styles of the source, and endless batches of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from prefixes import Ids, Prefixes
from tatoeba import Pair, spoken


def unfinished(text: str) -> str:
    """A sentence without its final mark."""
    return text.rstrip(".!?。！？")


# How sources are written, and how often: as they are, then as recognisers write speech.
STYLES: tuple[tuple[Callable[[str], str], float], ...] = (
    (str, 0.7),
    (spoken, 0.17),
    (unfinished, 0.08),
    (str.lower, 0.05),
)
PREFIXES = 0.22  # share of the pairs that are cut, where a random cut is possible
_WINDOW = 8000  # pairs that are sorted by length before they are put into batches


class Encoder(Protocol):
    """Encodes sentences as ids, each with the end token."""

    def __call__(self, texts: Sequence[str], *, target: bool) -> list[Ids]: ...


@dataclass(frozen=True)
class Example:
    """An encoded pair."""

    sources: tuple[Ids, ...]
    """In each of ``STYLES``."""
    target: Ids


def encode(pairs: Sequence[Pair], encoder: Encoder) -> list[Example]:
    styles = [encoder([style(source) for source, _ in pairs], target=False) for style, _ in STYLES]
    targets = encoder([target for _, target in pairs], target=True)
    return [Example(tuple(sources), target) for *sources, target in zip(*styles, targets, strict=True)]


def batches(
    examples: Sequence[Example], prefixes: Prefixes | None, pad: int, seed: int, budget: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless batches of (source, target) ids [B, S] and [B, T] with about ``budget`` padded tokens.

    Each pass draws styles and cuts anew; without ``prefixes``, nothing is cut.
    """
    rng = random.Random(seed)
    weights = [share for _, share in STYLES]
    order = list(range(len(examples)))
    while True:
        rng.shuffle(order)
        for start in range(0, len(order), _WINDOW):
            window = []
            for index in order[start : start + _WINDOW]:
                source, target = rng.choices(examples[index].sources, weights)[0], examples[index].target
                cut = prefixes.cut(source, target, rng) if prefixes and rng.random() < PREFIXES else None
                window.append(cut or (source, target))
            for rows in _grouped(window, budget, rng):
                yield padded([source for source, _ in rows], pad), padded([target for _, target in rows], pad)


def _grouped(window: list[tuple[Ids, Ids]], budget: int, rng: random.Random) -> list[list[tuple[Ids, Ids]]]:
    """The pairs in groups of similar length, each of at most ``budget`` padded tokens or one pair, in random order."""
    groups: list[list[tuple[Ids, Ids]]] = [[]]
    width = 0
    for pair in sorted(window, key=lambda pair: (max(map(len, pair)), len(pair[1]))):
        width = max(map(len, pair))
        if groups[-1] and width * (len(groups[-1]) + 1) > budget:
            groups.append([])
        groups[-1].append(pair)
    rng.shuffle(groups)
    return groups


def padded(rows: Sequence[Ids], pad: int) -> np.ndarray:
    """The rows as one array, filled up with ``pad`` at the end."""
    width = max(map(len, rows))
    return np.array([[*row, *[pad] * (width - len(row))] for row in rows], dtype=np.int64)
