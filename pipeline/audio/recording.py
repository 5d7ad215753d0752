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
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Disposition, Stream

from pipeline.audio.channels import MonoMixer, kind_of
from pipeline.audio.pipe import PipeReader, relayed
from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.audio.tracks import asked_for, choose, look_into, note, tracks_of
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
# Containers of films, which do not always name the channels; a mixer that does not writes WAV.
_FILMS = {"matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "mxf"}
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # as a Path, which keeps one of its slashes


class Recording:
    """One audio track of a file, mono, at the file's times. Memory does not depend on the file's length."""

    def __init__(self, path: Path, *, language: str | None = None, track: int | None = None) -> None:
        """Open the file, and choose among its audio tracks if it has several (see ``pipeline.audio.tracks``).

        Args:
            language: that is spoken; a track with this tag is taken.
            track: take this one, counted from 1 among the audio tracks.

        Raises:
            UsageError: no such file, or no such track.
            AudioError: not audio, or without an audio track that can be decoded.
        """
        self.path = path
        self.track_note: str | None = None
        """Which of several tracks is read, and why, in a line for people; None where there is one."""
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
        try:
            self._stream, self._channels = self._chosen(language, track)
        except BaseException:
            self._container.close()
            raise
        self._begins_s = (self._container.start_time or 0) / av.time_base  # on the file's clock
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

    def _chosen(self, language: str | None, number: int | None) -> tuple[AudioStream, tuple[str, ...]]:
        """The stream, and the names of its channels."""
        tracks = tracks_of(self._container)
        if not tracks:
            raise AudioError(f"{self.path} has no audio stream; give a recording with sound")
        if not any(track.decodable for track in tracks):
            raise AudioError(f"{self.path} has audio of a codec that is not known; convert it first")
        if number is not None:
            choice = asked_for(self.path, tracks, number)
        else:
            # A pipe cannot be read twice: there the tags decide.
            sounds = look_into(self.path, tracks) if len(tracks) > 1 and self._pipe is None else {}
            choice = choose(tracks, sounds, language)
        if len(tracks) > 1:
            self.track_note = note(self.path, tracks, choice)
            log.info("%s", self.track_note)
        return self._container.streams.audio[choice.track.number - 1], choice.track.channels

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
            telling = self._tells_length()
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
        # In Matroska the length reaches from 0 on the file's clock, which may begin later.
        end_s = total / SAMPLE_RATE + max(0.0, self._begins_s)
        if telling and self.duration_s is not None and self.duration_s - end_s > _CUT_OFF_S:
            self.damage.append(f"cut off after {end_s:.0f} s of {self.duration_s:.0f} s")
            log.warning(
                "%s ends after %.0f s, but says it has %.0f s: it was cut off", self.path, end_s, self.duration_s
            )

    def _tells_length(self) -> bool:
        """Whether the length that the file gives is its audio's: that of a film is its picture's, but a cover has none."""
        others = [stream for stream in self._container.streams if stream.index != self._stream.index]
        only = all(stream.type == "attachment" or _is_cover(stream) for stream in others)
        return only and self._container.format.name in _TELLING

    def _pieces(self) -> Iterator[Samples]:
        """What was decoded, mono at 16 kHz, and silence where the file's times leave a gap."""
        mixer: MonoMixer | None = None
        mixed: tuple[str, str, int] | None = None
        film = self._container.format.name in _FILMS or not all(map(_is_cover, self._container.streams.video))
        position = 0  # samples
        for frame in self._frames():
            gap = self._gap(frame, position + (mixer.pending if mixer else 0))
            pieces: list[Iterator[Samples]] = []
            if mixer is not None and (frame is None or kind_of(frame) != mixed or gap):
                # The end, a gap, or a recording put together from others: another rate, another number of channels.
                pieces.append(mixer.drain())
            pieces.append(_silence(gap))
            if frame is not None:
                if mixer is None or kind_of(frame) != mixed:
                    mixer, mixed = MonoMixer(frame.layout, names=self._channels, film=film), kind_of(frame)
                pieces.append(self._mixed(mixer, frame))
            for samples in chain.from_iterable(pieces):
                position += len(samples)
                yield samples

    def _mixed(self, mixer: MonoMixer, frame: AudioFrame) -> Iterator[Samples]:
        try:
            yield from mixer.push(frame)
        except av.error.FFmpegError as error:
            raise AudioError(
                f"{self.path} has audio that cannot be resampled ({', '.join(map(str, kind_of(frame)))}: {_reason(error)}); "
                "give one of a usual rate with at most 64 channels"
            ) from error

    def _gap(self, frame: AudioFrame | None, position: int) -> int:
        """Samples that are missing between ``position`` and the time that the file gives for ``frame``.

        A time after the file's end is a mistake in the file, and no gap; so is one beyond reason where the file has no length.
        """
        if frame is None or frame.time is None:
            return 0
        at_s = frame.time - self._begins_s
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


def _is_cover(stream: Stream) -> bool:
    return bool(stream.disposition & Disposition.attached_pic)


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
