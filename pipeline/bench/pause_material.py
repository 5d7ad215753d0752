"""Cut sentences out of recordings, and insert pauses at real gaps between their words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.events import SAMPLE_RATE, Samples, Word
from pipeline.sentences.splitting import split_sentences

# Frames of 10 ms, in which the level is measured.
_FRAME = SAMPLE_RATE // 100
# A gap is at least this long. In read speech, words within a clause adjoin with less, or with none.
_SHORTEST_FRAMES = 6
# A frame is silent if its level is this far below that of the speech: weak consonants are 20 to 30 dB below vowels. In
# a recording with noise, it is silent if it is close to the noise.
_SILENT_DB, _NOISE_DB = 25.0, 6.0
# The noise must be this far below the speech; otherwise weak consonants cannot be told from gaps.
_SHORTEST_RANGE_DB = 20.0
# Percentiles of the frame levels taken as the level of the noise and of the speech.
_NOISE_PERCENTILE, _SPEECH_PERCENTILE = 5, 90
# Whisper's word times are multiples of 20 ms and err by 50 ms and more. A silence further from the boundary than this
# may be the closure of a stop consonant inside a word.
_TOLERANCE_FRAMES = 6
# Maximum sound kept before and after a sentence, in samples.
_MARGIN = SAMPLE_RATE // 4
# Minimum number of words on either side of a pause: a single word is not a clause.
_FEWEST_WORDS = 2
_CLAUSE_MARKS = (",", ";", ":", "—", "-", "，", "；", "：", "、")
_FINAL_MARKS = (".", "?", "!", "…", "。", "？", "！")


@dataclass(frozen=True)
class Gap:
    """Silence between two words."""

    after: int
    """Index of the word before it."""
    begin: int
    end: int
    """Samples ``begin`` to ``end`` are silent."""

    @property
    def middle(self) -> int:
        return (self.begin + self.end) // 2


def gaps(samples: Samples, words: Sequence[Word]) -> list[Gap]:
    """The gaps between words, in order.

    A gap is silent for at least 60 ms. It lies between the middles of its words, and at or beside the boundary that the
    word times give, so it is not inside a word.

    Args:
        samples: [n] int16.
        words: with times in seconds from the first sample, in order.
    """
    silent = _silent_frames(samples)
    found: list[Gap] = []
    for after, (left, right) in enumerate(pairwise(words)):
        near_from, near_to = _frame(min(left.end_s, right.start_s)), _frame(max(left.end_s, right.start_s))
        low, high = _frame((left.start_s + left.end_s) / 2), _frame((right.start_s + right.end_s) / 2)
        runs = [
            (begin, end)
            for begin, end in _runs(silent[low:high], low)
            if end - begin >= _SHORTEST_FRAMES
            and begin <= near_to + _TOLERANCE_FRAMES
            and end >= near_from - _TOLERANCE_FRAMES
        ]
        if runs:
            begin, end = max(runs, key=lambda run: run[1] - run[0])
            found.append(Gap(after, begin * _FRAME, end * _FRAME))
    return found


def sentences_in(samples: Samples, words: Sequence[Word], language: str) -> list[tuple[Samples, list[Word]]]:
    """The sentences of a recording that begin and end at a gap or at an end of the recording, with their words."""
    text = "".join(word.text for word in words)
    ends = np.cumsum([len(sentence) for sentence in split_sentences(text, language)])
    after_word = np.cumsum([len(word.text) for word in words])
    # A sentence ends with the word that contains its last letter; blanks stay with the following word.
    lasts = [int(np.searchsorted(after_word, len(text[:end].rstrip()))) for end in ends]
    places = {gap.after: gap for gap in gaps(samples, words)}
    found: list[tuple[Samples, list[Word]]] = []
    first = 0
    for last in lasts:
        begin = 0 if first == 0 else _edge(places.get(first - 1), first=True)
        end = len(samples) if last == len(words) - 1 else _edge(places.get(last), first=False)
        if begin is not None and end is not None and first <= last:
            shift_s = begin / SAMPLE_RATE
            own = [
                Word(word.text, max(0.0, word.start_s - shift_s), max(0.0, word.end_s - shift_s))
                for word in words[first : last + 1]
            ]
            found.append((samples[begin:end], own))
        first = last + 1
    return found


def at_clause(words: Sequence[Word], gap: Gap) -> bool:
    """Whether a comma or another clause mark is before the gap."""
    return words[gap.after].text.rstrip().endswith(_CLAUSE_MARKS)


def inside_sentence(words: Sequence[Word], gap: Gap) -> bool:
    """Whether the gap has two words of the sentence on either side, and no final mark before it."""
    return _FEWEST_WORDS <= gap.after + 1 <= len(words) - _FEWEST_WORDS and not words[gap.after].text.rstrip().endswith(
        _FINAL_MARKS
    )


def with_pause(samples: Samples, gap: Gap, pause_s: float) -> Samples:
    """Insert a pause into the middle of a gap: noise with the level of the recording's quietest parts.

    The noise has the mean of the gap, because a recording may have a constant offset.
    """
    return np.concatenate([samples[: gap.middle], _noise(samples, gap.begin, gap.end, pause_s), samples[gap.middle :]])


def shifted(samples: Samples, shift_s: float) -> Samples:
    """Insert noise with the level of a recording's quietest parts before it."""
    return np.concatenate([_noise(samples, 0, _FRAME, shift_s), samples])


def _noise(samples: Samples, begin: int, end: int, length_s: float) -> Samples:
    """Noise with the level of the quietest parts of ``samples`` and the mean of ``samples[begin:end]``."""
    mean = float(samples[begin:end].mean())
    noise = np.random.default_rng(0).normal(mean, _noise_level(samples), round(length_s * SAMPLE_RATE))
    return np.asarray(np.round(noise), np.int16)


def _edge(gap: Gap | None, *, first: bool) -> int | None:
    """Where a sentence is cut: in the middle of the gap, or a short time from its first or last sound."""
    if gap is None:
        return None
    return max(gap.middle, gap.end - _MARGIN) if first else min(gap.middle, gap.begin + _MARGIN)


def _frame(time_s: float) -> int:
    return round(time_s * SAMPLE_RATE / _FRAME)


def _levels_db(samples: Samples) -> NDArray[np.float64]:
    """The level of each whole frame, in dB relative to one unit; at least 0."""
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    power = np.square(frames - frames.mean(axis=1, keepdims=True)).mean(axis=1)
    return np.asarray(10 * np.log10(np.maximum(power, 1.0)), np.float64)


def _silent_frames(samples: Samples) -> NDArray[np.bool_]:
    """Which frames are silent; none if the recording is too noisy to tell."""
    levels = _levels_db(samples)
    if not len(levels):
        return np.zeros(0, np.bool_)
    noise_db, speech_db = np.percentile(levels, [_NOISE_PERCENTILE, _SPEECH_PERCENTILE])
    if speech_db - noise_db < _SHORTEST_RANGE_DB:
        return np.zeros(len(levels), np.bool_)
    return np.asarray(levels <= max(speech_db - _SILENT_DB, noise_db + _NOISE_DB), np.bool_)


def _noise_level(samples: Samples) -> float:
    """Standard deviation of the quietest frames, at least half a unit."""
    levels = _levels_db(samples)
    noise_db = float(np.percentile(levels, _NOISE_PERCENTILE)) if len(levels) else 0.0
    return max(0.5, float(10 ** (noise_db / 20)))


def _runs(silent: NDArray[np.bool_], offset: int) -> list[tuple[int, int]]:
    """The runs of silent frames, as (first, after the last), counted from ``offset`` before the first frame."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]).astype(np.int8)))
    return [(int(begin) + offset, int(end) + offset) for begin, end in edges.reshape(-1, 2)]
