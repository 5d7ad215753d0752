"""Speech of which a search has made no words: where it is, and how words that are heard there later fit in. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...core import FRAME_S, Samples, levels_db
from ...languages import letters
from .words import SENTENCE_ENDS, TimedWord

# A word lasts this long and an amount for each letter or digit. The alignment gives the time of words that were left out to
# a neighbour, which then lasts several times as long.
_WORD_S, _LETTER_S, _SYLLABLE_S, _DIGIT_S = 0.25, 0.09, 0.27, 0.45
_LONG = 1.5
# The alignment is this exact.
_MARGIN_S = 0.1
# Sound down to this far below the loudest counts as speech: consonants and whispers are 20 to 30 dB below vowels.
_BELOW_LOUDEST_DB, _LEAST_DB = 32.0, -65.0
# Steady noise, the softest sound there is, is no speech; a hoarse voice is 5 dB louder.
_ABOVE_SOFTEST_DB = 4.0
# Such a stretch of sound without words is worth another search.
_LEAST_S = 0.7
# Stretches closer than this are one.
_CLOSE_S = 0.3
# Words at the seams that two searches may both have heard.
_MOST_SHARED = 3


def unheard(words: Sequence[TimedWord], samples: Samples, from_s: float = 0.0) -> list[tuple[float, float]]:
    """The stretches of audible sound without words, from and to which second.

    Args:
        words: with times in seconds from the first sample; see ``without_others_time``.
        samples: [n], the audio in which they were heard.
        from_s: where to begin.
    """
    free = audible(samples)
    free[: round(from_s / FRAME_S)] = False
    for word in words:
        free[max(0, round((word.start_s - _MARGIN_S) / FRAME_S)) : round((word.end_s + _MARGIN_S) / FRAME_S) + 1] = (
            False
        )
    frames = np.flatnonzero(free)
    groups = np.split(frames, np.flatnonzero(np.diff(frames) * FRAME_S > _CLOSE_S) + 1)
    least = round(_LEAST_S / FRAME_S)
    return [(float(g[0]) * FRAME_S, float(g[-1] + 1) * FRAME_S) for g in groups if len(g) >= least]


def audible(samples: Samples) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which frames [n] of 20 ms are loud enough for speech."""
    level_db = levels_db(samples)
    if not len(level_db):
        return np.zeros(0, np.bool_)
    softest_db, loudest_db = map(float, np.percentile(level_db, [5, 95]))
    return np.asarray(level_db > max(loudest_db - _BELOW_LOUDEST_DB, softest_db + _ABOVE_SOFTEST_DB, _LEAST_DB))


def without_others_time(words: Sequence[TimedWord]) -> list[TimedWord]:
    """``words`` without the time of others that the alignment has given to them.

    A word that begins a sentence was said at the end of its time, another one at the beginning.
    """
    shorter: list[TimedWord] = []
    for word in words:
        longest_s = _longest_s(word.text)
        if word.end_s - word.start_s > _LONG * longest_s:
            begins = not shorter or shorter[-1].text.rstrip().endswith(SENTENCE_ENDS)
            if begins and not word.text.rstrip().endswith(SENTENCE_ENDS):
                word = replace(word, start_s=word.end_s - longest_s)
            else:
                word = replace(word, end_s=word.start_s + longest_s)
        shorter.append(word)
    return shorter


def within_sound(words: Sequence[TimedWord], samples: Samples) -> list[TimedWord]:
    """``words`` without the silence at their ends: the alignment ends a word where the next one begins.

    A word before a long pause would otherwise seem to be said in it. ``samples``: [n], the audio in which they were heard.
    """
    ends = np.flatnonzero(audible(samples)) + 1
    shorter: list[TimedWord] = []
    for word in words:
        before = int(np.searchsorted(ends, round(word.end_s / FRAME_S), "right"))
        end_s = float(ends[before - 1]) * FRAME_S if before else 0.0
        shorter.append(replace(word, end_s=end_s) if word.start_s < end_s < word.end_s - _MARGIN_S else word)
    return shorter


def _longest_s(text: str) -> float:
    """How long a word lasts at most when it is said slowly."""
    spoken = letters(text)
    return _WORD_S + sum(_DIGIT_S if c.isdigit() else _SYLLABLE_S if c >= "\u2e80" else _LETTER_S for c in spoken)


def inserted(words: Sequence[TimedWord], more: Sequence[TimedWord]) -> list[TimedWord]:
    """``words`` with ``more``, which were heard in a stretch between them, without those that both have at the seams."""
    if not more:
        return list(words)
    middle = sum(word.start_s < more[0].start_s for word in words)
    before, after, new = list(words[:middle]), list(words[middle:]), list(more)
    new = new[_shared(before, new) :]
    shared = _shared(new, after)
    return [*before, *new[: len(new) - shared], *after]


def _shared(first: Sequence[TimedWord], second: Sequence[TimedWord]) -> int:
    """How many words at the end of the one are those at the beginning of the other."""
    for count in range(min(_MOST_SHARED, len(first), len(second)), 0, -1):
        if all(letters(a.text) == letters(b.text) for a, b in zip(first[-count:], second[:count], strict=True)):
            return count
    return 0
