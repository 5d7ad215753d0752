"""Training pairs as ids, in several styles of the source, and endless batches of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from noise import altered, renumbered
from prefixes import Ids, Prefixes
from tatoeba import Pair, spoken


def unfinished(text: str) -> str:
    """A sentence without its final mark."""
    return text.rstrip(".!?。！？")


# How sources are written, and how often: as they are, then as recognisers write speech.
STYLES: tuple[tuple[Callable[[str], str], float], ...] = (
    (str, 0.68),
    (spoken, 0.17),
    (unfinished, 0.07),
    (str.lower, 0.05),
    (str.upper, 0.03),
)
PREFIXES = 0.22  # share of the pairs that are cut, where a random cut is possible
NOISY = 0.06  # share of the pairs that are altered, see noise.py
RENUMBERED = 0.5  # share of the pairs with numbers in digits that get other ones
# Share of the sources whose pieces are drawn (Kudo 2018, "Subword Regularization"): a word that is rare in one split has
# parts that are frequent.
RESPLIT = 0.3
_WINDOW = 8000  # pairs that are sorted by length before they are put into batches


class Encoder(Protocol):
    """Encodes sentences as ids, each with the end token. With ``drawn``, the split into pieces is random."""

    def __call__(self, texts: Sequence[str], *, target: bool, drawn: bool = False) -> list[Ids]: ...


@dataclass(frozen=True)
class Example:
    """A pair and its encodings."""

    pair: Pair
    sources: tuple[Ids, ...]
    """In each of ``STYLES``."""
    target: Ids


def encode(pairs: Sequence[Pair], encoder: Encoder) -> list[Example]:
    styles = [encoder([style(source) for source, _ in pairs], target=False) for style, _ in STYLES]
    targets = encoder([target for _, target in pairs], target=True)
    return [Example(pair, tuple(rows), target) for pair, *rows, target in zip(pairs, *styles, targets, strict=True)]


def batches(
    examples: Sequence[Example],
    prefixes: Prefixes | None,
    pad: int,
    seed: int,
    budget: int,
    encoder: Encoder | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless batches of (source, target) ids [B, S] and [B, T] with about ``budget`` padded tokens.

    Each pass draws styles and cuts anew; without ``prefixes``, nothing is cut. With ``encoder``, each pass also alters
    some pairs and splits some sources into other pieces.
    """
    rng = random.Random(seed)
    order = list(range(len(examples)))
    while True:
        rng.shuffle(order)
        for start in range(0, len(order), _WINDOW):
            window = _drawn([examples[index] for index in order[start : start + _WINDOW]], rng, encoder)
            for at, (source, target) in enumerate(window):
                if prefixes and rng.random() < PREFIXES:
                    window[at] = prefixes.cut(source, target, rng) or (source, target)
            for rows in _grouped(window, budget, rng):
                yield padded([source for source, _ in rows], pad), padded([target for _, target in rows], pad)


def _drawn(examples: Sequence[Example], rng: random.Random, encoder: Encoder | None) -> list[tuple[Ids, Ids]]:
    """The examples' ids, each in a random style."""
    weights = [share for _, share in STYLES]
    styles = [rng.choices(range(len(STYLES)), weights)[0] for _ in examples]
    drawn = [(example.sources[style], example.target) for example, style in zip(examples, styles, strict=True)]
    if encoder is None:
        return drawn
    noisy, resplit = [], []
    for at, (example, style) in enumerate(zip(examples, styles, strict=True)):
        kind, text = rng.random(), STYLES[style][0](example.pair[0])
        if rng.random() < RENUMBERED and (other := renumbered((text, example.pair[1]), rng)):
            noisy.append((at, other))
        elif kind < NOISY:
            noisy.append((at, altered((text, example.pair[1]), rng)))
        elif kind < NOISY + RESPLIT:
            resplit.append((at, text))
    for (at, _), source in zip(resplit, encoder([text for _, text in resplit], target=False, drawn=True), strict=True):
        drawn[at] = source, drawn[at][1]
    sources = encoder([source for _, (source, _) in noisy], target=False)
    targets = encoder([target for _, (_, target) in noisy], target=True)
    for (at, _), source, target in zip(noisy, sources, targets, strict=True):
        drawn[at] = source, target
    return drawn


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
