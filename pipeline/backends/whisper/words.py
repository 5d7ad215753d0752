"""Word times from tokens and their times, used only if plausible. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ...core import MissingSpeech, Word

if TYPE_CHECKING:
    from ...core import Replacement

# The alignment gives zero duration to words it could not place. With a larger share of them, word times are no better
# than times in proportion to letters.
_MAX_UNPLACED = 0.3
# The alignment may add the silence before a sentence to its first word. Its duration is limited to this constant plus
# an amount per letter or syllable, which halves the error of a sentence's start.
_FIRST_WORD_S, _LETTER_S, _SYLLABLE_S = 0.15, 0.05, 0.2
SENTENCE_ENDS = tuple(".!?。！？…؟۔।॥")
# Whisper's times are multiples of 20 ms, and its window may end one step after the audio.
_TICK_S = 0.02
# Punctuation that belongs to the following word and to the preceding word (openai/whisper, timing.py).
_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、"
_IN_NUMBERS = ".,:/%％-"


@dataclass(frozen=True)
class TimedWord(Word):
    """A word with the log-probabilities of its tokens."""

    log_probabilities: tuple[float, ...] = ()

    @property
    def mean_log_probability(self) -> float:
        """0 if it has no tokens."""
        return sum(self.log_probabilities) / max(1, len(self.log_probabilities))

    @property
    def plain(self) -> Word:
        probability = sum(map(math.exp, self.log_probabilities)) / max(1, len(self.log_probabilities))
        return Word(self.text, self.start_s, self.end_s, heard=self.heard, probability=probability)


_Timed = TypeVar("_Timed", bound=Word | MissingSpeech)
_Word = TypeVar("_Word", bound=Word)


def mark_replaced(words: Sequence[TimedWord], replaced: Sequence[Replacement]) -> list[TimedWord]:
    """``words`` of which those of terms say what was heard in their place. Positions are those in the joined words."""
    marked: list[TimedWord] = []
    begin = 0
    said: set[Replacement] = set()
    for word in words:
        end = begin + len(word.text)
        for term in replaced:
            if begin < term.end and term.start < end:
                word = replace(word, heard=(word.heard or "") + ("" if term in said else term.heard))
                said.add(term)
        marked.append(word)
        begin = end
    return marked


def joined_pieces(texts: Sequence[str], lengths: Sequence[int], spaced: bool) -> tuple[list[str], list[int]]:
    """Join the pieces of words and numbers that a tokenizer's marks set apart: " 83" ",200" ",000", " well" "-known".

    Args:
        texts, lengths: each piece with its leading space, and its number of tokens.
        spaced: whether the language separates words with spaces. If not, only numbers are joined.
    """
    words: list[str] = []
    counts: list[int] = []
    for text, length in zip(texts, lengths, strict=True):
        if words and text and _goes_on(words[-1], text, spaced):
            words[-1] += text
            counts[-1] += length
        else:
            words.append(text)
            counts.append(length)
    return words, counts


def _goes_on(word: str, piece: str, spaced: bool) -> bool:
    """Whether a piece belongs to the word before it."""
    if piece[0].isspace() or word[-1].isspace():
        return False
    if spaced:
        return True
    digit_before = word[-1].isdigit() or (word[-1] in _IN_NUMBERS and word[-2:-1].isdigit())
    return digit_before and (piece[0].isdigit() or piece[0] in _IN_NUMBERS)


def timed_words(
    texts: Sequence[str], lengths: Sequence[int], starts_s: Sequence[float], log_probabilities: Sequence[float]
) -> list[TimedWord]:
    """Words from a recogniser's grouping of its tokens; punctuation is joined to its word.

    Args:
        texts: each word with its leading space.
        lengths: number of tokens of each word.
        starts_s: [tokens + 1]: the start of each token, then the end of the last one.
        log_probabilities: [tokens].
    """
    words: list[TimedWord] = []
    begin = 0
    for text, length in zip(texts, lengths, strict=True):
        end = begin + length
        certainty = tuple(log_probabilities[begin:end])
        words.append(TimedWord(text, starts_s[begin], starts_s[end], log_probabilities=certainty))
        begin = end
    return _join_closing(_join_opening(words))


def moved(timed: _Timed, by_s: float) -> _Timed:
    """The word or stretch ``by_s`` seconds later."""
    return replace(timed, start_s=timed.start_s + by_s, end_s=timed.end_s + by_s)


def without_pauses(words: Iterable[_Word]) -> list[_Word]:
    """``words`` without the silence before a sentence that its first word includes."""
    shorter: list[_Word] = []
    for word in words:
        if not shorter or shorter[-1].text.endswith(SENTENCE_ENDS):
            letters = word.text.strip()
            # A character of Chinese or Japanese is a syllable.
            longest_s = _FIRST_WORD_S + sum(_SYLLABLE_S if c >= "\u2e80" else _LETTER_S for c in letters)
            word = replace(word, start_s=max(word.start_s, word.end_s - longest_s))
        shorter.append(word)
    return shorter


def plausible(words: Sequence[Word], text: str, start_s: float, end_s: float) -> bool:
    """Whether the words join to ``text``, are in order and within the audio, and most have a duration."""
    if not words or "".join(word.text for word in words).strip() != text:
        return False
    earliest_s = start_s - _TICK_S
    for word in words:
        if not earliest_s <= word.start_s <= word.end_s <= end_s + _TICK_S:
            return False
        earliest_s = word.start_s
    return placed(words)


def placed(words: Sequence[Word]) -> bool:
    """Whether most words have a duration. Words that were not said have none."""
    return sum(word.end_s <= word.start_s for word in words) <= _MAX_UNPLACED * len(words)


def _join_opening(words: list[TimedWord]) -> list[TimedWord]:
    joined: list[TimedWord] = []
    for word in reversed(words):
        mark = word.text.strip()
        if joined and word.text.startswith(" ") and mark and mark in _OPENING:
            joined[-1] = _merge(word, joined[-1])
        else:
            joined.append(word)
    return joined[::-1]


def _join_closing(words: list[TimedWord]) -> list[TimedWord]:
    joined: list[TimedWord] = []
    for word in words:
        if joined and not joined[-1].text.endswith(" ") and word.text and all(c in _CLOSING for c in word.text):
            # Punctuation has no sound: keep the word's end.
            joined[-1] = replace(_merge(joined[-1], word), end_s=joined[-1].end_s)
        else:
            joined.append(word)
    return joined


def _merge(first: TimedWord, second: TimedWord) -> TimedWord:
    return TimedWord(
        first.text + second.text,
        first.start_s,
        second.end_s,
        log_probabilities=first.log_probabilities + second.log_probabilities,
    )
