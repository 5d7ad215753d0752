"""Recordings in any container and codec that PyAV reads, decoded and resampled while streaming."""

from __future__ import annotations

import logging
import os
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition, Stream

from ...core import CHUNK_SAMPLES, SAMPLE_RATE, Address, Samples
from ...errors import AudioError, UsageError
from .channels import MonoMixer
from .frames import HIGHEST_RATE, LOWEST_RATE, format_of
from .tracks import (
    SELF_CONTAINED,
    Sound,
    choose_track,
    open_container,
    open_input,
    probe_tracks,
    selection_note,
    track_by_number,
    tracks_of,
)

if TYPE_CHECKING:
    from .pipe import GrowingFile, PipeReader

log = logging.getLogger(__name__)

# Audio may begin after the picture, pause, or have damaged parts. A gap of at least this length between frames is
# filled with silence, so that cues keep the file's times. A shorter one is jitter.
_GAP_S = 0.3
# A longer gap is a wrong timestamp. This applies to files without a duration, as recorded from streams.
_LONGEST_GAP_S = 3600.0
# Containers that store the duration; for others, FFmpeg estimates it from the size and the bit rate.
_DURATION_FORMATS = {
    "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "flac", "aiff", "ape", "au", "flv", "rm", "tta", "wav", "wv",
}  # fmt: skip
_MAYBE_DURATION_FORMATS = {"asf", "mp3"}
# A WAV file that was written to a pipe has this length or more, or none, in its header.
_PIPED_BYTES = 0x7FFF0000
# A duration that needs no more of the file's size than this is an estimate, perhaps.
_MOST_ESTIMATED = 1.05
# A recording that ends this much before its stored duration was cut off.
_CUT_OFF_S = 2.0
# Containers used for films, in which channels may be unnamed. Unnamed channels in WAV come from mixing consoles.
_FILM_FORMATS = {"matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "mxf"}
# The header of a WAV file that is still being written has a length of nothing, or of a part.
_UNFINISHED = {"ignore_length": "1"}


class Recording:
    """One audio track of a file, as mono with the file's times. Memory use does not depend on the file's length.

    Nothing else is opened: neither files nor addresses that the file names.
    """

    _ADVICE = "give a recording such as wav, mp3, m4a, not a playlist"

    def __init__(
        self,
        path: Path | Address,
        *,
        language: str | None = None,
        track: int | None = None,
        growing: bool = False,
        speaker: int | None = None,
    ) -> None:
        """Open the file and, if it has several audio tracks, choose one (see ``pipeline.media.audio.tracks``).

        Args:
            path: a file, or in a subclass the address of a stream.
            language: the spoken language; prefer a track tagged with it.
            track: use this audio track, counted from 1.
            growing: the file is still being written. Its end is waited for.
            speaker: take this channel alone, counted from 0, without what others say in it.

        Raises:
            UsageError: no such file, or no such track.
            AudioError: not audio, or no audio track can be decoded.
        """
        self.path = path
        self.track_note: str | None = None
        """A message that says which of several tracks is read, and why; None if there is only one."""
        self._pipe: PipeReader | GrowingFile | None = None
        self._growing, self._speaker = growing, speaker
        try:
            self._container = self._open_container()
        except FileNotFoundError:
            raise UsageError(f"no such file: {path}; give the path of a recording, - for raw PCM, or --mic") from None
        except IsADirectoryError:
            raise UsageError(f"{path} is a folder; give the path of a recording") from None
        except PermissionError:
            raise UsageError(f"{path} may not be read; check its permissions") from None
        except (av.error.FFmpegError, OSError) as error:
            advice = "record as WAV, MPEG-TS, Matroska, Ogg or MP3" if growing else self._ADVICE
            raise AudioError(f"{path} is not audio that can be read ({_reason(error)}); {advice}") from error
        try:
            self._stream, self._channels = self._choose_stream(language, track)
        except BaseException:
            self._container.close()
            raise
        self._start_s = (self._container.start_time or 0) / av.time_base  # start time in the file's timestamps
        length = self._container.duration
        self.duration_s = length / av.time_base if length and length > 0 else None
        self._chunks = self._decode()
        self._closed = False
        self.overflows = 0
        self.damage: list[str] = []
        """Messages about missing parts found so far; they have been logged."""

    def _open_container(self) -> InputContainer:
        assert isinstance(self.path, Path)
        if self._growing:
            from .pipe import GrowingFile

            self._pipe = GrowingFile(self.path)
            return open_input(self._pipe, options=_UNFINISHED | SELF_CONTAINED)
        if not self.path.is_fifo():
            return open_container(self.path)
        from .pipe import PipeReader, relayed

        self._pipe = PipeReader(self.path.open("rb", buffering=0))
        descriptor = relayed(self._pipe)
        # av.open reads the beginning of the pipe, and signals do not interrupt it. Run it on another thread, so that
        # this thread stays interruptible.
        with ThreadPoolExecutor(1, "opening") as pool:
            try:
                return pool.submit(open_container, Path(f"/dev/fd/{descriptor}")).result()
            except BaseException:
                self._pipe.close()
                raise
            finally:
                pool.submit(os.close, descriptor)  # after av.open has returned

    def _choose_stream(self, language: str | None, number: int | None) -> tuple[AudioStream, tuple[str, ...]]:
        """Choose the stream; return it with the names of its channels."""
        tracks = tracks_of(self._container)
        if not tracks:
            raise AudioError(f"{self.path} has no audio stream; give a recording with sound")
        if not any(track.decodable for track in tracks):
            raise AudioError(f"{self.path} has audio with an unknown codec; convert it first")
        if number is not None:
            choice = track_by_number(self.path, tracks, number)
        else:
            # What is read once has its tracks chosen by tags alone.
            sounds: dict[int, Sound] = {}
            if len(tracks) > 1 and not self.read_once and isinstance(self.path, Path):
                sounds = probe_tracks(self.path, tracks)
            choice = choose_track(tracks, sounds, language)
        if len(tracks) > 1:
            self.track_note = selection_note(self.path, tracks, choice)
            log.info("%s", self.track_note)
        return self._container.streams.audio[choice.track.number - 1], choice.track.channels

    @property
    def channels(self) -> int:
        """How many channels the audio track has."""
        return len(self._channels)

    @property
    def read_once(self) -> bool:
        """Whether the recording cannot be opened a second time, and a read may wait for others: a pipe, or a stream."""
        return self._pipe is not None

    def read(self) -> Samples | None:
        """Up to 100 ms of audio; None at the end."""
        return None if self._closed else next(self._chunks, None)

    def close(self) -> None:
        """Stop reading. The reading thread closes the file, or it closes with this object."""
        self._closed = True
        if self._pipe is not None:
            self._pipe.close()

    def _decode(self) -> Iterator[Samples]:
        held_back: Samples = np.zeros(0, np.int16)
        total = 0
        with self._container:
            promised_s = self._promised_s()
            for piece in self._decoded_samples():
                total += len(piece)
                held_back = np.concatenate([held_back, piece])
                whole = len(held_back) // CHUNK_SAMPLES * CHUNK_SAMPLES
                for start in range(0, whole, CHUNK_SAMPLES):
                    yield held_back[start : start + CHUNK_SAMPLES].copy()
                held_back = held_back[whole:]
        if len(held_back):
            yield held_back
        if self._closed:
            return
        if not total:
            raise AudioError(f"{self.path} holds no audio: no sample could be decoded; check the file")
        # In Matroska, the duration counts from timestamp 0, even if the file begins later.
        end_s = total / SAMPLE_RATE + max(0.0, self._start_s)
        if promised_s - end_s > _CUT_OFF_S:
            self.damage.append(f"cut off after {end_s:.0f} s of {promised_s:.0f} s")
            log.warning(
                "%s ends after %.0f s, but its stored duration is %.0f s: it was cut off", self.path, end_s, promised_s
            )

    def _promised_s(self) -> float:
        """The duration of the audio that the file stores; 0 if it stores none, or that of a picture."""
        others = [stream for stream in self._container.streams if stream.index != self._stream.index]
        if not all(stream.type == "attachment" or _is_cover(stream) for stream in others):
            return 0.0
        name, duration_s = self._container.format.name, self.duration_s or 0.0
        if name == "wav" and not self.read_once:  # FFmpeg says what is there
            with suppress(wave.Error, EOFError, OSError), wave.open(str(self.path)) as header:
                size = header.getnframes() * header.getnchannels() * header.getsampwidth()
                return header.getnframes() / header.getframerate() if size < _PIPED_BYTES else 0.0
        estimated = duration_s * (self._stream.bit_rate or 0) / 8 <= _MOST_ESTIMATED * self._container.size
        stored = name in _DURATION_FORMATS or (name in _MAYBE_DURATION_FORMATS and not estimated)
        return duration_s if stored else 0.0

    def _decoded_samples(self) -> Iterator[Samples]:
        """Decoded audio, mono at 16 kHz, with silence for gaps in the file's times."""
        mixer: MonoMixer | None = None
        mixed: tuple[str, str, int] | None = None
        film = self._container.format.name in _FILM_FORMATS or not all(map(_is_cover, self._container.streams.video))
        position = 0  # samples
        for frame in self._frames():
            gap = self._gap_samples(frame, position + (mixer.pending if mixer else 0))
            pieces: list[Iterator[Samples]] = []
            if mixer is not None and (frame is None or format_of(frame) != mixed or gap):
                # The end, a gap, or another format: concatenated recordings may change rate or channels.
                pieces.append(mixer.drain())
            pieces.append(_silence(gap))
            if frame is not None:
                if mixer is None or format_of(frame) != mixed:
                    mixer, mixed = self._mixer(frame, film=film), format_of(frame)
                pieces.append(self._mix(mixer, frame))
            for samples in chain.from_iterable(pieces):
                position += len(samples)
                yield samples

    def _mixer(self, frame: AudioFrame, *, film: bool) -> MonoMixer:
        return MonoMixer(frame.layout, names=self._channels, film=film, speaker=self._speaker)

    def _mix(self, mixer: MonoMixer, frame: AudioFrame) -> Iterator[Samples]:
        try:
            yield from mixer.push(frame)
        except (av.error.FFmpegError, AudioError) as error:
            raise AudioError(
                f"{self.path} has audio that cannot be resampled ({', '.join(map(str, format_of(frame)))}: {_reason(error)}); "
                f"give a recording of {LOWEST_RATE} to {HIGHEST_RATE} Hz and at most 64 channels"
            ) from error

    def _gap_samples(self, frame: AudioFrame | None, position: int) -> int:
        """Samples missing between ``position`` and the timestamp of ``frame``.

        A timestamp after the file's end is wrong and makes no gap. Without a duration, neither does a gap above
        ``_LONGEST_GAP_S``.
        """
        if frame is None or frame.time is None:
            return 0
        at_s = frame.time - self._start_s
        missing_s = at_s - position / SAMPLE_RATE
        wrong_time = missing_s > _LONGEST_GAP_S if self.duration_s is None else at_s > self.duration_s
        if missing_s < _GAP_S or wrong_time:
            return 0
        return round(missing_s * SAMPLE_RATE)

    def _frames(self) -> Iterator[AudioFrame | None]:
        """Yield decoded frames, then None to drain the resampler. Damaged packets are skipped with a warning."""
        damaged = 0
        packets = self._packets()
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
                self._note_damage(error, damaged)
                packets = self._packets()  # a generator that has raised has ended
        yield None

    def _packets(self) -> Iterator[Packet[AudioStream]]:
        return self._container.demux(self._stream)

    def _note_damage(self, error: av.error.FFmpegError, damaged: int) -> None:
        """``damaged`` packets could not be read so far.

        Raises:
            AudioError: there are too many.
        """
        if damaged == 1:
            self.damage.append("damaged in places")
            log.warning("%s is damaged in places (%s); the readable parts are used", self.path, _reason(error))
        if damaged > 1000:
            raise AudioError(f"{self.path} is too damaged to continue ({_reason(error)}); check the file") from error


class PcmRecording(Recording):
    """Raw PCM in a file: 16 kHz, mono, 16-bit little-endian."""

    def _open_container(self) -> InputContainer:
        assert isinstance(self.path, Path)
        return open_input(str(self.path.absolute()), format="s16le", options={"sample_rate": str(SAMPLE_RATE)})


def _is_cover(stream: Stream) -> bool:
    return bool(stream.disposition & Disposition.attached_pic)


def _silence(count: int) -> Iterator[Samples]:
    """Yield ``count`` samples of silence in chunks."""
    for start in range(0, count, CHUNK_SAMPLES):
        yield np.zeros(min(CHUNK_SAMPLES, count - start), np.int16)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)


def read_audio(path: Path) -> Samples:
    """Read a whole recording of any format: [n] int16, mono at 16 kHz.

    Raises:
        UsageError, AudioError: the recording cannot be read.
    """
    chunks = [np.zeros(0, np.int16)]
    with closing(Recording(path)) as recording:
        while (chunk := recording.read()) is not None:
            chunks.append(chunk)
    return np.concatenate(chunks)
