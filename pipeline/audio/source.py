"""What every audio source offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from pipeline.events import Samples, SourceNotice, mono_int16

CHUNK_SAMPLES = 1_600
"""Samples in a chunk at most: 100 ms, so that a recording at its own pace arrives as a microphone does."""


class AudioSource(Protocol):
    """Blocking reads, made on a thread of their own."""

    duration_s: float | None
    """Length of the recording, where it is known."""

    @property
    def overflows(self) -> int:
        """Times that audio was lost because it was not read in time; 0 where none can be."""

    def read(self) -> Samples | None:
        """Wait for the next chunk, [1..CHUNK_SAMPLES] samples; None at the end of the input.

        Raises:
            AudioError, DeviceError: the input broke.
        """

    def close(self) -> None:
        """End the input and release its device: reads deliver at most what was received before, then None."""


@runtime_checkable
class LiveSource(AudioSource, Protocol):
    """A source that does not wait for its reader, such as a microphone."""

    @property
    def backlog_s(self) -> float:
        """Audio, in seconds, that was heard and not yet read."""

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """Have ``notify`` called, from any thread, with what happens to the source."""


def as_samples(audio: object) -> Samples:
    """``audio`` as int16 samples [n]: such an array, or bytes of them (little-endian), or a view of either.

    Raises:
        ValueError: anything else, and what it is.
    """
    if isinstance(audio, memoryview) and audio.format not in ("B", "b", "c"):  # of other than bytes: its items count
        audio = np.asarray(audio)
    if isinstance(audio, bytes | bytearray | memoryview):
        data = bytes(audio)
        if len(data) % 2:
            raise ValueError(f"expected 16-bit samples; got {len(data)} bytes, an odd number")
        return np.frombuffer(data, "<i2")
    return mono_int16(audio)
