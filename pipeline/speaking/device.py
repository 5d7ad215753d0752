"""Plays speech on an output device."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from ..core import Samples
from ..errors import DeviceError
from ..media import find_device, library_messages_logged, portaudio, settings_for
from .speaker import at_rate

_BLOCK_S = 0.02
# Kept by the device, so that a busy machine leaves no gaps.
_LATENCY_S = 0.2
# A device that takes no block for so long counts as lost.
_STALLED_S = 3.0
# A device that works is closed sooner.
_CLOSE_S = 1.0
# Speech that is left when ``play`` returns: time to make the next without a gap.
_AHEAD_S = 0.3
_POLL_S = 0.1


class DeviceOutput:
    """An output device by number, by part of its name, or the default one. Between sentences it plays silence.

    A device that stops is opened again for the next sentence.
    """

    def __init__(self, asked: str | None, rate: int) -> None:
        """Open the device for speech of ``rate`` Hz.

        Raises:
            UsageError: there is no such device.
            DeviceError: it cannot be opened.
        """
        self._device, self._speech_rate = find_device(asked, "output"), rate
        self.name = self._device.name
        self._changed = threading.Condition()
        self._sound, self._at = b"", 0  # interleaved, and how much of it has been played
        self._called_at = 0.0
        self._closed = False
        self._stream: Any = None
        self._open()

    def play(self, samples: Samples) -> None:
        """Play int16 samples [n] at the voice's rate; wait until they are nearly over, or the device is closed."""
        if self._closed:
            return
        if self._stream is None:
            self._open()
        sound = at_rate(samples, self._speech_rate, self._rate)
        with self._changed:
            self._sound, self._at = self._sound[self._at :] + np.repeat(sound, self._channels).tobytes(), 0
            self._changed.notify_all()
        self._wait(_AHEAD_S)

    def finish(self) -> None:
        """Wait until the device has played everything, or is closed."""
        self._wait(0.0)
        if (stream := self._stream) is not None and not self._closed and self._is_alive(stream):
            stream.stop()  # plays what the device has already been given

    def close(self) -> None:
        """Stop playing at once, and close the device. Later calls do nothing."""
        with self._changed:
            self._closed = True
            stream, self._stream = self._stream, None
            self._changed.notify_all()
        if stream is not None:
            _close(stream)

    def _is_alive(self, stream: Any) -> bool:
        return bool(stream.active) and time.monotonic() - self._called_at <= _STALLED_S

    def _open(self) -> None:
        sounddevice = portaudio()
        try:
            with library_messages_logged():
                self._channels, self._rate = settings_for(self._device, "output", self._speech_rate)
                stream = sounddevice.RawOutputStream(
                    samplerate=self._rate, blocksize=round(self._rate * _BLOCK_S), device=self._device.index,
                    channels=self._channels, dtype="int16", latency=_LATENCY_S, callback=self._wanted,
                )  # fmt: skip
                self._called_at = time.monotonic()
                stream.start()
        except (ValueError, sounddevice.PortAudioError) as error:
            raise DeviceError(
                f"the output device {self.name!r} cannot be opened ({error}); choose another with --speak-to"
            ) from error
        with self._changed:
            closed = self._closed
            if not closed:
                self._stream = stream
        if closed:  # meanwhile
            _close(stream)

    def _wanted(self, out: Any, frames: int, times: Any, status: Any) -> None:
        """PortAudio's callback."""
        with self._changed:
            self._called_at = time.monotonic()
            sound = self._sound[self._at : self._at + len(out)]
            self._at += len(sound)
            self._changed.notify_all()
        out[:] = sound + bytes(len(out) - len(sound))

    def _wait(self, left_s: float) -> None:
        """Wait until no more than so much is left."""
        with self._changed:
            most = round(left_s * self._rate) * self._channels * 2
            while len(self._sound) - self._at > most and not self._closed:
                self._changed.wait(_POLL_S)
                stream = self._stream
                if self._closed or stream is None:
                    return
                if not self._is_alive(stream):
                    self._sound, self._at, self._stream = b"", 0, None
                    _close(stream)
                    raise DeviceError(f"the output device {self.name!r} stopped; the subtitles go on without a voice")


def _close(stream: Any) -> None:
    """Close a stream on another thread: PortAudio joins its own, which may wait for a lost device forever."""
    closing = threading.Thread(target=stream.close, args=(True,), name="voice closing", daemon=True)
    closing.start()
    closing.join(_CLOSE_S)
