"""Cut whole recordings into segments of speech, and group these into windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pipeline.asr.context import fits
from pipeline.events import Samples, SpeechSegment
from pipeline.vad.detector import SpeechDetector
from pipeline.vad.endpointing import Endpointer
from pipeline.vad.options import VadConfig

PACK_MS = 28_000
"""Milliseconds of speech in a window: Whisper's 30 s less its padding."""


def segments_of(samples: Samples, config: VadConfig) -> list[SpeechSegment]:
    """Return the segments that the VAD stage would emit."""
    detector, endpointer = SpeechDetector(config), Endpointer(config)
    segments: list[SpeechSegment] = []
    for frames in (detector.push(samples), detector.flush()):
        for frame, decision in frames:
            for segment in endpointer.push(frame, *decision):
                segments.append(dataclasses.replace(segment, heard_sample=detector.heard_samples))
    return segments + endpointer.flush()


def packs(segments: Sequence[SpeechSegment]) -> Iterator[list[SpeechSegment]]:
    """Group consecutive segments into windows of at most ``PACK_MS``."""
    pack: list[SpeechSegment] = []
    for segment in segments:
        if pack and not fits(pack, segment, PACK_MS):
            yield pack
            pack = []
        pack.append(segment)
    if pack:
        yield pack
