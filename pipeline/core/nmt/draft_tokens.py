"""Which tokens of a draft translation are shown, and which are steady, by the attention to the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..captions.policy import whole_words
from ..captions.states import common_length

# A token is certain if at most this share of its attention is on source that may change: tokens after the certain ones, and the
# end token, which is attended where the sentence lacks something. Cf. AlignAtt (Papi, Turchi and Negri, 2023), which looks at
# the most attended position only.
_UNCERTAIN_ATTENTION = 0.2
# The last source tokens may change what is before them ("at a" before "quarter past eleven"). For a token of probability p, so many of the
# steady ones do not count: _NOT_STEADY + _IF_UNSURE · (1 - p); docs/benchmarks.md has the measurement.
_NOT_STEADY, _IF_UNSURE = 1, 16
# Of all that was heard, so many do not count for what is shown: _NOT_SHOWN + _HIDDEN_IF_UNSURE · (1 - p); measured there, too.
_NOT_SHOWN, _HIDDEN_IF_UNSURE = 1, 6


@dataclass(frozen=True)
class Token:
    """One generated token."""

    id: int
    log_probability: float
    """Natural logarithm of the model's probability for it."""
    last: bool
    truncated: bool = False
    """A limit ended the sentence instead of the model."""
    guarded: bool = False
    """A guard (bad word, repeated n-gram) masked a more probable token."""
    searched_again: bool = False
    """Set on the last token of a sentence if the first search looped or reached its limit and was replaced."""


@dataclass(frozen=True)
class SteadySource:
    """How much of one part of the source is steady."""

    tokens: int = 0
    """Number of source tokens at its beginning."""
    complete: bool = False
    """All of the part is steady, and so are words after it: nothing can be added to it."""


@dataclass(frozen=True)
class PartDraft:
    """The translation of one part of a sentence in progress."""

    tokens: tuple[Token, ...]
    """The tokens, with the end token."""
    texts: tuple[str, ...]
    """The text of each token."""
    language: str
    source: SteadySource
    attention: NDArray[np.float32] | None
    """Attention of the tokens over the source: [tokens, S]. None if the translation was cut."""
    last: bool = True
    """Whether this is the last part so far."""


class DraftTokens:
    """The draft translation of one sentence, part by part: each draft follows the one that is shown, and shows more of it."""

    def __init__(self) -> None:
        self.source = ""
        """The steady text of the source. The caller sets it before each translation."""
        self._shown: dict[int, tuple[int, ...]] = {}
        """The ids that are shown, by part."""
        self._steady_parts = 0  # of the newest draft, the parts at its beginning that are steady as a whole

    def shown(self, part: int) -> tuple[int, ...]:
        """The ids of a part, counted from 0, that are shown."""
        return self._shown.get(part, ())

    def follow(self, part: int, tokens: Sequence[Token]) -> None:
        """All of a part is shown."""
        self._shown[part] = tuple(token.id for token in tokens if not token.last)

    def push(self, part: int, draft: PartDraft) -> tuple[int, int]:
        """Take the newest translation of a part; return how many of its tokens are steady, and how many are shown.

        A part is only steady when the ones before it are. Nothing is steady of a translation that was cut, nor of one of
        a source of which no word is: such a source is the least certain, so one more of its tokens is left out of what
        decides what is shown. What a translation repeats of what is shown is shown.
        """
        if not part:
            self._steady_parts = 0
        said = any(map(str.isalnum, self.source)) and part == self._steady_parts
        if said and draft.source.complete and not draft.tokens[-1].truncated:
            steady, self._steady_parts = len(draft.tokens), part + 1
        else:
            steady = _attending(draft, draft.source.tokens - _margins(draft, _NOT_STEADY, _IF_UNSURE)) if said else 0
        ids = tuple(token.id for token in draft.tokens)
        shown = len(ids)
        if draft.last and steady < shown:
            of_source = 0 if draft.attention is None else draft.attention.shape[1] - 1
            again = whole_tokens(draft.texts, common_length(self.shown(part), ids), draft.language)
            margins = _margins(draft, _NOT_SHOWN + (not said), _HIDDEN_IF_UNSURE)
            shown = max(steady, again, _attending(draft, of_source - margins))
        self._shown[part] = ids[:shown]
        return steady, shown


def _margins(draft: PartDraft, least: int, if_unsure: int) -> NDArray[np.int_]:
    """For each token, [tokens], how many source tokens at the end do not count, by its probability."""
    doubts = 1 - np.exp([token.log_probability for token in draft.tokens])
    margins: NDArray[np.int_] = np.rint(least + if_unsure * doubts).astype(np.int_)
    return margins


def _attending(draft: PartDraft, certain: int | NDArray[np.int_]) -> int:
    """How many tokens in a row, to the end of a word, attend to certain source tokens."""
    if draft.attention is None:
        return 0
    return whole_tokens(draft.texts, attending(draft.attention, certain), draft.language)


def steady_sources(sources: Sequence[tuple[int, ...]], steady: Sequence[tuple[int, ...]]) -> list[SteadySource]:
    """How much of each part of a source is steady. Both are ids by part, with end tokens; ``steady`` of its beginning."""
    parts = []
    for part, source in enumerate(sources):
        before = steady[part] if part < len(steady) else ()
        tokens = common_length(source[:-1], before[:-1])
        parts.append(SteadySource(tokens, complete=before == source and part < len(steady) - 1))
    return parts


def attending(attention: NDArray[np.float32], certain: int | NDArray[np.int_]) -> int:
    """How many tokens in a row attend to the first ``certain`` source tokens; see ``_UNCERTAIN_ATTENTION``.

    ``attention``: [tokens, S], each row sums to 1. ``certain``: a number for all tokens, or one for each, [tokens].
    """
    may_change = np.arange(attention.shape[1]) >= np.reshape(certain, (-1, 1))
    uncertain = (attention * may_change).sum(axis=1) > _UNCERTAIN_ATTENTION
    return int(np.argmax(uncertain)) if uncertain.any() else len(attention)


def whole_tokens(texts: Sequence[str], count: int, language: str) -> int:
    """The greatest number of tokens, up to ``count``, that ends with a whole word and not with the marks at the end.

    ``texts``: the text of each token of an unfinished sentence, whose last word may go on.
    """
    whole = "".join(texts)
    words = len(whole)
    while words and not whole[words - 1].isalnum():
        words -= 1
    count = min(count, _tokens_within(texts, words))
    while count:
        end = len("".join(texts[:count]))
        # A token without text may be a part of the next character.
        if texts[count - 1] and whole_words(whole[:words] + "x", end, language) == end:
            break
        count -= 1
    return count


def _tokens_within(texts: Sequence[str], length: int) -> int:
    """How many tokens have a text that ends within ``length`` characters."""
    count = end = 0
    for text in texts:
        end += len(text)
        if end > length:
            break
        count += 1
    return count


def attends(translator: object) -> bool:
    """Whether ``translator`` tells what it translates: ``attends``, and its ``stream`` takes ``drafted``, a ``DraftTokens``."""
    return bool(getattr(translator, "attends", False))
