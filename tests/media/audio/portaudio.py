"""A replacement for PortAudio and its hardware: devices that come and go, and deliver the audio of a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipeline.core.notices import InputLevel, SourceNotice
from pipeline.events import Samples
from pipeline.media.audio.spool import SpooledSource
from tests.conftest import HANG_S


@contextmanager
def ended(source: SpooledSource) -> Iterator[Any]:
    """Close the source and end its thread, which would look for devices of later tests otherwise."""
    try:
        yield source
    finally:
        source.close()
        if source._thread is not None:
            source._thread.join(HANG_S)


def all_but_levels(take: Callable[[SourceNotice], object]) -> Callable[[SourceNotice], None]:
    """A listener that ``take``s what is not about the level."""

    def listener(notice: SourceNotice) -> None:
        if not isinstance(notice, InputLevel):
            take(notice)

    return listener


class FakePortAudio:
    """Replaces the sounddevice module. Like PortAudio, it finds new devices only when restarted."""

    class PortAudioError(Exception):
        pass

    def __init__(self, *devices: tuple[str, int, int], default: int = 0, kind: str = "input") -> None:
        """``devices`` are (name, channels, sample rate), all of one kind; rate 0 accepts any rate."""
        self.plugged, self.kind = list(devices), kind
        self.default_index = default
        self.streams: list[FakeStream] = []
        self._initialize()

    def _terminate(self) -> None:
        self.listed = []

    def _initialize(self) -> None:
        self.listed = list(self.plugged)

    def query_devices(self, device: object = None, kind: str | None = None) -> Any:
        rows = [
            {"index": index, "name": name, "max_input_channels": 0, "max_output_channels": 0}
            | {f"max_{self.kind}_channels": channels, "default_samplerate": float(rate or 44_100)}
            for index, (name, channels, rate) in enumerate(self.listed)
        ]
        if kind is None:
            return rows
        if not 0 <= self.default_index < len(rows):
            raise self.PortAudioError("Error querying device -1")
        return rows[self.default_index]

    def check_input_settings(self, device: int, channels: int, dtype: str, samplerate: int) -> None:
        _, most, rate = self.listed[device]
        if rate and (channels, samplerate) != (most, rate):
            raise self.PortAudioError("Invalid sample rate")

    check_output_settings = check_input_settings

    def RawInputStream(self, *, device: int, **settings: Any) -> FakeStream:  # noqa: N802
        if self.listed[device] not in self.plugged:
            raise self.PortAudioError("Device unavailable")
        self.streams.append(FakeStream(device, **settings))
        return self.streams[-1]

    RawOutputStream = RawInputStream

    def unplug(self) -> None:
        """Unplug all devices, which ends their streams."""
        self.plugged = []
        for stream in self.streams:
            stream.active = False


class Talkative(FakePortAudio):
    """Writes to descriptor 2 whatever it does, as the C libraries below PortAudio do."""

    def _initialize(self) -> None:
        os.write(2, b"ALSA lib pcm.c:2666: Unknown PCM cards.pcm.rear\n")
        super()._initialize()

    def RawInputStream(self, **settings: Any) -> FakeStream:  # noqa: N802
        os.write(2, b"jack server is not running\n")
        return super().RawInputStream(**settings)


class FakeStream:
    """An open stream. The test calls its callback."""

    def __init__(self, device: int, *, channels: int, samplerate: int, callback: Any, **_: Any) -> None:
        self.device, self.channels, self.samplerate, self.callback = device, channels, samplerate, callback
        self.active = self.closed = False
        self.recorded_s = 100.0  # on the device's clock

    def start(self) -> None:
        self.active = True

    def close(self, ignore_errors: bool = True) -> None:
        self.active, self.closed = False, True

    def stop(self) -> None:
        self.active = False

    def play(self, frames: int) -> Samples:
        """What the device plays next: [n, channels]."""
        out = bytearray(2 * self.channels * frames)
        self.callback(memoryview(out), frames, None, None)
        return np.frombuffer(out, np.int16).reshape(-1, self.channels)

    def hear(self, samples: Samples, overflow: bool = False, lost_s: float = 0.0, says_when: bool = True) -> None:
        """Deliver blocks of 20 ms: ``samples`` are [n] or [n, channels]. ``lost_s`` were lost before the first."""
        self.recorded_s += lost_s
        frames = samples.reshape(len(samples), -1)
        for start in range(0, len(frames), self.samplerate // 50):
            block = np.ascontiguousarray(frames[start : start + self.samplerate // 50])
            times = SimpleNamespace(inputBufferAdcTime=self.recorded_s if says_when else 0.0)
            self.callback(block.tobytes(), len(block), times, SimpleNamespace(input_overflow=overflow))
            self.recorded_s += len(block) / self.samplerate
