"""Translations that fail: which token sequences loop, and how much of one can be kept. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_LENGTH_FACTOR = 3.0
"""Marian's default of ``--max-length-factor``."""
# Short sentences take these tokens more, so that a word that is spelled out is not cut short.
_SPELLED_TOKENS = 16
# The longest phrase of a loop, in tokens.
_LONGEST_PHRASE = 16
# How often in a row a phrase of one, two, or more tokens comes in what a model loops over, where the source repeats nothing.
# People's reduplications ("很多很多", "bye-bye") stay below it.
_REPEATS = (4, 4, 3)
# Digits and marks come more often: "1,000,000,000" is a few tokens, most of them zeros.
_PLAIN_REPEATS = 12
# A translation may repeat a phrase this many times more often than its source repeats one.
_MORE_THAN_SOURCE = 2
# Where no search ends by itself, this much of the first one is kept at most, relative to the source's tokens.
_KEPT_FACTOR, _KEPT_TOKENS = 1.5, 8
# Shortest sequence whose return counts as a repetition: as in the search that forbids repeated n-grams.
_NGRAM = 3


@dataclass(frozen=True)
class Loop:
    """A phrase that comes again and again at the end of a token sequence."""

    once: int
    """Tokens up to the end of the phrase's first occurrence."""
    period: int
    """Tokens of the phrase."""


class LoopGuard:
    """Finds loops in translations of one source."""

    def __init__(self, source: Sequence[int], plain: Callable[[int], bool]) -> None:
        """``plain``: whether a target token is digits or marks alone."""
        self._plain = plain
        most = _most_repeats(source)
        self._allowed = most + _MORE_THAN_SOURCE if most > 1 else 0

    def loop(self, tokens: Sequence[int]) -> Loop | None:
        """The loop that ``tokens`` end with, or None."""
        for period in range(1, min(_LONGEST_PHRASE, len(tokens) // 2) + 1):
            run = _run_at_end(tokens, period)
            repeats = run // period + 1
            if repeats < _REPEATS[min(period, len(_REPEATS)) - 1] or repeats <= self._allowed:
                continue
            if repeats >= _PLAIN_REPEATS or not all(map(self._plain, tokens[-period:])):
                return Loop(len(tokens) - run, period)
        return None


def length_limit(source_tokens: int, factor: float, max_tokens: int) -> int:
    """Tokens that a translation may have, its end token included.

    ``factor`` times the source's, as Marian's ``--max-length-factor`` has it (marian-nmt, config_parser.cpp), and a few
    more, so that a word is not cut short; ``max_tokens`` at most. A factor of 0 sets no limit of its own.
    """
    return min(max_tokens, math.ceil(factor * source_tokens) + _SPELLED_TOKENS) if factor else max_tokens


def kept_tokens(tokens: Sequence[int], loop: Loop | None, source_tokens: int) -> int:
    """How many of the first ``tokens`` of a failed translation are worth showing: those before anything comes again."""
    most = math.ceil(_KEPT_FACTOR * source_tokens) + _KEPT_TOKENS
    if loop is not None:
        most = min(most, loop.once)
    seen: set[tuple[int, ...]] = set()
    for end in range(_NGRAM, min(most, len(tokens)) + 1):
        ngram = tuple(tokens[end - _NGRAM : end])
        if ngram in seen:
            return end - _NGRAM
        seen.add(ngram)
    return min(most, len(tokens))


def _run_at_end(tokens: Sequence[int], period: int) -> int:
    """Tokens at the end that equal the one ``period`` before them."""
    run = 0
    while run < len(tokens) - period and tokens[-1 - run] == tokens[-1 - run - period]:
        run += 1
    return run


def _most_repeats(tokens: Sequence[int]) -> int:
    """How often in a row a phrase comes at most."""
    most = 1
    for period in range(1, min(_LONGEST_PHRASE, len(tokens) // 2) + 1):
        run = 0
        for at in range(period, len(tokens)):
            run = run + 1 if tokens[at] == tokens[at - period] else 0
            most = max(most, run // period + 1)
    return most
