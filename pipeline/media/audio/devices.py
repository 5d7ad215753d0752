"""PortAudio's devices: find one by number or name, and its supported settings."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import DeviceError, UsageError

log = logging.getLogger(__name__)

Kind = Literal["input", "output"]

# Descriptor that C libraries write their messages to.
_STDERR = 2
_redirecting = threading.RLock()

# ALSA appends the card number to the name. It changes when a device is plugged in again.
_CARD = re.compile(r" \(hw:\d+,\d+\)$")
# Names of inputs that hear what the computer plays.
_LOOPBACK = re.compile(
    r"^monitor of |\.monitor$|\bloopback\b|blackhole|soundflower|stereo ?mix|what u hear|cable output", re.IGNORECASE
)


def portaudio() -> Any:
    """The sounddevice module, loaded only if a microphone is used."""
    try:
        with library_messages_logged():
            import sounddevice
    except Exception as error:  # OSError if the library is missing; PortAudioError if it cannot start
        raise DeviceError(
            f"the audio library PortAudio could not be loaded ({error}); install it (Debian, Ubuntu: apt-get install "
            "libportaudio2; Fedora: dnf install portaudio), or give a recording instead of --mic"
        ) from error
    return sounddevice


@contextmanager
def library_messages_logged() -> Iterator[None]:
    """Log at debug level what PortAudio and ALSA write to standard error in the block: it would cover the subtitles.

    Only where Python's own standard error is another descriptor, as in this project's commands. Otherwise messages of
    the program's other threads would be taken, too, so nothing is redirected.
    """
    with _redirecting, tempfile.TemporaryFile() as taken:
        try:
            before = None if _own_stderr() == _STDERR else os.dup(_STDERR)
        except OSError:  # standard error is closed
            before = None
        if before is None:
            yield
            return
        os.dup2(taken.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            os.close(before)
            taken.seek(0)
            for line in taken.read().decode(errors="replace").splitlines():
                log.debug("%s", line)


def _own_stderr() -> int | None:
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or replaced by a stream without a descriptor
        return None


@dataclass(frozen=True)
class AudioDevice:
    """One input or output device."""

    index: int
    name: str
    channels: int
    """Maximum number of channels."""
    rate: int
    """Default sample rate in Hz."""
    default: bool

    def __str__(self) -> str:
        mark = "*" if self.default else " "
        return f"{mark} {self.index:3} {self.name} ({self.channels} channels, {self.rate} Hz)"

    @property
    def lasting_name(self) -> str:
        """The name without the card number, which changes when the device is plugged in again."""
        return _CARD.sub("", self.name)


def devices(kind: Kind) -> list[AudioDevice]:
    """All input devices, including loopback and monitor sources if the platform has them; or all output devices."""
    sounddevice = portaudio()
    try:
        default = sounddevice.query_devices(None, kind)["index"]
    except (ValueError, sounddevice.PortAudioError):  # there is no default device
        default = None
    return [
        AudioDevice(
            index, device["name"], device[f"max_{kind}_channels"], int(device["default_samplerate"]),
            index == default,
        )
        for index, device in enumerate(sounddevice.query_devices())
        if device[f"max_{kind}_channels"] > 0
    ]  # fmt: skip


def list_devices(kind: Kind = "input") -> list[str]:
    """One line per device: number, name, channels and sample rate. A star marks the default device."""
    return [str(device) for device in devices(kind)]


def find_device(asked: str | None, kind: Kind = "input") -> AudioDevice:
    """The device with this number or name, or the only one whose name contains ``asked``. None is the default device."""
    listed = devices(kind)
    if not listed:
        advice = {
            "input": "connect a microphone, or give a recording instead of --mic",
            "output": "connect one, or give --speak-to FILE.wav",
        }
        raise DeviceError(f"no audio {kind} device was found; {advice[kind]}")
    if asked is None:
        matching = [device for device in listed if device.default]
    elif asked.isdecimal():
        matching = [device for device in listed if device.index == int(asked)]
    else:
        wanted = asked.casefold()
        matching = [device for device in listed if wanted in device.name.casefold()]
        exact = [device for device in matching if wanted in (device.name.casefold(), device.lasting_name.casefold())]
        matching = exact[:1] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        what = f"several {kind} devices match {asked!r}; give more of the name, or the number"
    else:
        what = f"there is no default {kind} device" if asked is None else f"no {kind} device matches {asked!r}"
    raise UsageError(f"{what}; --list-devices shows these: {'; '.join(map(str, matching or listed))}")


def loopback_device() -> str:
    """The name of the input that hears what this computer plays.

    PulseAudio and PipeWire: their monitor of the default output, by its name or, where PortAudio has one device for all of their
    inputs, by PULSE_SOURCE, which this sets. Windows: the default output's "[Loopback]", of a PortAudio newer than 19.7.
    Others: a virtual device, such as BlackHole.
    """
    inputs = devices("input")
    if monitors := [device.name for device in inputs if _LOOPBACK.search(device.name)]:
        played = [device.name for device in devices("output") if device.default]
        return next((name for name in monitors if any(output in name for output in played)), monitors[0])
    if through := next((device.name for device in inputs if device.name in ("pulse", "pipewire")), None):
        os.environ.setdefault("PULSE_SOURCE", "@DEFAULT_MONITOR@")
        return through
    advice = {"darwin": "install BlackHole", "win32": "enable Stereo Mix, or install VB-CABLE"}
    raise UsageError(
        f"no input device hears what this computer plays; {advice.get(sys.platform, 'install PulseAudio or PipeWire')}, and "
        "see docs/live.md"
    )


def settings_for(device: AudioDevice, kind: Kind, rate: int) -> tuple[int, int]:
    """Channels and sample rate to open ``device`` with: mono at ``rate`` Hz if supported, otherwise the device's own."""
    sounddevice = portaudio()
    check = getattr(sounddevice, f"check_{kind}_settings")
    default = (device.channels, device.rate)
    for channels, hz in dict.fromkeys([(1, rate), (1, device.rate), (min(2, device.channels), device.rate)]):
        try:
            check(device.index, channels=channels, dtype="int16", samplerate=hz)
        except (ValueError, sounddevice.PortAudioError):
            continue
        return channels, hz
    return default
