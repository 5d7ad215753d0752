"""The protocols of audio sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

import numpy as np

from .events import Samples, mono_int16
from .notices import SourceNotice

CHUNK_SAMPLES = 1_600
"""Maximum samples in a chunk: 100 ms. A paced recording arrives as evenly as a microphone."""


class Address(str):
    """The address of a stream."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.partition("?")[0].partition("://")[2]).name


class AudioSource(Protocol):
    """A source with blocking reads, which are made on a separate thread."""

    duration_s: float | None
    """Length of the recording; None if unknown."""

    @property
    def overflows(self) -> int:
        """How often audio was lost because it was not read in time; 0 if that cannot happen."""

    def read(self) -> Samples | None:
        """Wait for the next chunk, [1..CHUNK_SAMPLES] samples; None at the end of the input.

        Raises:
            AudioError, DeviceError: the input failed.
        """

    def close(self) -> None:
        """End the input and release its device. Reads deliver at most the audio received before, then None."""


@runtime_checkable
class RecordedSource(AudioSource, Protocol):
    """A recording."""

    @property
    def read_once(self) -> bool:
        """Whether the recording comes through a pipe or from a server, where a read may stall."""
        ...


@runtime_checkable
class LiveSource(AudioSource, Protocol):
    """A source that does not wait for its reader, such as a microphone."""

    @property
    def backlog_s(self) -> float:
        """Seconds of audio recorded and not yet read."""

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """Call ``notify``, from any thread, with each event of the source."""


def as_samples(audio: object) -> Samples:
    """``audio`` as int16 samples [n]. Accepts such an array, its little-endian bytes, or a view of either.

    Raises:
        ValueError: it is anything else; the message says what.
    """
    if isinstance(audio, memoryview) and audio.format not in ("B", "b", "c"):  # a view of an array
        audio = np.asarray(audio)
    if isinstance(audio, bytes | bytearray | memoryview):
        data = bytes(audio)
        if len(data) % 2:
            raise ValueError(f"expected 16-bit samples; got {len(data)} bytes, an odd number")
        return np.frombuffer(data, "<i2")
    return mono_int16(audio)
