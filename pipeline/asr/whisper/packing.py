"""Pack several speech segments into one recogniser window, and assign its words back to them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ...events import SAMPLE_RATE, MissingSpeech, Samples, SpeechSegment, Word
from ..context import gaps

_Timed = TypeVar("_Timed", bound=Word | MissingSpeech)


@dataclass(frozen=True, eq=False)
class Pack:
    """Segments concatenated with short silences between them."""

    segments: tuple[SpeechSegment, ...]
    offsets: tuple[int, ...]
    """Index in ``samples`` at which each segment begins."""
    samples: Samples
    """[n] int16."""


def pack(segments: Sequence[SpeechSegment]) -> Pack:
    """Concatenate segments of one recording, given in order."""
    parts: list[Samples] = []
    offsets: list[int] = []
    at = 0
    for segment, gap in zip(segments, (0, *gaps(segments)), strict=True):
        parts += [np.zeros(gap, np.int16), segment.samples]
        offsets.append(at + gap)
        at += gap + len(segment.samples)
    samples = segments[0].samples if len(segments) == 1 else np.concatenate(parts)
    return Pack(tuple(segments), tuple(offsets), samples)


def unpack(words: Sequence[_Timed], packed: Pack) -> list[list[_Timed]]:
    """The words of each segment, or its stretches without words, with times in the recording.

    Args:
        words: with times in seconds from the pack's first sample. Each goes to the segment that its middle lies in, or
            to the nearest one.
    """
    bounds = [
        (offset / SAMPLE_RATE, (offset + len(segment.samples)) / SAMPLE_RATE)
        for segment, offset in zip(packed.segments, packed.offsets, strict=True)
    ]
    found: list[list[_Timed]] = [[] for _ in bounds]
    at = 0
    for word in words:
        middle = (word.start_s + word.end_s) / 2
        # Segments keep their order: never assign a word to an earlier segment than the word before.
        at = min(range(at, len(bounds)), key=lambda i: max(bounds[i][0] - middle, middle - bounds[i][1], 0.0))
        (start_s, end_s), segment = bounds[at], packed.segments[at]
        shift = segment.start_s - start_s
        times = (shift + min(max(time_s, start_s), end_s) for time_s in (word.start_s, word.end_s))
        found[at].append(replace(word, start_s=next(times), end_s=next(times)))
    return found
