"""Split transcripts into sentences, the unit that Marian models were trained on, and sentences into words. No text is lost."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sentencex import segment

from ...languages import CLOSERS, MARKS, spaced
from ..events import SourceSentence, Word
from .boundaries import CONTEXT, is_end, is_inside_quotation, word_lists

# Where a sentence that is too long may be cut, best first: after clause marks (not inside 12,500 or 10:30), at spaces.
_CLAUSE = re.compile(r"(?<=[,;:—])(?=\s)|(?<=[，；：、])")
_SPACE = re.compile(r"(?<=\s)")
# Replaced by plain spaces: sentencex 1.0 panics at a multi-byte blank between a capital letter and a full stop.
_BLANK = re.compile(r"[^\S\n]")
# Minimum length of either part, as a share of the sentence. A shorter part means little by itself.
_MIN_SHARE = 0.2

# Characters given to sentencex at once; its time is quadratic for text without ends or with many open quotations.
_WINDOW = 4096
# Quotations unknown to sentencex, which would split inside them.
_QUOTATION = re.compile(r"『[^『』]{0,400}』|„[^„”“]{0,400}”")
# Marks and closers that belong to the preceding sentence: sentencex splits 『本当？』 before 』.
_TAIL = re.compile(rf"[{MARKS}{re.escape(CLOSERS)}]{{1,9}}\s*")
# Possible sentence ends that sentencex misses: after "etc.", after a bracket, before digits in Chinese.
_EXTRA_ENDS = re.compile(r"\.[)\]]?\s+(?=\S)|[。！？](?=[0-9a-z])")


def split_sentences(text: str, language: str) -> list[str]:
    """Split ``text`` into sentences whose concatenation is ``text``; blanks stay with the preceding sentence.

    sentencex proposes the ends; ``pipeline.core.sentences.boundaries`` rejects wrong ones and confirms possible ends that it
    misses. Blank text has no sentences.
    """
    quotes = [match.start() for match in re.finditer('"', text)]
    ends = _proposed_ends(_BLANK.sub(" ", text), language)
    proposed = {_skip_tail(text, end, bisect.bisect_left(quotes, end) % 2 == 1) for end in ends}
    inside = {position for match in _QUOTATION.finditer(text) for position in range(match.start() + 1, match.end())}
    lists = word_lists(language)
    sentences: list[str] = []
    start = 0
    for end in sorted(proposed | {match.end() for match in _EXTRA_ENDS.finditer(text)} | {len(text)}):
        if end <= start or not text[start:end].strip():
            continue
        before = text[max(start, end - CONTEXT) : end]
        if end < len(text):
            if end in inside or (end not in proposed and is_inside_quotation(before)):
                continue
            verdict = is_end(before, text[end : end + CONTEXT], lists)
            if not (end in proposed if verdict is None else verdict):
                continue
        sentences.append(text[start:end])
        start = end
    if start < len(text) and sentences:
        sentences[-1] += text[start:]
    return sentences


def _proposed_ends(text: str, language: str) -> Iterator[int]:
    """Yield the sentence ends of sentencex, which reads the text in windows.

    Each window begins with the last, possibly incomplete sentence of the one before.
    """
    position = 0
    while position < len(text):
        window = text[position : position + _WINDOW]
        pieces = segment(language, window)
        if position + len(window) < len(text):
            if len(pieces) < 2:  # the sentence is longer than the window
                position += len(window)
                continue
            pieces.pop()
        for piece in pieces:
            position += len(piece)
            yield position
        if not pieces:
            return


def _skip_tail(text: str, end: int, quoted: bool) -> int:
    """Move ``end`` past directly following marks and closers; past a straight quotation mark only if ``quoted``."""
    tail = _TAIL.match(text, end)
    if tail is None or text[end - 1 : end].isspace() or (text[end] == '"' and not quoted):
        return end
    return tail.end()


def last_clause(sentence: str) -> int | None:
    """Where the last clause of an unfinished sentence begins, if it has several; else None."""
    ends = [match.end() for match in _CLAUSE.finditer(sentence)]
    return max((end for end in ends if sentence[end:].strip()), default=None)


def fit(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence into parts that fit the model: after clause marks, else at spaces, else in half."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    minimum = _MIN_SHARE * len(sentence)
    for boundary in (_CLAUSE, _SPACE):
        ends = [match.end() for match in boundary.finditer(sentence)]
        inside = [end for end in ends if minimum <= end <= len(sentence) - minimum]
        if inside:
            cut = min(inside, key=lambda end: abs(2 * end - len(sentence)))
            return fit(sentence[:cut], fits) + fit(sentence[cut:], fits)
    middle = len(sentence) // 2
    return fit(sentence[:middle], fits) + fit(sentence[middle:], fits)


def trimmed_words(sentence: SourceSentence) -> list[Word]:
    """The words without blanks at their ends; joined, with blanks where the language has them, they are the text.

    Pieces of a recogniser without a blank between them are one word, as " 1" and ",000" are. In a language without blanks,
    only marks belong to the word before. If word times are unknown, the time is divided evenly among the words.
    """
    apart = spaced(sentence.language)
    words: list[Word] = []
    for piece in sentence.words or _divided(sentence, apart):
        if words and not piece.text[:1].isspace() and (apart or not piece.text[:1].isalnum()):
            words[-1] = replace(words[-1], text=words[-1].text + piece.text, end_s=piece.end_s)
        else:
            words.append(piece)
    return [replace(word, text=word.text.strip()) for word in words]


def _divided(sentence: SourceSentence, apart: bool) -> Sequence[Word]:
    texts = [f" {text}" for text in sentence.text.split()] if apart else list(sentence.text)
    step_s = (sentence.end_s - sentence.start_s) / max(1, len(texts))
    starts_s = [sentence.start_s + step_s * number for number in range(len(texts))]
    return [Word(text, start_s, start_s + step_s) for text, start_s in zip(texts, starts_s, strict=True)]
