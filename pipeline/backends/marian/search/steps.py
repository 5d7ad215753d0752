"""How one part of a sentence is translated: the steps of ``translate``, over one value.

A token is shown as soon as it is found, unless it may be wrong. Later steps replace what failed or lacks terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from ....core import Token, common_length
from ..decode.generation import SearchRequest, Stopwatch
from .recovery import Loop, LoopGuard, complete_search, kept_tokens, narrower_options
from .sentence_text import Rewind, SentenceCache

# Tokens; and a share of the log-probability. Of 508 texts of two to five English words that a neighbour changes (Tatoeba), 62 are better
# and 30 worse with both, 79 and 49 by the margin and the tokens alone.
_INVENTED, _SHARE = 2, 0.6


@dataclass
class PartTranslation:
    """How a part is translated, and its translation as it is now."""

    request: SearchRequest
    search: Callable[[SearchRequest], Iterator[Token]]
    guard: LoopGuard
    stopwatch: Stopwatch = field(default_factory=lambda: Stopwatch(math.inf))
    most_searches: int = 3  # with those that replace a failed one
    repaired: Callable[[Sequence[Token]], Sequence[Token]] = list  # with the terms that the translation lacks
    uncertain: Callable[[Token], bool] = lambda token: False  # whether a token waits for the repair, with all after it
    cache: SentenceCache = field(default_factory=lambda: SentenceCache(0))
    key: Hashable = None  # what the translation is cached under
    remembers: bool = True  # whether it may be put into the cache

    tokens: list[Token] = field(default_factory=list)
    shown: int = 0  # how many of them were yielded
    loop: Loop | None = None  # of the search, if it failed for that
    ended: bool = False  # whether the search did not fail
    complete: bool = False  # whether no step follows that replaces tokens

    def show(self) -> Iterator[Token]:
        """Yield the next tokens, up to the first that may be replaced."""
        while self.shown < len(self.tokens):
            token = self.tokens[self.shown]
            if not self.complete and (token.last or self.uncertain(token)):
                return
            self.shown += 1
            yield token

    def replace(self, tokens: Sequence[Token]) -> Iterator[Token | Rewind]:
        """Take other tokens, except where they are the same as those that were yielded."""
        shown = [token.id for token in self.tokens[: self.shown]]
        same = common_length(shown, [token.id for token in tokens[:-1]])
        self.tokens[same:], self.shown = tokens[same:], same
        if same < len(shown):
            yield Rewind(same)
        yield from self.show()


def translate(part: PartTranslation) -> Iterator[Token | Rewind]:
    """Yield the tokens of a part. The last one ends it."""
    steps = (step(part) for step in (recall, search, recover, repair) if not part.complete)
    changes, events = chain.from_iterable(steps), list[Token | Rewind]()
    while True:
        with part.stopwatch:  # without the time that the consumer takes between two tokens
            change = next(changes, None)
        if change is None:
            break
        events.append(change)
        yield change
    # With what was withdrawn: a sentence gives the same deltas whether it is cached or not, and a resumed run writes the same files.
    if part.remembers and not part.request.expired():
        part.cache.put(part.key, tuple(events))


def recall(part: PartTranslation) -> Iterator[Token | Rewind]:
    """Take the translation from the cache."""
    if (events := part.cache.get(part.key)) is not None:
        yield from events
        part.complete = True


def search(part: PartTranslation) -> Iterator[Token]:
    """Search a token at a time, until the end of the part, a loop, or the limit of tokens."""
    ids = list(part.request.committed)
    for token in part.search(part.request):
        part.tokens.append(token)
        ids.append(token.id)
        part.loop = part.guard.loop(ids)
        if part.loop is not None or (token.truncated and not part.request.expired()):
            return
        part.ended = token.last
        yield from part.show()


def recover(part: PartTranslation) -> Iterator[Token | Rewind]:
    """If the search failed, take one that does not, with narrower options, or keep the tokens before the first repetition.

    No search is started after the time limit.
    """
    if part.ended:
        return
    request, committed = part.request, part.request.committed
    options = narrower_options(request.options, part.loop)
    searches = (part.search(replace(request, options=narrower)) for narrower in islice(options, part.most_searches - 1))
    wholes = (complete_search(again, part.guard, committed) for again in searches)
    tokens = None if request.expired() else next(filter(None, wholes), None)
    if tokens is None:
        ids = [*committed, *(token.id for token in part.tokens)]
        tokens = part.tokens[: max(0, kept_tokens(ids, part.loop, len(request.source)) - len(committed))]
        if not tokens or not tokens[-1].last:
            tokens.append(Token(request.options.end_token, 0.0, last=True, truncated=True))
    yield from part.replace([*tokens[:-1], replace(tokens[-1], searched_again=True)])


def repair(part: PartTranslation) -> Iterator[Token | Rewind]:
    """Write the missing terms, and show what was held back."""
    part.complete = True
    yield from part.replace(part.repaired(part.tokens))


def follow_neighbour(
    after: Iterator[Token | Rewind], alone: Iterator[Token | Rewind], margin: float | None
) -> Iterator[Token | Rewind]:
    """Yield the translation of a part ``after`` a neighbour; ``alone`` if nothing follows that, or ``after`` is not better by the margin."""
    first = next(after)
    if isinstance(first, Token) and first.last:
        yield from alone
    elif margin is None:
        yield first
        yield from after
    else:
        both = [first, *after], [*alone]
        yield from both[0] if is_better(*both, margin) else both[1]


def keep(
    first: Iterator[Token | Rewind], instead: Iterator[Token | Rewind], is_lost: Callable[[Sequence[Token]], bool]
) -> Iterator[Token | Rewind]:
    """Yield the ``first`` translation of a part or, if that ``is_lost`` and the other is not, the one ``instead``."""
    tokens = list(first)
    other = list(instead) if is_lost(remaining(tokens)) else tokens
    yield from tokens if is_lost(remaining(other)) else other


def is_better(after: Sequence[Token | Rewind], alone: Sequence[Token | Rewind], margin: float) -> bool:
    """Whether a translation after the neighbour is better than one without it: likelier by the margin and the share or, where a
    margin is asked for, so much shorter that the other has something invented ("Obrigado por enviar uma edição." for "Thank you for
    coming."), and less likely by no more than the margin for each token.
    """
    with_it, without = remaining(after), remaining(alone)
    likelihood, other = _likelihood(with_it), _likelihood(without)
    if not margin:
        return likelihood > other
    fewer = len(without) - len(with_it)
    return likelihood > max(other + margin, _SHARE * other) or (
        fewer >= _INVENTED and likelihood > other - margin * fewer
    )


def remaining(events: Sequence[Token | Rewind]) -> list[Token]:
    """The tokens that were not withdrawn."""
    tokens: list[Token] = []
    for event in events:
        if isinstance(event, Rewind):
            del tokens[event.kept :]
        else:
            tokens.append(event)
    return tokens


def _likelihood(tokens: Sequence[Token]) -> float:
    """The mean log-probability of the tokens of a translation."""
    return sum(token.log_probability for token in tokens) / len(tokens) if tokens else -math.inf
