"""Raw PCM from a stream such as standard input: 16 kHz, mono, 16-bit little-endian."""

from __future__ import annotations

import logging
from typing import BinaryIO

import numpy as np

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.errors import AudioError
from pipeline.events import Samples

log = logging.getLogger(__name__)


class PcmStream:
    """Reads whatever has arrived, as it arrives."""

    duration_s: float | None = None

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._odd = b""
        self._seen = self._closed = False

    def read(self) -> Samples | None:
        """Up to 100 ms; None when the stream ends.

        Raises:
            AudioError: the stream ended before its first sample.
        """
        if self._closed:
            return None
        # read1 returns what a pipe holds instead of waiting until the chunk is full.
        read = getattr(self._stream, "read1", self._stream.read)
        data = self._odd + read(2 * CHUNK_SAMPLES - len(self._odd))
        while len(data) == 1 and (more := read(1)):
            data += more
        if len(data) < 2:
            if data:
                log.warning("the PCM stream ended within a sample; its last byte is ignored")
            if not self._seen:
                raise AudioError("standard input held no audio; pipe in raw 16 kHz mono 16-bit little-endian PCM")
            return None
        self._seen = True
        even = len(data) // 2 * 2
        self._odd = data[even:]
        return np.frombuffer(data[:even], "<i2").astype(np.int16)

    def close(self) -> None:
        self._closed = True
