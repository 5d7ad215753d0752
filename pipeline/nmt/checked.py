"""A search whose failures are found while it streams: a loop, or the token limit, is searched again, then shortened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pipeline.nmt.loops import Loop, LoopGuard, kept_tokens, length_limit
from pipeline.nmt.search import GenerationOptions, Token

# Forbidden to repeat in the second search: pairs where one token came again and again, else runs of three.
_NGRAM_OF_TOKEN, _NGRAM = 2, 3
_SECOND_BEAMS = 4


@dataclass(frozen=True)
class Rewind:
    """The tokens from here on take the place of those that were yielded after the first ``kept``."""

    kept: int


def checked(
    search: Callable[[GenerationOptions], Iterator[Token]],
    options: GenerationOptions,
    source: Sequence[int],
    plain: Callable[[int], bool],
    *,
    length_factor: float,
    widen: bool = True,
    expired: Callable[[], bool],
) -> Iterator[Token | Rewind]:
    """Yield the tokens of ``search(options)``. Where it loops or meets its limit, a ``Rewind`` and others follow.

    Those of a search that may not repeat n-grams, else, if it fails too, of one with more beams, else the tokens before
    anything came again. Time that is over (``expired``) permits no further search.

    Args:
        plain: whether a token is digits or marks alone.
        length_factor: see ``length_limit``.
        widen: whether more beams may be tried.
    """
    limit = length_limit(len(source), length_factor, options.max_tokens)
    options = dataclasses.replace(options, max_tokens=limit)
    guard = LoopGuard(source, plain)
    found: list[Token] = []
    loop: Loop | None = None
    for token in search(options):
        found.append(token)
        loop = guard.loop([t.id for t in found])
        if loop is not None or (token.truncated and not expired()):
            break
        yield token
        if token.last:
            return
    ids = [token.id for token in found]
    shown = len(found) - 1  # the last one was not yielded
    if not expired():
        for narrower in _alternatives(options, loop, widen=widen):
            again = _whole(search(narrower), guard)
            if again is not None:
                yield from _instead(ids[:shown], again)
                return
    if (kept := kept_tokens(ids, loop, len(source))) < len(found):
        found[kept:] = [Token(options.end_token, 0.0, last=True, truncated=True)]
    yield from _instead(ids[:shown], found)


def _alternatives(options: GenerationOptions, loop: Loop | None, *, widen: bool) -> Iterator[GenerationOptions]:
    size = _NGRAM_OF_TOKEN if loop is not None and loop.period == 1 else _NGRAM
    size = min(size, options.no_repeat_ngram or size)
    without_repeats = dataclasses.replace(options, no_repeat_ngram=size)
    yield without_repeats
    if widen:
        yield dataclasses.replace(without_repeats, beams=max(_SECOND_BEAMS, 2 * options.beams))


def _whole(tokens: Iterator[Token], guard: LoopGuard) -> list[Token] | None:
    """All the tokens of a search; None where it fails, too."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        if token.truncated or guard.loop([t.id for t in found]) is not None:
            return None
    return found if len(found) > 1 else None  # an end token alone is no translation


def _instead(shown: Sequence[int], tokens: Sequence[Token]) -> Iterator[Token | Rewind]:
    """Take back what was shown as far as ``tokens`` differ from it, and yield the rest of them."""
    same = takewhile(lambda pair: pair[0] == pair[1].id, zip(shown, tokens[:-1], strict=False))
    kept = len(list(same))
    if kept < len(shown):
        yield Rewind(kept)
    for token in tokens[kept:]:
        yield dataclasses.replace(token, searched_again=token.last)
