"""Where the language changes inside a segment: people take turns faster than the pauses that end a segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ..events import SAMPLE_RATE, Samples, SpeechSegment
from .recognizer import LanguageDetector, Recognizer

Detect = Callable[[Samples], Mapping[str, float]]
"""The probability of each language that may be spoken; empty if it is unknown."""

# The language is detected between pauses of this length.
_PAUSE_S = 0.25
# A language this many times as probable as each other is certain.
_CERTAIN = 20.0
# A shorter stretch has no draft until its language is certain: a draft in the wrong language is nonsense.
_LEAST_S = 1.0
# A stretch whose language is not certain is detected again once it is this much longer.
_LONGER_S = 0.4
# A pause is softer than this share of the range between the softest and the loudest sound, or this far below the loudest.
_SOFT = 0.35
_RANGE_DB = 32.0
FRAME_S = 0.02


class LanguageSegmenter:
    """Divides the segments of a stream, those in progress too, where the language changes in a pause."""

    def __init__(self, detect: Detect | None) -> None:
        """``detect``: None: segments stay whole."""
        self._detect = detect
        self._segment = -1
        self._begin = 0  # the first sample of the last part of the segment
        self._known: dict[int, tuple[int, str | None]] = {}  # start of a stretch → its end when detected, language
        self.unsure = False
        """Whether a stretch has begun at the end of the segment that may be in another language."""

    @classmethod
    def told_by(cls, recognizer: Recognizer | None) -> LanguageSegmenter:
        """A segmenter for the languages that a recogniser can detect; None: one language is spoken, and segments stay whole."""
        return cls(recognizer.detect if isinstance(recognizer, LanguageDetector) else None)

    def parts(self, segment: SpeechSegment) -> list[SpeechSegment]:
        """The parts of a segment, each in one language, which is that of the part if it is certain.

        Of a segment that has grown since the last call, only the part that was the last one then, which may be divided now.
        """
        if self._detect is None:
            return [segment]
        if segment.id != self._segment:
            self._segment, self._begin = segment.id, segment.start_sample
            self._known.clear()
        start, first, self.unsure = segment.start_sample, self._begin, False
        ranges = [(first + begin, first + end) for begin, end in stretches(segment.samples[first - start :])]
        parts: list[SpeechSegment] = []
        language: str | None = None
        before = first
        for begin, end in ranges if len(ranges) > 1 else ():
            detected = self._language(segment.samples[begin - start : end - start], begin)
            if detected is not None and language not in (None, detected):
                part = _between(segment, self._begin, (before + begin) // 2)
                parts.append(replace(part, forced_cut=False, speech_end_sample=before, language=language))
                self._begin += len(part.samples)
            language = detected or language
            self.unsure = detected is None and end - begin < _LEAST_S * SAMPLE_RATE
            before = end
        last_part = _between(segment, self._begin, start + len(segment.samples))
        return [*parts, replace(last_part, language=language)]

    def _language(self, samples: Samples, begin: int) -> str | None:
        """The language of a stretch, if it is certain. ``begin``: its first sample's number in the stream."""
        assert self._detect is not None
        length, language = self._known.get(begin, (0, None))
        if language is None and (not length or len(samples) - length >= _LONGER_S * SAMPLE_RATE):
            language = certain(self._detect(samples))
            self._known[begin] = len(samples), language
        return language


def divided_by_language(languages: LanguageSegmenter, segment: SpeechSegment) -> list[SpeechSegment]:
    """The parts of a segment; the silence before its speech tells nothing of languages and belongs to the first part."""
    speech = segment.speech
    silence = len(segment.samples) - len(speech)
    first, *others = languages.parts(replace(segment, start_sample=segment.start_sample + silence, samples=speech))
    if first.start_sample == segment.start_sample + silence:
        samples = segment.samples[: silence + len(first.samples)]
        first = replace(first, start_sample=segment.start_sample, samples=samples)
    return [first, *others]


def certain(probabilities: Mapping[str, float]) -> str | None:
    """The language that is far more probable than each other; None if none is."""
    second, best = sorted([0.0, 0.0, *probabilities.values()])[-2:]
    return max(probabilities, key=probabilities.__getitem__) if best > _CERTAIN * second else None


def stretches(samples: Samples) -> list[tuple[int, int]]:
    """Sound between pauses: the first sample of each stretch, and the one after its last."""
    level_db = levels_db(samples)
    if not len(level_db):
        return []
    soft_db, loud_db = np.percentile(level_db, [5, 95])
    loud = np.flatnonzero(level_db > max(loud_db - _RANGE_DB, soft_db + _SOFT * (loud_db - soft_db)))
    groups = np.split(loud, np.flatnonzero(np.diff(loud) * FRAME_S > _PAUSE_S) + 1)
    size = round(FRAME_S * SAMPLE_RATE)
    return [(int(group[0]) * size, (int(group[-1]) + 1) * size) for group in groups if len(group)]


def levels_db(samples: Samples) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """The level of each whole frame [n] of 20 ms, in dB relative to full scale."""
    length = round(FRAME_S * SAMPLE_RATE)
    frames = samples[: len(samples) // length * length].reshape(-1, length).astype(np.float32) / 32768.0
    return np.asarray(10 * np.log10(np.square(frames).mean(axis=1) + 1e-12), np.float32)


def _between(segment: SpeechSegment, begin: int, end: int) -> SpeechSegment:
    """The part of a segment between two samples of the stream."""
    start = segment.start_sample
    return replace(segment, start_sample=begin, samples=segment.samples[begin - start : end - start])
