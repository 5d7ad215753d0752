"""Failed translations: what is a loop, how a search that failed is repeated, and how much of it is kept. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ....core import Token
from ..decode.generation import GenerationOptions

# Size of the n-grams that a retry may not repeat: 2 if the loop was a single token, else 3, whose recurrence counts as a repetition.
_SINGLE_TOKEN_NGRAM, _NGRAM = 2, 3
_RETRY_BEAMS = 4
# Extra tokens allowed for every sentence, so that a word spelled out in a short sentence is not cut off.
_EXTRA_TOKENS = 16
# Maximum target tokens of a draft: factor × source tokens + constant. Longer ones are loops or inventions
# (docs/benchmarks.md).
_DRAFT_FACTOR, _DRAFT_TOKENS = 2.0, 6
# The longest phrase of a loop, in tokens.
_LONGEST_PHRASE = 16
# Consecutive repeats that count as a loop, for phrases of one, two, and more tokens, if the source has no repeats.
# Natural reduplication ("很多很多", "bye-bye") stays below these numbers.
_REPEATS = (4, 4, 3)
# The same for digits and punctuation, which repeat more: "1,000,000,000" is a few tokens, most of them zeros.
_PLAIN_REPEATS = 12
# Allowed excess of a translation's repeats over those in the source.
_EXTRA_REPEATS = 2
# If every search fails, at most factor × source tokens + constant of the first translation is kept.
_KEPT_FACTOR, _KEPT_TOKENS = 1.5, 8


def narrower_options(options: GenerationOptions, loop: Loop | None) -> Iterator[GenerationOptions]:
    """The options of the searches after one that failed: without repeated n-grams, then with more beams too."""
    size = _SINGLE_TOKEN_NGRAM if loop is not None and loop.period == 1 else _NGRAM
    size = min(size, options.no_repeat_ngram or size)
    without_repeats = dataclasses.replace(options, no_repeat_ngram=size)
    yield without_repeats
    yield dataclasses.replace(without_repeats, beams=max(_RETRY_BEAMS, 2 * options.beams))


def complete_search(tokens: Iterator[Token], guard: LoopGuard, committed: Sequence[int]) -> list[Token] | None:
    """Return all tokens of a search, or None if it fails too."""
    complete: list[Token] = []
    for token in tokens:
        complete.append(token)
        if token.truncated or guard.loop([*committed, *(t.id for t in complete)]) is not None:
            return None
    least = 1 if committed else 2  # only an end token is not a translation
    return complete if len(complete) >= least else None


@dataclass(frozen=True)
class Loop:
    """A phrase that repeats at the end of a token sequence."""

    once: int  # number of tokens up to the end of the phrase's first occurrence
    period: int  # length of the phrase in tokens


class LoopGuard:
    """Detects loops in translations of one source."""

    def __init__(
        self, source: Sequence[int], plain: Callable[[int], bool], word: Callable[[int], bool] = lambda index: True
    ) -> None:
        """``plain`` tells whether a target token is only digits or punctuation.

        ``word`` tells whether a source token is known and contains a letter or digit. Repeats without such a token (",,",
        or several different words that all are unknown) allow no words to repeat in the translation.
        """
        self._plain = plain
        self._allowed = _allowed_repeats(_most_repeats(source, word))
        self._allowed_plain = _allowed_repeats(_most_repeats(source))

    def loop(self, tokens: Sequence[int]) -> Loop | None:
        """Return the loop at the end of ``tokens``, or None."""
        for period in range(1, min(_LONGEST_PHRASE, len(tokens) // 2) + 1):
            if tokens[-1] != tokens[-1 - period]:  # almost always, and a search asks at every token
                continue
            run = _run_at_end(tokens, period)
            repeats = run // period + 1
            if repeats < _REPEATS[min(period, len(_REPEATS)) - 1]:
                continue
            plain = all(map(self._plain, tokens[-period:]))
            if repeats > (max(self._allowed_plain, _PLAIN_REPEATS - 1) if plain else self._allowed):
                return Loop(len(tokens) - run, period)
        return None


def length_limit(source_tokens: int, factor: float, max_tokens: int) -> int:
    """Return the maximum number of tokens of a translation, including the end token.

    The limit is ``factor`` × source tokens, as in Marian's ``--max-length-factor`` (3; marian-nmt, config_parser.cpp),
    plus a constant so that a spelled-out word is not cut off, and never more than ``max_tokens``. A factor of 0
    disables the relative limit.
    """
    return min(max_tokens, math.ceil(factor * source_tokens) + _EXTRA_TOKENS) if factor else max_tokens


def draft_limit(source_tokens: int, max_tokens: int) -> int:
    """The maximum number of tokens of a draft, including the end token."""
    return min(max_tokens, math.ceil(_DRAFT_FACTOR * source_tokens) + _DRAFT_TOKENS)


def kept_tokens(tokens: Sequence[int], loop: Loop | None, source_tokens: int) -> int:
    """Return how many leading ``tokens`` of a failed translation to show: those before the first repetition."""
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
    """Count the tokens at the end that equal the token ``period`` positions earlier."""
    run = 0
    while run < len(tokens) - period and tokens[-1 - run] == tokens[-1 - run - period]:
        run += 1
    return run


def _most_repeats(tokens: Sequence[int], word: Callable[[int], bool] = lambda index: True) -> int:
    """Return the largest number of consecutive occurrences of any phrase that contains a ``word``."""
    most = 1
    for period in range(1, min(_LONGEST_PHRASE, len(tokens) // 2) + 1):
        run = 0
        for end in range(period, len(tokens)):
            run = run + 1 if tokens[end] == tokens[end - period] else 0
            repeats = run // period + 1
            if repeats > most and any(map(word, tokens[end + 1 - period : end + 1])):
                most = repeats
    return most


def _allowed_repeats(most: int) -> int:
    """Return how often a translation's phrase may repeat if phrases of the source repeat up to ``most`` times."""
    return most + _EXTRA_REPEATS if most > 1 else 0
