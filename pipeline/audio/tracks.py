"""Which of a recording's audio tracks is taken, and why.

In this order: one that can be decoded; one that is not silent; one tagged with the source language; one that is no
commentary or description of the picture; the file's default; the first. Or the one that is asked for by its number.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
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

from pipeline.audio.channels import ChannelResampler, channel_names, kind_of
from pipeline.errors import AudioError, UsageError
from pipeline.languages import is_tag_of
from pipeline.names import escaped

# Dispositions of tracks that are not the main sound: comments and descriptions of it, or a part of it.
_SECONDARY = (
    Disposition.comment
    | Disposition.visual_impaired
    | Disposition.descriptions
    | Disposition.clean_effects
    | Disposition.karaoke
    | Disposition.non_diegetic
)
# Files have it in the title more often than in a disposition.
_SECONDARY_TITLE = re.compile(
    r"comment(ary|aire|o)|kommentar|descripti(on|ve)|described|audiodeskription", re.IGNORECASE
)
_NO_LANGUAGE = {"und", "mul", "mis", "zxx", "qaa"}  # ISO 639-2: undetermined, several, uncoded, none; DVB: as produced
_TITLE_LENGTH = 60
_LISTED = 20
# Whether a track is silent is looked for in its beginning, and where that is silent at places all over the recording.
_BEGINNING_S = 20.0
_PLACES = (0.2, 0.4, 0.6, 0.8, 0.95)
_PLACE_S = 10.0
# A frame of this power, -60 dBFS, is sound. The noise of an input with nothing connected is below; whispering is above.
_SOUND = 1e-6

log = logging.getLogger(__name__)


class Sound(Enum):
    """What was found when looking into a track."""

    HEARD = "heard"
    SILENT = "silent"
    """Or without a packet."""
    BROKEN = "cannot be decoded"
    UNKNOWN = "unknown"
    """Not looked at: the recording can be read once only."""


@dataclass(frozen=True)
class Track:
    """An audio track as its container describes it."""

    number: int
    """From 1, among the audio tracks."""
    language: str | None
    """The tag, as it is."""
    title: str
    layout: str
    """Its channels, such as "5.1(side)"."""
    codec: str
    default: bool
    secondary: bool
    """Commentary, description of the picture, or sound without the speech."""
    decodable: bool
    """There is a decoder for it."""
    channels: tuple[str, ...] = ()
    """Their names; see ``channel_names``."""

    def __str__(self) -> str:
        said = [self.language or "no language", self.layout or self.codec]
        if self.title:
            said.append(f'"{self.title}"')
        said += ["commentary or description"] * self.secondary + ["default"] * self.default
        return f"{self.number} ({', '.join(said)})"


@dataclass(frozen=True)
class Choice:
    """A track and why it was taken, as words that follow "because"."""

    track: Track
    reason: str


def tracks_of(container: InputContainer) -> list[Track]:
    """The audio tracks of a container, in its order."""
    streams = container.streams.audio
    found = [_described(number, stream) for number, stream in enumerate(streams, 1)]
    if sum(track.default for track in found) == len(found):  # as MP4 and Matroska have it where nobody chose
        found = [replace(track, default=False) for track in found]
    return found


def _described(number: int, stream: AudioStream) -> Track:
    metadata = {key.lower(): value for key, value in stream.metadata.items()}
    language, title = metadata.get("language", ""), metadata.get("title", "")
    # Without a decoder PyAV's stream has no codec, and none of its attributes.
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
    """A tag of a file, escaped and not too long."""
    shown = escaped(text.strip())
    return shown if len(shown) <= _TITLE_LENGTH else shown[:_TITLE_LENGTH] + "…"


def asked_for(path: Path, tracks: Sequence[Track], number: int) -> Choice:
    """The track of this number.

    Raises:
        UsageError: there is none.
        AudioError: there is no decoder for it.
    """
    if not 1 <= number <= len(tracks):
        count = "1 audio track" if len(tracks) == 1 else f"{len(tracks)} audio tracks, numbered from 1"
        raise UsageError(f"{path} has {count}; --audio-track {number} is none of: {listed(tracks)}")
    track = tracks[number - 1]
    if not track.decodable:
        others = [other for other in tracks if other.decodable]
        advice = f"choose one of: {listed(others)}" if others else "convert it first"
        raise AudioError(f"audio track {number} of {path} has a codec that is not known; {advice}")
    return Choice(track, "it was asked for")


def choose(tracks: Sequence[Track], sounds: Mapping[int, Sound], language: str | None) -> Choice:
    """The track to take, by the rules above.

    Args:
        sounds: what was found in the tracks, by number; those that it lacks are taken to be heard.
        language: that is spoken; None where that is not known.
    """

    def rank(track: Track) -> tuple[bool, ...]:
        """The lower the better."""
        sound = sounds.get(track.number)
        return (
            not track.decodable or sound is Sound.BROKEN,
            sound is Sound.SILENT,
            not _speaks(track, language),
            track.secondary,
            not track.default,
        )

    best, *others = sorted(tracks, key=rank)
    if not others:
        return Choice(best, "it is the only one")
    of_language = [track for track in tracks if _speaks(track, language)]
    if best in of_language:
        reason = f"it is tagged as the source language, {language}"
        if len(of_language) > 1:
            reason += ", and is the default" if best.default else ", the first of these that can be used"
    else:
        reason = "it is the file's default" if best.default else "it is the first that can be used"
        if language is not None and not of_language:
            reason += f", and none is tagged as the source language, {language}"
    return Choice(best, "; ".join([reason, *_passed_over(best, tracks, sounds)]))


def _passed_over(best: Track, tracks: Sequence[Track], sounds: Mapping[int, Sound]) -> Iterator[str]:
    """What is wrong with tracks that were not taken, and with this one."""
    others = [track for track in tracks if track != best]
    broken = [t.number for t in others if not t.decodable or sounds.get(t.number) is Sound.BROKEN]
    silent = [t.number for t in others if t.number not in broken and sounds.get(t.number) is Sound.SILENT]
    if broken:
        yield f"{_numbers(broken)} cannot be decoded"
    if silent:
        yield f"{_numbers(silent)} {'is' if len(silent) == 1 else 'are'} silent"
    if sounds.get(best.number) is Sound.SILENT:
        yield "nothing was heard in it where it was looked into"


def _numbers(numbers: Sequence[int]) -> str:
    return f"track {numbers[0]}" if len(numbers) == 1 else f"tracks {', '.join(map(str, numbers))}"


def _speaks(track: Track, language: str | None) -> bool:
    return language is not None and track.language is not None and is_tag_of(track.language, language)


def listed(tracks: Sequence[Track]) -> str:
    """Tracks for a message."""
    more = [f"and {len(tracks) - _LISTED} more"] if len(tracks) > _LISTED else []
    return ", ".join([*map(str, tracks[:_LISTED]), *more])


def note(path: Path, tracks: Sequence[Track], choice: Choice) -> str:
    """Which of several tracks was taken, in a line for people."""
    others = [track for track in tracks if track != choice.track]
    return (
        f"{escaped(path.name)}: audio track {choice.track}, one of {len(tracks)}, is used because {choice.reason}; "
        f"choose another with --audio-track N: {listed(others)}"
    )


def look_into(path: Path, tracks: Sequence[Track]) -> dict[int, Sound]:
    """What is in the tracks, by number. Reads a bounded part of the file: a track's first 20 s, and where they are silent
    10 s each at five places."""
    with av.open(str(path.absolute()), metadata_errors="replace") as container:
        streams = container.streams.audio
        looks = {streams[t.number - 1].index: _Look(streams[t.number - 1], t.number) for t in tracks if t.decodable}
        for look in looks.values():
            channel_names(look.stream.codec_context)
        _look(container, looks, _BEGINNING_S)
        length = container.duration
        for place in _PLACES if length and length > _BEGINNING_S * av.time_base else ():
            if all(look.heard for look in looks.values()):
                break
            try:
                container.seek((container.start_time or 0) + round(place * (length or 0)))
            except av.error.FFmpegError:
                break  # not in this format
            _look(container, looks, _PLACE_S)
    return {look.number: look.sound for look in looks.values()}


class _Look:
    """What was found so far in one track."""

    def __init__(self, stream: AudioStream, number: int) -> None:
        self.stream, self.number = stream, number
        self.heard = False
        self._packets = self._frames = 0
        self._kind: tuple[str, str, int] | None = None
        self._resampler: ChannelResampler | None = None

    @property
    def sound(self) -> Sound:
        if self.heard:
            return Sound.HEARD
        return Sound.BROKEN if self._packets and not self._frames else Sound.SILENT

    def hear(self, packet: Packet[Stream]) -> None:
        self._packets += packet.size > 0
        try:
            for frame in packet.decode():
                assert isinstance(frame, AudioFrame)
                self._frames += 1
                self.heard = self.heard or self._level(frame) >= _SOUND
        except av.error.FFmpegError as error:
            log.debug("audio track %d: %s", self.number, error)

    def _level(self, frame: AudioFrame) -> float:
        """The power of the loudest channel; full scale is 1."""
        kind = kind_of(frame)
        if self._resampler is None or kind != self._kind:
            self._kind, self._resampler = kind, ChannelResampler(frame.layout)
        samples = self._resampler.push(frame)
        return float(np.max(np.mean(samples**2, axis=0))) if len(samples) else 0.0


def _look(container: InputContainer, looks: Mapping[int, _Look], seconds: float) -> None:
    """Read on for so long, or until all tracks were heard."""
    began_s: float | None = None
    try:
        for packet in container.demux([look.stream for look in looks.values()]):
            look = looks[packet.stream.index]
            if not look.heard:
                look.hear(packet)
            if all(look.heard for look in looks.values()):
                return
            if packet.dts is None:
                continue
            at_s = float(packet.dts * packet.time_base)
            began_s = at_s if began_s is None else min(at_s, began_s)
            if at_s > began_s + seconds:
                return
    except av.error.FFmpegError as error:
        log.debug("looking into the audio tracks: %s", error)
