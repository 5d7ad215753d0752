"""Raw PCM from a stream such as standard input: 16 kHz, mono, 16-bit little-endian."""

from __future__ import annotations

import logging
import struct
from typing import BinaryIO

import numpy as np

from pipeline.audio.pipe import PipeReader
from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.errors import AudioError
from pipeline.events import SAMPLE_RATE, Samples

log = logging.getLogger(__name__)

# How recordings begin that are no raw PCM, and what they are called.
_CONTAINERS = {
    b"RIFF": "WAV",
    b"RF64": "WAV",
    b"RIFX": "WAV",
    b"FORM": "AIFF",
    b"OggS": "Ogg",
    b"fLaC": "FLAC",
    b"ID3": "MP3",
    b"\x1aE\xdf\xa3": "Matroska or WebM",
}
_HEADER_BYTES = 36
# What its last 16 say in a WAV file of raw PCM as it is wanted: PCM, channels, rate; bits.
_AS_EXPECTED = struct.pack("<HHI", 1, 1, SAMPLE_RATE), struct.pack("<H", 16)


class PcmStream:
    """Reads whatever has arrived, as it arrives."""

    duration_s: float | None = None

    def __init__(self, stream: BinaryIO) -> None:
        """Read from the descriptor of ``stream``, past any buffer that it has."""
        self._pipe = PipeReader(stream)
        self._odd = b""
        self._seen = self._closed = False
        self.overflows = 0

    def read(self) -> Samples | None:
        """Up to 100 ms; None when the stream ends.

        Raises:
            AudioError: the stream ended before its first sample, or begins as a recording of another kind does.
        """
        data = self._odd
        # A writer may hand out a header in pieces.
        while len(data) < 2 or (not self._seen and len(data) < _HEADER_BYTES and _may_be_container(data)):
            received = self._pipe.read(2 * CHUNK_SAMPLES - len(data))
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
        if not self._seen:
            _refuse_containers(data)
        self._seen = True
        even = len(data) // 2 * 2
        self._odd = data[even:]
        return np.frombuffer(data[:even], "<i2").astype(np.int16)

    def close(self) -> None:
        """End the reading; a read in progress returns None."""
        self._closed = True
        self._pipe.close()


def _may_be_container(data: bytes) -> bool:
    return any(mark.startswith(data[: len(mark)]) for mark in _CONTAINERS)


def _refuse_containers(data: bytes) -> None:
    """Raise AudioError where ``data`` begins a recording, which would be heard as noise, or at another speed.

    A WAV file that holds just what is expected may pass: its header's 44 bytes are as good as silent.
    """
    kind = next((kind for mark, kind in _CONTAINERS.items() if data.startswith(mark)), None)
    if kind is not None and (data[20:28], data[34:36]) != _AS_EXPECTED:
        raise AudioError(
            f"standard input begins as {kind} does; expected raw 16 kHz mono 16-bit little-endian PCM: give the file's "
            f"path, or convert it with: ffmpeg -i - -f s16le -ac 1 -ar {SAMPLE_RATE} -"
        )
