"""Input devices as PortAudio lists them: found by number or name, and what they can record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipeline.errors import DeviceError, UsageError
from pipeline.events import SAMPLE_RATE

# ALSA puts the card's number behind the name; it changes when a device is plugged in again.
_CARD = re.compile(r" \(hw:\d+,\d+\)$")


def portaudio() -> Any:
    """The sounddevice module; loaded only when a microphone is asked for.

    Raises:
        DeviceError: PortAudio cannot be loaded.
    """
    try:
        import sounddevice
    except Exception as error:  # OSError without the library; its own PortAudioError where it cannot start
        raise DeviceError(
            f"the audio library PortAudio could not be loaded ({error}); install it (Debian, Ubuntu: apt-get install "
            "libportaudio2; Fedora: dnf install portaudio), or give a recording instead of --mic"
        ) from error
    return sounddevice


@dataclass(frozen=True)
class InputDevice:
    """One input device."""

    index: int
    name: str
    channels: int
    """Channels that it can record."""
    rate: int
    """Its own sample rate, in Hz."""
    default: bool

    def __str__(self) -> str:
        mark = "*" if self.default else " "
        return f"{mark} {self.index:3} {self.name} ({self.channels} channels, {self.rate} Hz)"

    @property
    def lasting_name(self) -> str:
        """The name without what changes when it is plugged in again."""
        return _CARD.sub("", self.name)


def input_devices() -> list[InputDevice]:
    """All input devices, loopback and monitor sources among them where the platform offers them.

    Raises:
        DeviceError: PortAudio cannot be loaded.
    """
    sounddevice = portaudio()
    try:
        default = sounddevice.query_devices(None, "input")["index"]
    except (ValueError, sounddevice.PortAudioError):  # there is none
        default = None
    return [
        InputDevice(
            index, device["name"], device["max_input_channels"], int(device["default_samplerate"]),
            index == default,
        )
        for index, device in enumerate(sounddevice.query_devices())
        if device["max_input_channels"] > 0
    ]  # fmt: skip


def list_devices() -> list[str]:
    """One line an input device: its number, name, channels and sample rate; the default one is marked with a star.

    Raises:
        DeviceError: PortAudio cannot be loaded.
    """
    return [str(device) for device in input_devices()]


def find_device(asked: str | None) -> InputDevice:
    """The device with this number, this name, or the only one whose name contains ``asked``; None is the default one.

    Raises:
        UsageError: no device fits, or several do.
        DeviceError: no PortAudio, or no input device at all.
    """
    known = input_devices()
    if not known:
        raise DeviceError("no audio input device was found; connect a microphone, or give a recording instead of --mic")
    if asked is None:
        fitting = [device for device in known if device.default]
    elif asked.isdecimal():
        fitting = [device for device in known if device.index == int(asked)]
    else:
        wanted = asked.casefold()
        fitting = [device for device in known if wanted in device.name.casefold()]
        exact = [device for device in fitting if wanted in (device.name.casefold(), device.lasting_name.casefold())]
        fitting = exact[:1] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        what = f"several input devices fit {asked!r}; give more of the name, or the number"
    else:
        what = "no input device is the default one" if asked is None else f"no input device fits {asked!r}"
    raise UsageError(f"{what}; --list-devices shows these: {'; '.join(map(str, fitting or known))}")


def recording_settings(device: InputDevice) -> tuple[int, int]:
    """Channels and sample rate to open ``device`` with: what is wanted inside (mono, 16 kHz), else what it has."""
    sounddevice = portaudio()
    own = (device.channels, device.rate)
    for channels, rate in dict.fromkeys([(1, SAMPLE_RATE), (1, device.rate), (min(2, device.channels), device.rate)]):
        try:
            sounddevice.check_input_settings(device.index, channels=channels, dtype="int16", samplerate=rate)
        except (ValueError, sounddevice.PortAudioError):
            continue
        return channels, rate
    return own
