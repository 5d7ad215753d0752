"""Choose one of a recording's audio tracks, and explain the choice.

Either the track with the requested number or, in order of preference: a track that can be decoded; that is not silent;
that is tagged with the source language; that is not a commentary or a description of the picture; the file's default;
the first.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition, Stream

from ...core import Address
from ...errors import AudioError, UsageError
from ...languages import is_tag_of
from ...names import escaped
from .channels import ChannelResampler, channel_names
from .frames import format_of, pieces

# Dispositions of tracks that are not the main sound: commentary, descriptions, or only a part of it.
_SECONDARY = (
    Disposition.comment
    | Disposition.visual_impaired
    | Disposition.descriptions
    | Disposition.clean_effects
    | Disposition.karaoke
    | Disposition.non_diegetic
)
# More files say so in the title than in a disposition.
_SECONDARY_TITLE = re.compile(
    r"comment(ary|aire|o)|kommentar|descripti(on|ve)|described|audiodeskription", re.IGNORECASE
)
# ISO 639-2: undetermined, multiple, uncoded, none; DVB: original audio
_NO_LANGUAGE = {"und", "mul", "mis", "zxx", "qaa"}
_TITLE_LENGTH = 60
_MAX_LISTED = 20
# Bytes of tags that are not UTF-8 become surrogates, which are shown escaped. PyAV 19 does so and has no option for it.
_TAGS = {} if int(av.__version__.partition(".")[0]) >= 19 else {"metadata_errors": "surrogateescape"}
open_input: Callable[..., InputContainer] = functools.partial(av.open, mode="r", **_TAGS)
# Containers that hold all of their audio. Others name further files or addresses, which FFmpeg opens: playlists (hls, dash,
# concat), sdp, image sequences. References in mov files are not followed by default (enable_drefs).
SELF_CONTAINED = {
    "format_whitelist": (
        "aa,aac,ac3,aiff,amr,amrnb,amrwb,ape,aptx,aptx_hd,asf,au,avi,caf,dsf,dss,dts,dtshd,dv,eac3,flac,flv,g722,g729,gsm,gxf,iff,"
        "ilbc,ircam,lc3,loas,matroska,mlp,mov,mp3,mpc,mpc8,mpeg,mpegts,mxf,nistsphere,nut,ogg,oma,qcp,qoa,rm,sbc,shn,sln,sox,"
        "spdif,tak,truehd,tta,voc,vqf,w64,wav,webm,wsd,wtv,wv,xwma"
    ),
    "protocol_whitelist": "file",
}
# To detect silence, read the beginning of a track and, if that is silent, passages at these parts of its length.
_BEGINNING_S = 20.0
_PROBE_POSITIONS = (0.2, 0.4, 0.6, 0.8, 0.95)
_PASSAGE_S = 10.0
# Power of a frame with sound (-60 dBFS). The noise of an unconnected input is below, whispering is above.
_SOUND_POWER = 1e-6

log = logging.getLogger(__name__)


class Sound(Enum):
    """The result of probing a track."""

    HEARD = "heard"
    SILENT = "silent"
    """A silent track, or one without packets."""
    BROKEN = "cannot be decoded"
    UNKNOWN = "unknown"
    """Not probed, because the recording can be read only once."""


@dataclass(frozen=True)
class Track:
    """An audio track as its container describes it."""

    number: int
    """Counted from 1 among the audio tracks."""
    language: str | None
    """The language tag, unchanged."""
    title: str
    layout: str
    """The channel layout, such as "5.1(side)"."""
    codec: str
    default: bool
    secondary: bool
    """Commentary, description of the picture, or sound without speech."""
    decodable: bool
    """True if there is a decoder for it."""
    channels: tuple[str, ...] = ()
    """The names of the channels; see ``channel_names``."""

    def __str__(self) -> str:
        parts = [self.language or "no language", self.layout or self.codec]
        if self.title:
            parts.append(f'"{self.title}"')
        parts += ["commentary or description"] * self.secondary + ["default"] * self.default
        return f"{self.number} ({', '.join(parts)})"


@dataclass(frozen=True)
class ChosenTrack:
    """A track, and the reason for choosing it, to follow the word "because"."""

    track: Track
    reason: str


def tracks_of(container: InputContainer) -> list[Track]:
    """The audio tracks of a container, in order."""
    streams = container.streams.audio
    tracks = [_describe(number, stream) for number, stream in enumerate(streams, 1)]
    if sum(track.default for track in tracks) == len(tracks):  # MP4 and Matroska: no default was chosen
        tracks = [replace(track, default=False) for track in tracks]
    return tracks


def _describe(number: int, stream: AudioStream) -> Track:
    metadata = {key.lower(): value for key, value in stream.metadata.items()}
    language, title = metadata.get("language", ""), metadata.get("title", "")
    # Without a decoder, PyAV's stream has no codec context.
    context = stream.codec_context
    channels = channel_names(context) if context else ()
    layout = "mono" if len(channels) == 1 else context.layout.name if context else ""
    return Track(
        number,
        None if language.lower() in _NO_LANGUAGE else _printable(language) or None,
        _printable(title),
        layout,
        context.name if context else "unknown codec",
        bool(stream.disposition & Disposition.default),
        bool(stream.disposition & _SECONDARY) or _SECONDARY_TITLE.search(title) is not None,
        context is not None,
        channels,
    )


def _printable(text: str) -> str:
    """A tag of the file, escaped and shortened."""
    shown = escaped(text.strip())
    return shown if len(shown) <= _TITLE_LENGTH else shown[:_TITLE_LENGTH] + "…"


def track_by_number(path: Path | Address, tracks: Sequence[Track], number: int) -> ChosenTrack:
    """The track with this number."""
    if not 1 <= number <= len(tracks):
        count = "1 track" if len(tracks) == 1 else f"{len(tracks)} tracks"
        raise UsageError(f"{path} has no audio track {number}; choose from its {count}: {listed(tracks)}")
    track = tracks[number - 1]
    if not track.decodable:
        others = [other for other in tracks if other.decodable]
        advice = f"choose one of: {listed(others)}" if others else "convert it first"
        raise AudioError(f"audio track {number} of {path} has an unknown codec; {advice}")
    return ChosenTrack(track, "it was requested")


def choose_track(tracks: Sequence[Track], sounds: Mapping[int, Sound], language: str | None) -> ChosenTrack:
    """Choose a track by the rules of this module.

    Args:
        sounds: results of probing, by track number. A missing track counts as heard.
        language: the spoken language; None if unknown.
    """

    def rank(track: Track) -> tuple[bool, ...]:
        """Sort key; the best track is first."""
        sound = sounds.get(track.number)
        return (
            not track.decodable or sound is Sound.BROKEN,
            sound is Sound.SILENT,
            not _is_tagged(track, language),
            track.secondary,
            not track.default,
        )

    best, *others = sorted(tracks, key=rank)
    if not others:
        return ChosenTrack(best, "it is the only one")
    of_language = [track for track in tracks if _is_tagged(track, language)]
    if best in of_language:
        reason = f"it is tagged as the source language, {language}"
        if len(of_language) > 1:
            reason += ", and is the default" if best.default else ", the first of these that can be used"
    else:
        reason = "it is the file's default" if best.default else "it is the first that can be used"
        if language is not None and not of_language:
            reason += f", and none is tagged as the source language, {language}"
    return ChosenTrack(best, "; ".join([reason, *_problems(best, tracks, sounds)]))


def _problems(best: Track, tracks: Sequence[Track], sounds: Mapping[int, Sound]) -> Iterator[str]:
    """Problems of the tracks that were not chosen, and of the chosen one."""
    others = [track for track in tracks if track != best]
    broken = [t.number for t in others if not t.decodable or sounds.get(t.number) is Sound.BROKEN]
    silent = [t.number for t in others if t.number not in broken and sounds.get(t.number) is Sound.SILENT]
    if broken:
        yield f"{_format_numbers(broken)} cannot be decoded"
    if silent:
        yield f"{_format_numbers(silent)} {'is' if len(silent) == 1 else 'are'} silent"
    if sounds.get(best.number) is Sound.SILENT:
        yield "it was silent in all passages that were read"


def _format_numbers(numbers: Sequence[int]) -> str:
    return f"track {numbers[0]}" if len(numbers) == 1 else f"tracks {', '.join(map(str, numbers))}"


def _is_tagged(track: Track, language: str | None) -> bool:
    return language is not None and track.language is not None and is_tag_of(track.language, language)


def listed(tracks: Sequence[Track]) -> str:
    """Format tracks for a message."""
    more = [f"and {len(tracks) - _MAX_LISTED} more"] if len(tracks) > _MAX_LISTED else []
    return ", ".join([*map(str, tracks[:_MAX_LISTED]), *more])


def selection_note(path: Path | Address, tracks: Sequence[Track], choice: ChosenTrack) -> str:
    """A message that says which of several tracks is used, and why."""
    others = [track for track in tracks if track != choice.track]
    return (
        f"{escaped(path.name)}: audio track {choice.track}, one of {len(tracks)}, is used because {choice.reason}; "
        f"choose another with --audio-track N: {listed(others)}"
    )


def open_container(path: Path) -> InputContainer:
    """Open a file with FFmpeg."""
    return open_input(str(path.absolute()), options=SELF_CONTAINED)


def probe_tracks(path: Path, tracks: Sequence[Track]) -> dict[int, Sound]:
    """Probe the tracks; return the results by track number.

    Reads a bounded part of the file: the first 20 s of a track and, if they are silent, 10 s at each of five positions.
    """
    with open_container(path) as container:
        streams = container.streams.audio
        probes = {
            streams[t.number - 1].index: _TrackProbe(streams[t.number - 1], t.number) for t in tracks if t.decodable
        }
        for probe in probes.values():
            channel_names(probe.stream.codec_context)
        _read_passage(container, probes, _BEGINNING_S)
        length = container.duration
        for position in _PROBE_POSITIONS if length and length > _BEGINNING_S * av.time_base else ():
            if all(probe.heard for probe in probes.values()):
                break
            try:
                container.seek((container.start_time or 0) + round(position * (length or 0)))
            except av.error.FFmpegError:
                break  # the format does not support seeking
            _read_passage(container, probes, _PASSAGE_S)
    return {probe.number: probe.sound for probe in probes.values()}


class _TrackProbe:
    """The results so far of probing one track."""

    def __init__(self, stream: AudioStream, number: int) -> None:
        self.stream, self.number = stream, number
        self.heard = False
        self.decoded_s = 0.0
        self._packets = self._frames = 0
        self._kind: tuple[str, str, int] | None = None
        self._resampler: ChannelResampler | None = None

    @property
    def sound(self) -> Sound:
        if self.heard:
            return Sound.HEARD
        return Sound.BROKEN if self._packets and not self._frames else Sound.SILENT

    def hear(self, packet: Packet[Stream]) -> None:
        """Decode a packet, and note whether it has sound."""
        self._packets += packet.size > 0
        try:
            for frame in packet.decode():
                assert isinstance(frame, AudioFrame)
                self._frames += 1
                self.decoded_s += frame.samples / max(1, frame.sample_rate)
                self.heard = self.heard or self._level(frame) >= _SOUND_POWER
        except (av.error.FFmpegError, AudioError) as error:
            log.debug("audio track %d: %s", self.number, error)

    def _level(self, frame: AudioFrame) -> float:
        """Power of the loudest channel; full scale is 1."""
        kind = format_of(frame)
        if self._resampler is None or kind != self._kind:
            self._kind, self._resampler = kind, ChannelResampler(frame.layout)
        parts = (self._resampler.push(piece) for piece in pieces(frame))
        return max((float(np.max(np.mean(part**2, axis=0))) for part in parts if len(part)), default=0.0)


def _read_passage(container: InputContainer, probes: Mapping[int, _TrackProbe], seconds: float) -> None:
    """Read ``seconds`` of the file, or until sound was found in all tracks."""
    began_s: float | None = None
    most_s = {probe: probe.decoded_s + 2 * seconds for probe in probes.values()}  # also if the times are wrong
    try:
        for packet in container.demux([probe.stream for probe in probes.values()]):
            probe = probes[packet.stream.index]
            if not probe.heard:
                probe.hear(packet)
            if all(probe.heard for probe in probes.values()) or probe.decoded_s > most_s[probe]:
                return
            if packet.dts is None:
                continue
            at_s = float(packet.dts * packet.time_base)
            began_s = at_s if began_s is None else min(at_s, began_s)
            if at_s > began_s + seconds:
                return
    except av.error.FFmpegError as error:
        log.debug("probing the audio tracks: %s", error)
