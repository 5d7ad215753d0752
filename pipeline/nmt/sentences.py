"""Transcripts → sentences, which is what Marian models were trained on. Nothing is lost but blank text at the start."""

from __future__ import annotations

import re
from collections.abc import Callable

from sentencex import segment

# Where a sentence that is too long may be cut, the best first: after clause marks (not inside 12,500 or 10:30), at spaces.
_CLAUSE = re.compile(r"(?<=[,;:—])(?=\s)|(?<=[，；：、])")
_SPACE = re.compile(r"(?<=\s)")
# sentencex 1.0 panics at a blank of several bytes between a capital letter and a full stop.
_BLANK = re.compile(r"[^\S\n]")
# A cut nearer to either end than this share leaves a part that means little by itself.
_LEAST_SHARE = 0.2


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of ``text``; whitespace between them stays with the one before. Blank text has none."""
    sentences: list[str] = []
    at = 0
    for plain in segment(language, _BLANK.sub(" ", text)):
        part = text[at : at + len(plain)]
        at += len(plain)
        if part.strip():
            sentences.append(part)
        elif sentences:
            sentences[-1] += part
    return sentences


def fit(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence into parts that fit the model: at clauses, else at spaces, else in half."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    least = _LEAST_SHARE * len(sentence)
    for boundary in (_CLAUSE, _SPACE):
        ends = [match.end() for match in boundary.finditer(sentence)]
        inside = [end for end in ends if least <= end <= len(sentence) - least]
        if inside:
            cut = min(inside, key=lambda end: abs(2 * end - len(sentence)))
            return fit(sentence[:cut], fits) + fit(sentence[cut:], fits)
    middle = len(sentence) // 2
    return fit(sentence[:middle], fits) + fit(sentence[middle:], fits)
