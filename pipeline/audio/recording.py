"""Recordings in any container and codec that PyAV reads, resampled as they stream."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.container import InputContainer

from pipeline.audio.pipe import PipeReader, relayed
from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.errors import AudioError, UsageError
from pipeline.events import SAMPLE_RATE, Samples

log = logging.getLogger(__name__)

# Audio may begin after the picture, pause, or have damaged parts: what is this much later than what came before it
# follows silence, and cues keep the file's times. Less is jitter of the times.
_GAP_S = 0.3
# Nor does what streams write, which give no length, pause for longer: such a time is a mistake.
_LONGEST_GAP_S = 3600.0
# Containers that say how long their audio is; of others FFmpeg guesses.
_TELLING = {"matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "flac"}
_CUT_OFF_S = 2.0
_MIXED_CHANNELS = 8
"""Up to so many channels FFmpeg always knows how to mix."""
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # as a Path, which keeps one of its slashes


class Recording:
    """The first audio stream of a file, at the file's times. Memory does not depend on the file's length."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: no such file.
            AudioError: not audio, or without an audio stream.
        """
        self.path = path
        self._pipe: PipeReader | None = None
        try:
            self._container = self._opened()
        except FileNotFoundError:
            if _URL.match(str(path)):
                raise UsageError(
                    f"{path} looks like a URL, which is not read; pipe it in: ffmpeg -i URL -f s16le -ac 1 "
                    f"-ar {SAMPLE_RATE} - | python -m pipeline.live -"
                ) from None
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
        self.damage: list[str] = []
        """What was found to be missing so far, for a person; it has been logged."""

    def _opened(self) -> InputContainer:
        if not self.path.is_fifo():
            return av.open(str(self.path.absolute()), metadata_errors="replace")
        self._pipe = PipeReader(self.path.open("rb", buffering=0))
        descriptor = relayed(self._pipe)
        # FFmpeg reads the beginning now, and no signal gets it out of that: this thread stays one that can be interrupted.
        with ThreadPoolExecutor(1, "opening") as pool:
            try:
                return pool.submit(av.open, f"/dev/fd/{descriptor}", metadata_errors="replace").result()
            except BaseException:
                self._pipe.close()
                raise
            finally:
                pool.submit(os.close, descriptor)  # after it

    def read(self) -> Samples | None:
        """The next up to 100 ms; None at the end."""
        return None if self._closed else next(self._chunks, None)

    def close(self) -> None:
        """End the reading. The file itself is closed by the thread that reads, or with this object."""
        self._closed = True
        if self._pipe is not None:
            self._pipe.close()

    def _decode(self) -> Iterator[Samples]:
        rest: Samples = np.zeros(0, np.int16)
        total = 0
        with self._container:
            # The length of a film is the picture's.
            telling = len(self._container.streams) == 1 and self._container.format.name in _TELLING
            for piece in self._pieces():
                total += len(piece)
                rest = np.concatenate([rest, piece])
                whole = len(rest) // CHUNK_SAMPLES * CHUNK_SAMPLES
                for start in range(0, whole, CHUNK_SAMPLES):
                    yield rest[start : start + CHUNK_SAMPLES].copy()
                rest = rest[whole:]
        if len(rest):
            yield rest
        if self._closed:
            return
        if not total:
            raise AudioError(f"{self.path} holds no audio: not one sample could be decoded; check the file")
        read_s = total / SAMPLE_RATE
        if telling and self.duration_s is not None and self.duration_s - read_s > _CUT_OFF_S:
            self.damage.append(f"cut off after {read_s:.0f} s of {self.duration_s:.0f} s")
            log.warning(
                "%s ends after %.0f s, but says it has %.0f s: it was cut off", self.path, read_s, self.duration_s
            )

    def _pieces(self) -> Iterator[Samples]:
        """What was decoded, at 16 kHz, and silence where the file's times leave a gap."""
        resampler, resampled = None, None
        position = 0  # samples
        for frame in self._frames():
            kind = frame and _kind(frame)
            gap = self._gap(frame, position)
            parts: list[AudioFrame] = []
            if resampler is not None and (kind != resampled or gap):
                # The end, a gap, or a recording put together from others: another rate, another number of channels.
                parts += resampler.resample(None)
                resampler = None
            for samples in chain(map(_samples, parts), _silence(gap)):
                position += len(samples)
                yield samples
            if frame is not None:
                resampler = resampler or AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
                for samples in map(_samples, self._resampled(resampler, frame)):
                    position += len(samples)
                    yield samples
            resampled = kind

    def _resampled(self, resampler: AudioResampler, frame: AudioFrame) -> list[AudioFrame]:
        try:
            return resampler.resample(_averaged(frame))
        except av.error.FFmpegError as error:
            raise AudioError(
                f"{self.path} has audio that cannot be resampled ({', '.join(map(str, _kind(frame)))}: {_reason(error)}); "
                "give one of a usual rate with at most 8 channels"
            ) from error

    def _gap(self, frame: AudioFrame | None, position: int) -> int:
        """Samples that are missing between ``position`` and the time that the file gives for ``frame``.

        A time after the file's end is a mistake in the file, and no gap; so is one beyond reason where the file has no length.
        """
        if frame is None or frame.time is None:
            return 0
        at_s = frame.time - (self._container.start_time or 0) / av.time_base
        missing_s = at_s - position / SAMPLE_RATE
        mistaken = missing_s > _LONGEST_GAP_S if self.duration_s is None else at_s > self.duration_s
        if missing_s < _GAP_S or mistaken:
            return 0
        return round(missing_s * SAMPLE_RATE)

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
                    self.damage.append("damaged in places")
                    log.warning("%s is damaged in places (%s); what can be read is used", self.path, _reason(error))
                if damaged > 1000:
                    raise AudioError(
                        f"{self.path} is too damaged to go on ({_reason(error)}); check the file"
                    ) from error
                packets = self._container.demux(self._stream)  # one that has raised has ended
        yield None


def _kind(frame: AudioFrame) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


def _averaged(frame: AudioFrame) -> AudioFrame:
    """A mixer's many channels as one: FFmpeg has layouts, and so a way to mix them, for some numbers of channels only."""
    channels = frame.layout.nb_channels
    known = channels <= _MIXED_CHANNELS or not frame.layout.name.endswith(" channels")
    if known or frame.format.is_planar:  # PyAV 18 reads behind the planes of so many channels
        return frame
    samples = frame.to_ndarray()
    mixed = samples.reshape(-1, channels).mean(axis=1)
    if samples.dtype.kind != "f":
        mixed = np.rint(mixed)
    mono = AudioFrame.from_ndarray(mixed.astype(samples.dtype)[None], frame.format.name, "mono")
    mono.sample_rate = frame.sample_rate
    return mono


def _samples(part: AudioFrame) -> Samples:
    return np.asarray(part.to_ndarray(), np.int16).reshape(-1)


def _silence(count: int) -> Iterator[Samples]:
    """``count`` samples of it, a chunk at a time."""
    for start in range(0, count, CHUNK_SAMPLES):
        yield np.zeros(min(CHUNK_SAMPLES, count - start), np.int16)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)


def read_audio(path: Path) -> Samples:
    """A whole recording of any format, [n] int16 at 16 kHz mono.

    Raises:
        UsageError, AudioError: not a recording that can be read.
    """
    chunks = [np.zeros(0, np.int16)]
    with closing(Recording(path)) as recording:
        while (chunk := recording.read()) is not None:
            chunks.append(chunk)
    return np.concatenate(chunks)
