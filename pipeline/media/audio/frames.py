"""Decoded frames of audio: their kind, and their parts."""

from __future__ import annotations

from collections.abc import Iterator

from av.audio.fifo import AudioFifo
from av.audio.frame import AudioFrame

from ...errors import AudioError

LOWEST_RATE, HIGHEST_RATE = 4_000, 384_000
"""Sample rates that are read, in Hz. A header may have any rate: a second at 1 Hz would be a sample."""
# Samples that are resampled at once.
_PIECE = 1 << 15


def pieces(frame: AudioFrame) -> Iterator[AudioFrame]:
    """A decoded frame in parts that are small enough to be resampled.

    Raises:
        AudioError: nobody records at its rate.
    """
    if not LOWEST_RATE <= frame.sample_rate <= HIGHEST_RATE:
        raise AudioError(f"{frame.sample_rate} Hz is no rate of a recording")
    if frame.samples <= _PIECE:
        yield frame
        return
    frame.pts = None  # its parts follow one another
    fifo = AudioFifo()
    fifo.write(frame)
    while (piece := fifo.read(_PIECE, partial=True)) is not None:
        yield piece


def format_of(frame: AudioFrame) -> tuple[str, str, int]:
    """Sample format, layout and rate. A resampler accepts only frames of one kind."""
    return frame.format.name, frame.layout.name, frame.sample_rate
