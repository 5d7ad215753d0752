"""Raw PCM from a stream such as standard input: 16 kHz, mono, 16-bit little-endian."""

from __future__ import annotations

import logging
import struct
from typing import BinaryIO

import numpy as np

from ...core import CHUNK_SAMPLES, SAMPLE_RATE, Samples
from ...errors import AudioError
from .pipe import PipeReader

log = logging.getLogger(__name__)

# First bytes of container formats, which are not raw PCM, and their names.
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
# Header fields of a WAV file with the expected PCM: format, channels and rate (bytes 20 to 27); bits (bytes 34 and 35).
_EXPECTED_FORMAT = struct.pack("<HHI", 1, 1, SAMPLE_RATE), struct.pack("<H", 16)


class PcmStream:
    """Reads raw PCM as it arrives."""

    duration_s: float | None = None

    def __init__(self, stream: BinaryIO) -> None:
        """Read from the descriptor of ``stream``, bypassing its buffer."""
        self._pipe = PipeReader(stream)
        self._odd_byte = b""
        self._has_audio = self._closed = False
        self.overflows = 0

    def read(self) -> Samples | None:
        """Up to 100 ms of audio; None at the end of the stream."""
        data = self._odd_byte
        # A header may arrive in several pieces.
        while len(data) < 2 or (not self._has_audio and len(data) < _HEADER_BYTES and _may_be_container(data)):
            received = self._pipe.read(2 * CHUNK_SAMPLES - len(data))
            if not received:
                break
            data += received
        if self._closed:
            return None
        if len(data) < 2:
            if data:
                log.warning("the PCM stream ended within a sample; its last byte is ignored")
            if not self._has_audio:
                raise AudioError("standard input held no audio; pipe in raw 16 kHz mono 16-bit little-endian PCM")
            return None
        if not self._has_audio:
            _refuse_containers(data)
        self._has_audio = True
        even = len(data) // 2 * 2
        self._odd_byte = data[even:]
        return np.frombuffer(data[:even], "<i2").astype(np.int16)

    def close(self) -> None:
        """Stop reading. A read in progress returns None."""
        self._closed = True
        self._pipe.close()


def _may_be_container(data: bytes) -> bool:
    return any(mark.startswith(data[: len(mark)]) for mark in _CONTAINERS)


def _refuse_containers(data: bytes) -> None:
    """Raise AudioError if ``data`` begins like a container format, which would sound like noise or at the wrong speed.

    A WAV file with exactly the expected PCM is accepted: its 44 header bytes are practically silent.
    """
    kind = next((kind for mark, kind in _CONTAINERS.items() if data.startswith(mark)), None)
    if kind is not None and (data[20:28], data[34:36]) != _EXPECTED_FORMAT:
        raise AudioError(
            f"standard input begins like {kind}; expected raw 16 kHz mono 16-bit little-endian PCM: give the file's "
            f"path, or convert it with: ffmpeg -i - -f s16le -ac 1 -ar {SAMPLE_RATE} -"
        )
