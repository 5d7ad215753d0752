"""A microphone through sounddevice. PortAudio is loaded only when a microphone is asked for."""

from __future__ import annotations

import logging
import queue
from typing import Any

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from pipeline.errors import DeviceError, UsageError
from pipeline.events import SAMPLE_RATE, Samples

log = logging.getLogger(__name__)

# A working device delivers a block every 20 ms; silence is blocks of zeros, not the absence of blocks.
_STALLED_S = 3.0
# Audio waiting to be read at most. Beyond it the program is not keeping up and says so.
_BACKLOG_BLOCKS = 3_000


def _sounddevice() -> Any:
    try:
        import sounddevice
    except Exception as error:  # OSError without the library; its own PortAudioError where it cannot start
        raise DeviceError(
            f"the audio library PortAudio could not be loaded ({error}); install it (Debian, Ubuntu: apt-get install "
            "libportaudio2; Fedora: dnf install portaudio), or give a recording instead of --mic"
        ) from error
    return sounddevice


def list_devices() -> list[str]:
    """One line an input device: its number, name, channels and sample rate; the default one is marked.

    Raises:
        DeviceError: PortAudio cannot be loaded.
    """
    sounddevice = _sounddevice()
    default = sounddevice.default.device[0]
    return [
        f"{'*' if index == default else ' '} {index:3} {device['name']} "
        f"({device['max_input_channels']} channels, {device['default_samplerate']:.0f} Hz)"
        for index, device in enumerate(sounddevice.query_devices())
        if device["max_input_channels"] > 0
    ]


class Microphone:
    """An input device, by number, by part of its name, or the default one."""

    duration_s: float | None = None

    def __init__(self, device: str | None = None) -> None:
        """Find the device; ``start``, or the first ``read``, begins to listen.

        Raises:
            UsageError: no input device fits ``device``.
            DeviceError: no PortAudio, or no input device at all.
        """
        sounddevice = _sounddevice()
        chosen: int | str | None = int(device) if device is not None and device.isdecimal() else device
        try:
            info = sounddevice.query_devices(chosen, "input")
        except (ValueError, sounddevice.PortAudioError) as error:
            known = list_devices()
            if not known:
                raise DeviceError(
                    "no audio input device was found; connect a microphone, or give a recording instead of --mic"
                ) from error
            asked = "no input device is the default one" if device is None else f"no input device fits {device!r}"
            raise UsageError(f"{asked}; --list-devices shows these: {'; '.join(known)}") from error
        self._blocks: queue.Queue[bytes | None] = queue.Queue()
        self._ended = False
        self.overflows = 0
        """Times that the device or this program lost audio because reading fell behind."""
        self._device = chosen
        # What we wish for, else what the device has.
        self._channels, self._rate = 1, SAMPLE_RATE
        try:
            sounddevice.check_input_settings(chosen, channels=1, dtype="int16", samplerate=SAMPLE_RATE)
        except (ValueError, sounddevice.PortAudioError):
            self._channels, self._rate = min(2, info["max_input_channels"]), int(info["default_samplerate"])
        plain = (self._channels, self._rate) == (1, SAMPLE_RATE)
        self._resampler = None if plain else AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        self._stream: Any = None
        self.name = str(info["name"])

    def start(self) -> None:
        """Begin to listen. Later calls do nothing.

        Raises:
            DeviceError: the device does not open.
        """
        if self._stream is not None:
            return
        sounddevice = _sounddevice()
        try:
            self._stream = sounddevice.RawInputStream(
                samplerate=self._rate,
                blocksize=self._rate // 50,
                device=self._device,
                channels=self._channels,
                dtype="int16",
                callback=self._received,
            )
            self._stream.start()
        except (ValueError, sounddevice.PortAudioError) as error:
            raise DeviceError(
                f"the input device {self.name!r} does not open ({error}); choose another with --device"
            ) from error

    def _received(self, data: Any, frames: int, time: Any, status: Any) -> None:
        if status.input_overflow or self._blocks.qsize() > _BACKLOG_BLOCKS:
            self.overflows += 1
            if self.overflows == 1:
                log.warning("audio from the microphone was lost: this machine does not keep up")
        if self._blocks.qsize() <= _BACKLOG_BLOCKS:
            self._blocks.put(bytes(data))

    def read(self) -> Samples | None:
        """Wait for the next block; None when what was heard before ``close`` has been read.

        Raises:
            DeviceError: the device stopped delivering.
        """
        self.start()
        while True:
            try:
                block = None if self._ended else self._blocks.get(timeout=_STALLED_S)
            except queue.Empty:
                raise DeviceError(
                    f"the microphone has delivered nothing for {_STALLED_S:.0f} s; check that it is connected, or choose another with --device"
                ) from None
            if block is None:
                if self._ended or self._resampler is None:
                    self._ended = True
                    return None
                self._ended = True
                tail = [part.to_ndarray()[0] for part in self._resampler.resample(None)]
                return np.concatenate(tail) if sum(map(len, tail)) else None
            samples: Samples = np.frombuffer(block, np.int16)
            if self._resampler is not None:
                layout = "mono" if self._channels == 1 else "stereo"
                frame = AudioFrame.from_ndarray(samples[None], format="s16", layout=layout)
                frame.sample_rate = self._rate
                samples = np.concatenate(
                    [part.to_ndarray()[0] for part in self._resampler.resample(frame)] or [samples[:0]]
                )
            if len(samples):
                return samples

    def close(self) -> None:
        """Stop listening and release the device: reads deliver what was heard until now, then None. Idempotent."""
        if self._stream is not None:
            self._stream.close(ignore_errors=True)
        self._blocks.put(None)
