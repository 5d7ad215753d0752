"""When each word was said: words out of tokens and their times, taken only where they are plausible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipeline.events import Word

# Words without any duration are those that the alignment could not place. Where there are more than this share of them,
# the others' times are no better than times shared out by letters (measured on pairs of phrases).
_MOST_UNPLACED = 0.3
# A sentence's first word may take the silence before it too. It is not believed to last longer than this, and so much for
# each letter (measured: the error of a sentence's begin is halved).
_FIRST_WORD_S, _LETTER_S, _SYLLABLE_S = 0.15, 0.05, 0.2
_SENTENCE_ENDS = tuple(".!?。！？…؟۔।॥")
# Whisper's clock ticks every 20 ms, and its window may end a tick after the audio.
_TICK_S = 0.02
# Marks that belong to the word after them and to the word before them (openai/whisper, timing.py).
_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、"


@dataclass(frozen=True)
class TimedWord(Word):
    """A word, and how sure the recogniser is of its tokens."""

    log_probabilities: tuple[float, ...] = ()


def timed_words(
    texts: Sequence[str], lengths: Sequence[int], starts_s: Sequence[float], log_probabilities: Sequence[float]
) -> list[TimedWord]:
    """Words from a recogniser's own division of its tokens; marks are joined to the words that they belong to.

    Args:
        texts: each word, with the space before it.
        lengths: how many tokens each has.
        starts_s: [tokens + 1]: where each token begins, and where the last one ends.
        log_probabilities: [tokens].
    """
    words: list[TimedWord] = []
    at = 0
    for text, length in zip(texts, lengths, strict=True):
        end = at + length
        words.append(TimedWord(text, starts_s[at], starts_s[end], tuple(log_probabilities[at:end])))
        at = end
    return _closing_joined(_opening_joined(words))


def without_pauses(words: Iterable[Word]) -> list[Word]:
    """``words`` with the silence before a sentence taken out of its first word."""
    found: list[Word] = []
    for word in words:
        if not found or found[-1].text.endswith(_SENTENCE_ENDS):
            letters = word.text.strip()
            # One character of Chinese or Japanese is a syllable.
            longest_s = _FIRST_WORD_S + sum(_SYLLABLE_S if c >= "\u2e80" else _LETTER_S for c in letters)
            word = replace(word, start_s=max(word.start_s, word.end_s - longest_s))
        found.append(word)
    return found


def plausible(words: Sequence[Word], text: str, start_s: float, end_s: float) -> bool:
    """Whether the words are the text's, in order, within its audio, and most of them last for some time."""
    if not words or "".join(word.text for word in words).strip() != text:
        return False
    at = start_s - _TICK_S
    for word in words:
        if not at <= word.start_s <= word.end_s <= end_s + _TICK_S:
            return False
        at = word.start_s
    return sum(word.end_s <= word.start_s for word in words) <= _MOST_UNPLACED * len(words)


def _opening_joined(words: list[TimedWord]) -> list[TimedWord]:
    joined: list[TimedWord] = []
    for word in reversed(words):
        mark = word.text.strip()
        if joined and word.text.startswith(" ") and mark and mark in _OPENING:
            joined[-1] = _both(word, joined[-1])
        else:
            joined.append(word)
    return joined[::-1]


def _closing_joined(words: list[TimedWord]) -> list[TimedWord]:
    joined: list[TimedWord] = []
    for word in words:
        if joined and not joined[-1].text.endswith(" ") and word.text and all(c in _CLOSING for c in word.text):
            # A mark has no sound: the word ends where it ended.
            joined[-1] = replace(_both(joined[-1], word), end_s=joined[-1].end_s)
        else:
            joined.append(word)
    return joined


def _both(first: TimedWord, second: TimedWord) -> TimedWord:
    return TimedWord(
        first.text + second.text,
        first.start_s,
        second.end_s,
        first.log_probabilities + second.log_probabilities,
    )
