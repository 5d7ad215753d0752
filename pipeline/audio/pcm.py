"""Raw PCM from a stream such as standard input: 16 kHz, mono, 16-bit little-endian."""

from __future__ import annotations

import logging
import os
import select
from typing import BinaryIO

import numpy as np

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.errors import AudioError
from pipeline.events import Samples

log = logging.getLogger(__name__)

# How soon a read that waits for a silent writer notices ``close``.
_POLL_S = 0.1


class PcmStream:
    """Reads whatever has arrived, as it arrives."""

    duration_s: float | None = None

    def __init__(self, stream: BinaryIO) -> None:
        """Read from the descriptor of ``stream``, past any buffer that it has."""
        self._stream = stream
        self._odd = b""
        self._seen = self._closed = False
        self.overflows = 0

    def read(self) -> Samples | None:
        """Up to 100 ms; None when the stream ends.

        Raises:
            AudioError: the stream ended before its first sample.
        """
        data = self._odd
        while len(data) < 2:
            received = self._receive(2 * CHUNK_SAMPLES - len(data))
            if not received:
                break
            data += received
        if self._closed:
            return None
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

    def _receive(self, count: int) -> bytes:
        """Wait for up to ``count`` bytes; none at the end of the stream, or once closed."""
        while not self._closed:
            if select.select([self._stream], [], [], _POLL_S)[0]:
                return os.read(self._stream.fileno(), count)
        return b""

    def close(self) -> None:
        """End the reading; a read in progress returns None."""
        self._closed = True
