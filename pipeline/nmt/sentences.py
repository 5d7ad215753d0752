"""Transcripts → sentences, which is what Marian models were trained on. Nothing is lost: the parts joined are the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

from sentencex import segment

# Where a sentence that is too long may be cut, the best first: after clause marks, after spaces.
_CLAUSE = re.compile(r"(?<=[,;:，；：、—])")
_SPACE = re.compile(r"(?<=\s)")


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of ``text``; whitespace between them stays with the one before. Blank text has none."""
    sentences: list[str] = []
    for part in segment(language, text):
        if part.strip():
            sentences.append(part)
        elif sentences:
            sentences[-1] += part
    return sentences


def fit(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence into parts that fit the model: at clauses, else at spaces, else in half."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    for boundary in (_CLAUSE, _SPACE):
        pieces = [piece for piece in boundary.split(sentence) if piece]
        if len(pieces) > 1:
            # At the boundary nearest the middle, so that no part is a lone word.
            ends = list(accumulate(map(len, pieces)))[:-1]
            cut = min(ends, key=lambda end: abs(2 * end - len(sentence)))
            return fit(sentence[:cut], fits) + fit(sentence[cut:], fits)
    middle = len(sentence) // 2
    return fit(sentence[:middle], fits) + fit(sentence[middle:], fits)
