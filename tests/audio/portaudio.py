"""Stands for PortAudio and the hardware behind it: devices that come and go, and say what a test gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipeline.audio.spool import Spooled
from pipeline.events import Samples
from tests.conftest import HANG_S


@contextmanager
def ended(source: Spooled) -> Iterator[Any]:
    """A source whose thread is gone when the devices are: it would look for others."""
    try:
        yield source
    finally:
        source.close()
        if source._thread is not None:
            source._thread.join(HANG_S)


class FakePortAudio:
    """Takes the place of the sounddevice module. Like PortAudio, it sees new devices only when it starts anew."""

    class PortAudioError(Exception):
        pass

    def __init__(self, *devices: tuple[str, int, int], default: int = 0) -> None:
        """``devices`` are (name, input channels, sample rate); a rate of 0 takes any."""
        self.plugged = list(devices)
        self.default_index = default
        self.streams: list[FakeStream] = []
        self._initialize()

    def _terminate(self) -> None:
        self.listed = []

    def _initialize(self) -> None:
        self.listed = list(self.plugged)

    def query_devices(self, device: object = None, kind: str | None = None) -> Any:
        rows = [
            {"index": index, "name": name, "max_input_channels": channels, "default_samplerate": float(rate or 44_100)}
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

    def RawInputStream(self, *, device: int, **settings: Any) -> FakeStream:  # noqa: N802
        if self.listed[device] not in self.plugged:
            raise self.PortAudioError("Device unavailable")
        self.streams.append(FakeStream(device, **settings))
        return self.streams[-1]

    def unplug(self) -> None:
        """All devices are gone, and the streams with them."""
        self.plugged = []
        for stream in self.streams:
            stream.active = False


class FakeStream:
    """One open stream, whose callback the test calls."""

    def __init__(self, device: int, *, channels: int, samplerate: int, callback: Any, **_: Any) -> None:
        self.device, self.channels, self.samplerate, self.callback = device, channels, samplerate, callback
        self.active = self.closed = False
        self.recorded_s = 100.0  # by the device's clock

    def start(self) -> None:
        self.active = True

    def close(self, ignore_errors: bool = True) -> None:
        self.active, self.closed = False, True

    def hear(self, samples: Samples, overflow: bool = False, lost_s: float = 0.0, says_when: bool = True) -> None:
        """Blocks of 20 ms: ``samples`` are [n] or [n, channels]. ``lost_s`` were not recorded before the first of them."""
        self.recorded_s += lost_s
        frames = samples.reshape(len(samples), -1)
        for start in range(0, len(frames), self.samplerate // 50):
            block = np.ascontiguousarray(frames[start : start + self.samplerate // 50])
            times = SimpleNamespace(inputBufferAdcTime=self.recorded_s if says_when else 0.0)
            self.callback(block.tobytes(), len(block), times, SimpleNamespace(input_overflow=overflow))
            self.recorded_s += len(block) / self.samplerate
