"""The segments before a segment, after which it is recognised. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..events import SAMPLE_RATE, SpeechSegment, Transcript

# Longest silence between two segments in a window: enough for the recogniser to hear a full stop.
_GAP_SAMPLES = SAMPLE_RATE * 3 // 10


@dataclass(frozen=True, eq=False)
class HeardSegment:
    """A segment and the text recognised in it."""

    segment: SpeechSegment
    text: str


class Context:
    """The last segments, as far as they belong to what is being said.

    A recogniser that hears the beginning of a sentence hears its rest better, and writes a full stop only where the
    sentence ends.
    """

    def __init__(self, limit_ms: int, long_pause_ms: int) -> None:
        """``limit_ms``: speech kept at most. A pause of ``long_pause_ms`` ends what is being said."""
        self._limit_ms, self._long_pause_ms = limit_ms, long_pause_ms
        self._heard: list[HeardSegment] = []
        self._language = ""

    def before(self, segment: SpeechSegment, most_ms: int) -> tuple[HeardSegment, ...]:
        """The segments to recognise together with ``segment``, oldest first; ``most_ms`` of audio with it at most."""
        if self._heard:
            pause_s = segment.start_s - self._heard[-1].segment.speech_end_s
            if 1000 * pause_s >= self._long_pause_ms:
                self._heard.clear()
        heard = list(self._heard)
        while heard and not fits([each.segment for each in heard], segment, most_ms):
            del heard[0]
        return tuple(heard)

    def push(self, segment: SpeechSegment, transcript: Transcript) -> None:
        """``segment`` was recognised as ``transcript``. A noise changes nothing."""
        if transcript.is_noise:
            return
        if not transcript.is_sure or transcript.language != self._language:
            self._heard.clear()
        self._language = transcript.language
        if transcript.is_sure:
            self._heard.append(HeardSegment(segment, transcript.text))
        segments = [each.segment for each in self._heard]
        while segments and not fits(segments[:-1], segments[-1], self._limit_ms):
            del segments[0], self._heard[0]

    def followed_by(self, more: Sequence[tuple[SpeechSegment, Transcript]]) -> Context:
        """A copy that has taken more."""
        copy = Context(self._limit_ms, self._long_pause_ms)
        copy._heard, copy._language = list(self._heard), self._language
        for segment, transcript in more:
            copy.push(segment, transcript)
        return copy


def fits(segments: Sequence[SpeechSegment], more: SpeechSegment, limit_ms: int) -> bool:
    """Whether ``more`` also fits into a window of ``limit_ms``."""
    length = sum(len(segment.samples) for segment in (*segments, more)) + sum(gaps((*segments, more)))
    return length * 1000 <= limit_ms * SAMPLE_RATE


def gaps(segments: Sequence[SpeechSegment]) -> list[int]:
    """Samples of silence before each segment but the first: the real pause, at most ``_GAP_SAMPLES``."""
    return [
        min(_GAP_SAMPLES, max(0, second.start_sample - first.start_sample - len(first.samples)))
        for first, second in pairwise(segments)
    ]


def same_audio(before: SpeechSegment, segment: SpeechSegment) -> bool:
    """Whether a segment is still what it was."""
    same = (before.id, before.start_sample) == (segment.id, segment.start_sample)
    return same and np.array_equal(before.samples, segment.samples)
