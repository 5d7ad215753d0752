"""What every audio source offers."""

from __future__ import annotations

from typing import Protocol

from pipeline.events import Samples

CHUNK_SAMPLES = 1_600
"""Samples in a chunk at most: 100 ms, so that a recording at its own pace arrives as a microphone does."""


class AudioSource(Protocol):
    """Blocking reads, made on a thread of their own."""

    duration_s: float | None
    """Length of the recording, where it is known."""
    overflows: int
    """Times that audio was lost because it was not read in time; 0 where none can be."""

    def read(self) -> Samples | None:
        """Wait for the next chunk, [1..CHUNK_SAMPLES] samples; None at the end of the input.

        Raises:
            AudioError, DeviceError: the input broke.
        """

    def close(self) -> None:
        """End the input and release its device: reads deliver at most what was received before, then None."""
