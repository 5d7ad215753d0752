"""Transcripts → sentences, which is what Marian models were trained on. Nothing of a text is lost."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator

from sentencex import segment

from pipeline.sentences.boundaries import CLOSERS, CONTEXT, MARKS, habits, is_end, is_inside_quotation

# Where a sentence that is too long may be cut, the best first: after clause marks (not inside 12,500 or 10:30), at spaces.
_CLAUSE = re.compile(r"(?<=[,;:—])(?=\s)|(?<=[，；：、])")
_SPACE = re.compile(r"(?<=\s)")
# sentencex 1.0 panics at a blank of several bytes between a capital letter and a full stop.
_BLANK = re.compile(r"[^\S\n]")
# A cut nearer to either end than this share leaves a part that means little by itself.
_LEAST_SHARE = 0.2

# Characters given to sentencex at once: for a text without ends, or with many open quotations, its time grows with the square.
_WINDOW = 4096
# Quotations that sentencex does not know, so that it splits inside them.
_QUOTATION = re.compile(r"『[^『』]{0,400}』|„[^„”“]{0,400}”")
# Marks and closers that belong to the sentence before: 』 where sentencex splits 『本当？』.
_TAIL = re.compile(rf"[{MARKS}{re.escape(CLOSERS)}]{{1,9}}\s*")
# Where a sentence may end that sentencex does not see: after "etc.", after a bracket, before figures in Chinese.
_MISSED = re.compile(r"\.[)\]]?\s+(?=\S)|[。！？](?=[0-9a-z])")


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of ``text``, which joined are ``text``; blanks between them stay with the one before.

    sentencex proposes the ends, ``pipeline.sentences.boundaries`` knows which of them are none and which are missing.
    Blank text has no sentence.
    """
    quotes = [match.start() for match in re.finditer('"', text)]
    ends = _proposed_ends(_BLANK.sub(" ", text), language)
    proposed = {_past_tail(text, end, bisect.bisect_left(quotes, end) % 2 == 1) for end in ends}
    inside = {at for match in _QUOTATION.finditer(text) for at in range(match.start() + 1, match.end())}
    known = habits(language)
    sentences: list[str] = []
    start = 0
    for end in sorted(proposed | {match.end() for match in _MISSED.finditer(text)} | {len(text)}):
        if end <= start or not text[start:end].strip():
            continue
        before = text[max(start, end - CONTEXT) : end]
        if end < len(text):
            if end in inside or (end not in proposed and is_inside_quotation(before)):
                continue
            verdict = is_end(before, text[end : end + CONTEXT], known)
            if not (end in proposed if verdict is None else verdict):
                continue
        sentences.append(text[start:end])
        start = end
    if start < len(text) and sentences:
        sentences[-1] += text[start:]
    return sentences


def _proposed_ends(text: str, language: str) -> Iterator[int]:
    """Where sentencex ends a sentence, read in windows: each begins with the sentence that the one before left open."""
    at = 0
    while at < len(text):
        window = text[at : at + _WINDOW]
        pieces = segment(language, window)
        if at + len(window) < len(text):
            if len(pieces) < 2:  # a sentence longer than a window has no end in this one
                at += len(window)
                continue
            pieces.pop()
        for piece in pieces:
            at += len(piece)
            yield at
        if not pieces:
            return


def _past_tail(text: str, end: int, quoted: bool) -> int:
    """The end after marks and closers that follow at once; a straight quotation mark closes only what is ``quoted``."""
    tail = _TAIL.match(text, end)
    if tail is None or text[end - 1 : end].isspace() or (text[end] == '"' and not quoted):
        return end
    return tail.end()


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
