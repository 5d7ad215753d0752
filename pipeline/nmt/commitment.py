"""Translation of a sentence in progress that commits its beginning: which target tokens are final, and which are shown. Pure.

Committed tokens are forced in every later translation of the sentence, so what follows them may change and they may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..captions.policy import whole_words
from ..captions.states import common_length
from .generation import Token

# A token is certain if at most this share of its attention is on source that may change: tokens after the certain ones, and the
# end token, which is attended where the sentence lacks something. Cf. AlignAtt (Papi, Turchi and Negri, 2023), which looks at
# the most attended position only.
_UNCERTAIN_ATTENTION = 0.2
# The last source tokens may change what is before them ("at a" before "quarter past eleven"). For a token of probability p, so many of the
# committed ones do not count: _NOT_COMMITTED + _IF_UNSURE · (1 - p). With students of Firefox Translations (en to pt), text of 300
# sentences of 6 to 16 words, each word committed when the next was said: sentences translated as when they are whole, chrF against that,
# lag of committed words in words: 2 for all 73 %, 94.0 and 2.57; 3 for all 80 %, 95.9 and 3.09; this 87 %,
# 96.6 and 2.52.
_NOT_COMMITTED, _IF_UNSURE = 1, 8
# Of all that was heard so many do not count for what is shown. On 109 s of read speech, en to pt, seconds from a word until its translation
# is shown, and words taken back per final word: 1 0.88 and 0.55, 2 1.12 and 0.34; without the last target word instead 0.82 and 0.54.
_NOT_SHOWN = 1


@dataclass(frozen=True)
class CertainSource:
    """How much of one part of the source is committed."""

    tokens: int = 0
    """Number of source tokens at its beginning."""
    complete: bool = False
    """All of the part is committed, and so are words after it: nothing can be added to it."""


@dataclass(frozen=True)
class PartDraft:
    """The translation of one part of a sentence in progress."""

    tokens: tuple[Token, ...]
    """With the end token."""
    texts: tuple[str, ...]
    """The text of each token."""
    language: str
    certain: CertainSource
    attention: NDArray[np.float32] | None
    """Attention of the tokens after the committed ones over the source: [tokens, S]. None if the translation was cut."""
    last: bool = True
    """Whether no part follows."""


class Commitment:
    """The committed tokens of one sentence's translation, part by part."""

    def __init__(self) -> None:
        self.source = ""
        """The committed text of the source. The caller sets it before each translation."""
        self._parts: list[tuple[Token, ...]] = []
        self._shown: dict[int, tuple[int, ...]] = {}
        """For each part, the ids that are shown."""

    def tokens(self, part: int) -> tuple[Token, ...]:
        """The committed tokens of a part, counted from 0. The last is the end token if the part is complete."""
        return self._parts[part] if part < len(self._parts) else ()

    def draft(self, part: int) -> tuple[int, ...]:
        """The ids of a part that are shown and not committed."""
        return self._shown.get(part, ())[len(self.tokens(part)) :]

    @property
    def parts(self) -> int:
        """How many parts have committed tokens."""
        return len(self._parts)

    def push(self, part: int, draft: PartDraft) -> tuple[int, int]:
        """Take the newest translation of a part; return how many of its tokens are committed now, and how many are shown.

        A part is only committed when the ones before it are complete. A translation that was cut commits nothing, nor does one of
        a source of which no word is committed: such a source is the least certain, so one more of its tokens is left out of what
        decides what is shown. What a translation repeats of what is shown is shown.
        """
        committed = before = len(self.tokens(part))
        said = any(map(str.isalnum, self.source)) and all(_complete(self.tokens(other)) for other in range(part))
        if said and draft.certain.complete and not draft.tokens[-1].truncated:
            found = len(draft.tokens)
        else:
            doubts = 1 - np.exp([token.log_probability for token in draft.tokens[before:]])
            margins = np.rint(_NOT_COMMITTED + _IF_UNSURE * doubts).astype(np.int_)
            found = _attending(draft, before, draft.certain.tokens - margins) if said else 0
        if found > committed:
            self._parts[part : part + 1] = [draft.tokens[:found]]
            committed = found
        ids = tuple(token.id for token in draft.tokens)
        shown = len(ids)
        if draft.last and committed < shown:
            of_source = 0 if draft.attention is None else draft.attention.shape[1] - 1
            again = whole_tokens(draft.texts, common_length(self._shown.get(part, ()), ids), draft.language)
            shown = max(committed, again, _attending(draft, before, of_source - _NOT_SHOWN - (not said)))
        self._shown[part] = ids[:shown]
        return committed, shown


def _attending(draft: PartDraft, known: int, certain: int | NDArray[np.int_]) -> int:
    """How many tokens in a row, after ``known`` ones and to the end of a word, attend to certain source tokens."""
    if draft.attention is None:
        return known
    count = known + attending(draft.attention, certain)
    return whole_tokens(draft.texts, count, draft.language)


def certain_sources(sources: Sequence[tuple[int, ...]], committed: Sequence[tuple[int, ...]]) -> list[CertainSource]:
    """How much of each part of a source is committed. Both are ids by part, with end tokens; ``committed`` of its beginning."""
    found = []
    for part, source in enumerate(sources):
        known = committed[part] if part < len(committed) else ()
        tokens = common_length(source[:-1], known[:-1])
        found.append(CertainSource(tokens, complete=known == source and part < len(committed) - 1))
    return found


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


def _complete(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[-1].last


def appends(translator: object) -> bool:
    """Whether ``translator`` can commit the beginning of a translation: ``appends``, and its ``stream`` takes a ``commitment``."""
    return bool(getattr(translator, "appends", False))
