"""The events of a run that are no text: of its source, its load, and of languages that are lost. Times are those of ``pipeline.events``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoadChanged:
    """The stages fell behind a live source, or caught up; see ``pipeline.core.run.overload`` for the measures taken."""

    level: int
    """0: as configured; 1: speech in progress has no drafts."""
    lag_s: float


@dataclass(frozen=True)
class AudioLost:
    """Audio was lost: the device was not read in time, or the backlog was full."""

    at_s: float
    lost_s: float
    """0 if the device does not report how much was lost."""
    reason: str


@dataclass(frozen=True)
class InputLevel:
    """How loud a device records: once at its start, and again when it is too loud."""

    at_s: float
    device: str
    level_dbfs: float
    """RMS level of the last 2.5 s; -90 at the least."""
    clipped: float = 0.0
    """Share of their samples that are at full scale, 0 to 1: more than 0.001 is heard as distortion."""
    silent: bool = False
    """Nothing was recorded, not even noise: the device is muted, or nothing is connected to it."""


@dataclass(frozen=True)
class DeviceLost:
    """The microphone stopped delivering audio. Silence replaces its audio until it is back."""

    at_s: float
    device: str
    reason: str


@dataclass(frozen=True)
class DeviceBack:
    """The microphone, or another one of the same name, delivers audio again."""

    at_s: float
    device: str
    away_s: float


@dataclass(frozen=True)
class Paused:
    """Listening is paused. Silence replaces the audio until ``Resumed``."""

    at_s: float


@dataclass(frozen=True)
class Resumed:
    at_s: float


@dataclass(frozen=True)
class TranslationLost:
    """The translation into one language failed, or fell too far behind in a live run. The other languages go on."""

    language: str
    reason: str


SourceNotice = AudioLost | InputLevel | DeviceLost | DeviceBack | Paused | Resumed
"""An event of a live source. It reaches the reader at once, ahead of text still being translated."""

Notice = SourceNotice | LoadChanged | TranslationLost
"""Information about the run, not text. A sink may ignore it."""
