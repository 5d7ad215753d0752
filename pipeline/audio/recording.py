"""Recordings in any container and codec that PyAV reads, resampled as they stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.errors import AudioError, UsageError
from pipeline.events import SAMPLE_RATE, Samples

log = logging.getLogger(__name__)


class Recording:
    """The first audio stream of a file. Memory does not depend on the file's length."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: no such file.
            AudioError: not audio, or without an audio stream.
        """
        self.path = path
        try:
            with path.open("rb"):
                pass
            self._container = av.open(str(path), metadata_errors="replace")
        except FileNotFoundError:
            raise UsageError(f"no such file: {path}; give the path of a recording, - for raw PCM, or --mic") from None
        except IsADirectoryError:
            raise UsageError(f"{path} is a folder; give the path of a recording") from None
        except PermissionError:
            raise UsageError(f"{path} may not be read; check its permissions") from None
        except (av.error.FFmpegError, OSError) as error:
            raise AudioError(
                f"{path} is not audio that can be read ({_reason(error)}); give a recording such as wav, mp3, m4a"
            ) from error
        if not self._container.streams.audio:
            self._container.close()
            raise AudioError(f"{path} has no audio stream; give a recording with sound")
        self._stream = self._container.streams.audio[0]
        length = self._container.duration
        self.duration_s = length / av.time_base if length and length > 0 else None
        self._chunks = self._decode()
        self._closed = False
        self.overflows = 0

    def read(self) -> Samples | None:
        """The next up to 100 ms; None at the end."""
        return None if self._closed else next(self._chunks, None)

    def close(self) -> None:
        """End the reading. The file itself is closed by the thread that reads, or with this object."""
        self._closed = True

    def _decode(self) -> Iterator[Samples]:
        resampler, resampled = None, None
        rest: Samples = np.zeros(0, np.int16)
        total = 0
        with self._container:
            for frame in self._frames():
                kind = frame and (frame.format.name, frame.layout.name, frame.sample_rate)
                parts: list[AudioFrame] = []
                if kind != resampled and resampler is not None:
                    # The end, or a recording put together from others: another rate, another number of channels.
                    parts += resampler.resample(None)
                    resampler = None
                if frame is not None:
                    resampler = resampler or AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
                    parts += resampler.resample(frame)
                resampled = kind
                for part in parts:
                    rest = np.concatenate([rest, part.to_ndarray().reshape(-1)])
                    total += part.samples
                whole = len(rest) // CHUNK_SAMPLES * CHUNK_SAMPLES
                for start in range(0, whole, CHUNK_SAMPLES):
                    yield rest[start : start + CHUNK_SAMPLES].copy()
                rest = rest[whole:]
        if len(rest):
            yield rest
        if not total:
            raise AudioError(f"{self.path} holds no audio: not one sample could be decoded; check the file")

    def _frames(self) -> Iterator[AudioFrame | None]:
        """Decoded frames, then None to drain the resampler. Damaged packets are skipped with a warning."""
        damaged = 0
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
                yield from packet.decode()
            except StopIteration:
                break
            except av.error.EOFError:
                break
            except av.error.FFmpegError as error:
                damaged += 1
                if damaged == 1:
                    log.warning("%s is damaged in places (%s); what can be read is used", self.path, _reason(error))
                if damaged > 1000:
                    raise AudioError(
                        f"{self.path} is too damaged to go on ({_reason(error)}); check the file"
                    ) from error
        yield None


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)
