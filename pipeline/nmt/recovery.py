"""A streaming search with failure recovery: if a search loops or reaches its token limit, retry, then shorten."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pipeline.nmt.generation import GenerationOptions, Token
from pipeline.nmt.loops import Loop, LoopGuard, kept_tokens, length_limit

# Size of the n-grams that a retry may not repeat: 2 if the loop was a single token, else 3.
_SINGLE_TOKEN_NGRAM, _NGRAM = 2, 3
_RETRY_BEAMS = 4


@dataclass(frozen=True)
class Rewind:
    """Withdraws all yielded tokens after the first ``kept``; the following tokens replace them."""

    kept: int


def recovering(
    search: Callable[[GenerationOptions], Iterator[Token]],
    options: GenerationOptions,
    source: Sequence[int],
    plain: Callable[[int], bool],
    word: Callable[[int], bool] = lambda index: True,
    *,
    length_factor: float,
    retry: bool = True,
    widen: bool = True,
    expired: Callable[[], bool],
    committed: Sequence[int] = (),
) -> Iterator[Token | Rewind]:
    """Yield the tokens of ``search(options)``; if it loops or reaches its limit, yield a ``Rewind`` and a replacement.

    The replacement comes from a search without repeated n-grams; if that fails too, from one with more beams; if that
    fails too, it is the tokens before the first repetition. No retry is started after the time limit (``expired``).

    Args:
        plain: tells whether a token is only digits or punctuation.
        word: tells whether a source token is known and contains a letter or digit.
        length_factor: see ``length_limit``.
        retry: whether to search again; otherwise the first search's tokens before the first repetition are kept.
        widen: whether a retry with more beams is allowed.
        committed: tokens with which every search begins, without yielding them.
    """
    limit = length_limit(len(source), length_factor, options.max_tokens)
    options = dataclasses.replace(options, max_tokens=limit)
    guard = LoopGuard(source, plain, word)
    found: list[Token] = []
    ids = list(committed)
    loop: Loop | None = None
    for token in search(options):
        found.append(token)
        ids.append(token.id)
        loop = guard.loop(ids)
        if loop is not None or (token.truncated and not expired()):
            break
        yield token
        if token.last:
            return
    shown = ids[len(committed) : -1] if found else []  # the last token was not yielded
    if retry and not expired():
        for narrower in _alternatives(options, loop, widen=widen):
            again = _complete_search(search(narrower), guard, committed)
            if again is not None:
                yield from replace_shown(shown, again, searched_again=True)
                return
    kept = max(0, kept_tokens(ids, loop, len(source)) - len(committed))
    if kept < len(found) or not found:
        found[kept:] = [Token(options.end_token, 0.0, last=True, truncated=True)]
    yield from replace_shown(shown, found, searched_again=True)


def _alternatives(options: GenerationOptions, loop: Loop | None, *, widen: bool) -> Iterator[GenerationOptions]:
    size = _SINGLE_TOKEN_NGRAM if loop is not None and loop.period == 1 else _NGRAM
    size = min(size, options.no_repeat_ngram or size)
    without_repeats = dataclasses.replace(options, no_repeat_ngram=size)
    yield without_repeats
    if widen:
        yield dataclasses.replace(without_repeats, beams=max(_RETRY_BEAMS, 2 * options.beams))


def _complete_search(tokens: Iterator[Token], guard: LoopGuard, committed: Sequence[int]) -> list[Token] | None:
    """Return all tokens of a search, or None if it fails too."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        if token.truncated or guard.loop([*committed, *(t.id for t in found)]) is not None:
            return None
    least = 1 if committed else 2  # only an end token is not a translation
    return found if len(found) >= least else None


def replace_shown(
    shown: Sequence[int], tokens: Sequence[Token], *, searched_again: bool = False
) -> Iterator[Token | Rewind]:
    """Rewind to the common prefix of ``shown`` and ``tokens``, and yield the rest of ``tokens``."""
    same = takewhile(lambda pair: pair[0] == pair[1].id, zip(shown, tokens[:-1], strict=False))
    kept = len(list(same))
    if kept < len(shown):
        yield Rewind(kept)
    for token in tokens[kept:]:
        yield dataclasses.replace(token, searched_again=token.last) if searched_again else token
