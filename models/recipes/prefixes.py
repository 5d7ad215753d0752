"""Beginnings of sentence pairs: a translator that learns them invents no ending for a sentence that is still spoken."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from align import Alignments

Ids = list[int]

_FIRST_CJK = "\u2e80"
_WORD_MARKS = "'’-"
# How fast the weight of an alignment falls with the distance from the diagonal, as a share of the sentence's length. It
# tells apart two pieces that are equal: IBM model 1 has no positions. fast_align (Dyer et al. 2013) uses 4.
_DIAGONAL = 4.0
# A target beginning must cover at least this share of the share of the source that is kept. Shorter ones come from
# translations in another order, and would teach the translator to leave words out.
_LEAST_SHARE = 0.6
_TRIES = 3  # places to cut a pair


class Prefixes:
    """Cuts encoded pairs: the source before a word, the target where it rests on what is cut off."""

    def __init__(self, pieces: Sequence[str], alignments: Alignments) -> None:
        """``pieces``: the vocabulary in order of ids, with "▁" for a space (SentencePiece)."""
        self._begins = [piece.startswith("▁") for piece in pieces]
        texts = [piece.lstrip("▁") for piece in pieces]
        self._opens = [bool(text) and _in_word(text[0]) for text in texts]
        self._closes = [bool(text) and _in_word(text[-1]) for text in texts]
        self._content = [any(c.isalnum() for c in text) for text in texts]
        self._alignments = alignments

    def cut(self, source: Ids, target: Ids, rng: random.Random) -> tuple[Ids, Ids] | None:
        """A beginning of a pair that ends with the end token; None if some random places give none.

        Neither side of the beginning ends with a mark.
        """
        end = source[-1]
        places = [at for at in range(1, len(source) - 1) if self._divides(source, at) and self._any(source[at:-1])]
        if not places:
            return None
        for at in rng.sample(places, min(len(places), _TRIES)):
            length = self.covered(source, target, at)
            kept, translated = self._without_marks(source[:at]), self._without_marks(target[:length])
            if kept and len(translated) >= _LEAST_SHARE * at / (len(source) - 1) * (len(target) - 1):
                return [*kept, end], [*translated, end]
        return None

    def covered(self, source: Ids, target: Ids, at: int) -> int:
        """The length of the longest target beginning of which each piece rests on ``source[:at]``, in whole words."""
        weight = self._alignments(np.array([source]), np.array([target]))[0, :-1, :-1]
        rows, columns = (np.arange(count) / max(1, count) for count in weight.shape)
        weight = weight * np.exp(-_DIAGONAL * np.abs(columns[None, :] - rows[:, None]))
        weight *= [self._content[piece] for piece in source[:-1]]
        total = np.maximum(weight.sum(1), math.ulp(0.0))
        rests = weight[:, :at].sum(1) / total >= 0.5
        free = [not self._content[piece] for piece in target[:-1]]  # marks rest on nothing
        missing = np.flatnonzero(~(rests | free))
        length = int(missing[0]) if len(missing) else len(target) - 1
        while 0 < length < len(target) - 1 and not self._divides(target, length):
            length -= 1
        return length

    def _divides(self, ids: Ids, at: int) -> bool:
        """Whether a word begins at ``ids[at]``. Between Chinese pieces each place counts: they are about words."""
        return self._begins[ids[at]] or not (self._closes[ids[at - 1]] and self._opens[ids[at]])

    def _any(self, ids: Ids) -> bool:
        return any(self._content[piece] for piece in ids)

    def _without_marks(self, ids: Ids) -> Ids:
        length = len(ids)
        while length and not self._content[ids[length - 1]]:
            length -= 1
        return ids[:length]


def _in_word(character: str) -> bool:
    return (character.isalnum() and character < _FIRST_CJK) or character in _WORD_MARKS
