"""What an input device records: silence while it is paused or away, how it comes back, and how much of it was lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from pipeline.audio.devices import InputDevice, find_device, portaudio, recording_settings
from pipeline.errors import DeviceError, UsageError
from pipeline.events import (
    SAMPLE_RATE,
    AudioLost,
    DeviceBack,
    DeviceLost,
    Paused,
    Resumed,
    Samples,
    SourceNotice,
)

_BLOCK_S = 0.02
# A working device delivers a block every 20 ms, and after a start within half a second; silence is blocks of zeros.
_STALLED_S = 3.0
# How soon a read that waits notices ``close``, or that the device is gone.
_POLL_S = 0.1
# Audio between the device's thread and the one that reads. It is no backlog: that one reads all the time, and this fills
# only while it stands still, as in front of a disk that does not answer.
_HANDOVER_S = 10.0
# Audio that a device and its driver hold at most before they lose some; PortAudio's high latency is below half a second.
_DEVICE_BUFFER_S = 1.0
# What the level meter shows at least.
SILENCE_DBFS = -90.0


def level_dbfs(samples: Samples) -> float:
    """Root mean square in decibels below full scale: 0 is as loud as can be, SILENCE_DBFS the least."""
    power = float(np.mean(np.square(samples.astype(np.float32) / 32768.0))) if len(samples) else 0.0
    return max(SILENCE_DBFS, 10 * float(np.log10(max(power, 1e-12))))


def backoff_s(attempt: int) -> float:
    """Seconds to wait before the ``attempt``-th try to open a device again, from 0: half a second, doubling up to 5 s."""
    return min(5.0, 0.5 * 2.0 ** min(attempt, 10))


class Converter:
    """Blocks as a device records them → mono at 16 kHz."""

    def __init__(self, channels: int, rate: int) -> None:
        self._channels, self._rate = channels, rate
        self._resampler = None if rate == SAMPLE_RATE else AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)

    def push(self, block: bytes) -> Samples:
        """Interleaved int16 → what of it is ready, mono; several channels are averaged."""
        frames = np.frombuffer(block, np.int16).reshape(-1, self._channels)
        mono: Samples = frames[:, 0] if self._channels == 1 else np.rint(frames.mean(axis=1)).astype(np.int16)
        if self._resampler is None:
            return mono
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(mono)[None], format="s16", layout="mono")
        frame.sample_rate = self._rate
        return self._joined(self._resampler.resample(frame))

    def flush(self) -> Samples:
        """The last samples. Nothing may be pushed after."""
        return self._joined(self._resampler.resample(None) if self._resampler is not None else [])

    def _joined(self, frames: list[AudioFrame]) -> Samples:
        return np.concatenate([np.zeros(0, np.int16), *(frame.to_ndarray()[0] for frame in frames)])


@dataclass
class _Lost:
    """A place in the audio where some is missing."""

    frames: int
    """0 where that is not known."""
    reason: str


class _Handover:
    """Blocks on their way from the device's thread to the reading one. What has no room leaves a gap of its length."""

    def __init__(self, limit_frames: int) -> None:
        self._limit = limit_frames
        self._items: deque[tuple[bytes, int] | _Lost] = deque()
        self._changed = threading.Condition()
        self.frames = 0
        """That wait, those of gaps left out."""

    def put(self, block: bytes, frames: int) -> bool:
        """Hand over a block; False where there is no room, and it is lost."""
        with self._changed:
            if self.frames + frames > self._limit:
                return False
            self._items.append((block, frames))
            self.frames += frames
            self._changed.notify()
        return True

    def lose(self, frames: int, reason: str) -> None:
        """Leave a gap behind what was put last."""
        with self._changed:
            last = self._items[-1] if self._items else None
            if isinstance(last, _Lost):
                last.frames += frames
            else:
                self._items.append(_Lost(frames, reason))
            self._changed.notify()

    def take(self, timeout_s: float) -> bytes | _Lost | None:
        """The oldest block or gap; None where there is none in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._items, timeout_s):
                return None
            item = self._items.popleft()
            if isinstance(item, _Lost):
                return item
            block, frames = item
            self.frames -= frames
            return block


class DeviceClock:
    """How much a device lost, by the times at which it says that its blocks were recorded."""

    def __init__(self) -> None:
        self._due_s: float | None = None  # when the next block should be recorded
        self._called_at = 0.0

    def block(self, recorded_s: float, length_s: float, now_s: float, *, overflow: bool) -> float:
        """Seconds lost just before a block; 0 where nothing was, or where the device's times cannot be right.

        Args:
            recorded_s: when its first sample was recorded, by the device's clock (PortAudio's inputBufferAdcTime); 0
                where the system does not say.
            now_s: by another clock; no more can be lost between two blocks than has passed, and what buffers hold.
            overflow: the device says that some was lost. Otherwise differences are the jitter of its times.
        """
        due_s, passed_s, lost_s = self._due_s, now_s - self._called_at, 0.0
        if overflow and recorded_s > 0 and due_s is not None:
            missing_s = recorded_s - due_s
            if 0 < missing_s <= passed_s + _DEVICE_BUFFER_S:
                lost_s = missing_s
            recorded_s = due_s + lost_s  # else the jitter of many such blocks would add up
        self._due_s = recorded_s + length_s if recorded_s > 0 else None
        self._called_at = now_s
        return lost_s


class Capture:
    """An input device, by number, by a part of its name, or the default one. A live source that must be read all the
    time; ``Microphone`` does.

    Paused, or unplugged, it delivers silence at the pace of the clock: times in the audio stay those of the meeting,
    and what was being said is ended and translated. An unplugged device is waited for and opened again, whatever its
    number is then. Audio that was lost is replaced by silence of its length, where that is known, and told.
    """

    duration_s: float | None = None

    def __init__(self, device: str | None = None, *, rescan: bool = True) -> None:
        """Find the device; ``start``, or the first ``read``, begins to listen.

        Args:
            rescan: restart PortAudio to see a device that was plugged in again, for its list is made once. An app with
                PortAudio streams of its own in this process says False: they would end.

        Raises:
            UsageError: no input device fits ``device``, or several do.
            DeviceError: no PortAudio, or no input device at all.
        """
        self._rescan = rescan
        self._device = find_device(device)
        # By name from now on: another may have its number after it was unplugged.
        self._wanted = None if device is None else self._device.lasting_name
        self._blocks = _Handover(0)
        self._gap = 0  # frames of silence that are due
        self._channels, self._rate = 1, SAMPLE_RATE
        self._converter = Converter(self._channels, self._rate)
        self._stream: Any = None
        self._closing: threading.Thread | None = None  # of a device that is gone
        self._opening = threading.Lock()
        self._closed = threading.Event()
        self._reading = self._paused = False
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._delivered = 0  # samples
        self._heard_at = 0.0
        self._absence: _Absence | None = None
        self._untold: AudioLost | None = None
        self._told_at_s = -1.0
        self.overflows = 0
        """Blocks before which the device lost audio, or which this program lost, because they were not read in time."""
        self.level_dbfs = SILENCE_DBFS
        """How loud the newest block was."""

    @property
    def name(self) -> str:
        return self._device.name

    @property
    def connected(self) -> bool:
        """False while the device is away."""
        return self._absence is None

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def backlog_s(self) -> float:
        return (self._blocks.frames + self._gap) / self._rate

    @property
    def _at_s(self) -> float:
        return self._delivered / SAMPLE_RATE

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """Have ``notify`` called, from any thread, with what happens to the device."""
        self._notify = notify

    def pause(self) -> None:
        """Hear silence until ``resume``. Idempotent."""
        if not self._paused:
            self._paused = True
            self._notify(Paused(self._at_s))

    def resume(self) -> None:
        """Hear again. Idempotent."""
        if self._paused:
            self._paused = False
            self._notify(Resumed(self._at_s))

    def start(self) -> None:
        """Begin to listen. Later calls do nothing.

        Raises:
            DeviceError: the device does not open.
        """
        if self._stream is None and self._absence is None and not self._closed.is_set():
            sounddevice = portaudio()
            try:
                self._open(self._device)
            except (ValueError, sounddevice.PortAudioError) as error:
                raise DeviceError(
                    f"the input device {self.name!r} does not open ({error}); choose another with --device"
                ) from error

    def read(self) -> Samples | None:
        """Wait for what comes next; None when what was heard before ``close`` has been read.

        Raises:
            DeviceError: the device does not open the first time. Later it is waited for.
        """
        self._reading = True
        try:
            self.start()
            while True:
                samples = self._hear() if self._absence is None else self._wait()
                if samples is None or len(samples):
                    break
        finally:
            self._reading = False
            if self._closed.is_set():  # nobody may read again
                self._release()
        if samples is not None:
            self._delivered += len(samples)
            self.level_dbfs = level_dbfs(samples)
        self._tell_lost(at_once=samples is None)
        return samples

    def close(self) -> None:
        """Stop listening and release the device: reads deliver what was heard until now, then None. Idempotent.

        Does not wait for a read on another thread: that one releases the device.
        """
        self._closed.set()
        if not self._reading:
            self._release()

    def _open(self, device: InputDevice) -> None:
        channels, rate = recording_settings(device)
        blocks, clock = _Handover(round(rate * _HANDOVER_S)), DeviceClock()

        def received(data: Any, frames: int, times: Any, status: Any) -> None:
            overflow = bool(status.input_overflow)
            lost_s = clock.block(times.inputBufferAdcTime, frames / rate, time.monotonic(), overflow=overflow)
            if overflow:
                blocks.lose(round(lost_s * rate), f"{device.name} was not read in time")
            taken = blocks.put(bytes(len(data)) if self._paused else bytes(data), frames)
            if not taken:
                blocks.lose(frames, "this program was too busy to take it")
            self.overflows += overflow or not taken

        stream = portaudio().RawInputStream(
            samplerate=rate, blocksize=round(rate * _BLOCK_S), device=device.index, channels=channels, dtype="int16",
            callback=received,
        )  # fmt: skip
        try:
            stream.start()
        except BaseException:
            stream.close(ignore_errors=True)
            raise
        with self._opening:
            self._device, self._converter = device, Converter(channels, rate)
            self._channels, self._rate, self._gap = channels, rate, 0
            self._stream, self._blocks, self._heard_at = stream, blocks, time.monotonic()

    def _release(self) -> None:
        if (stream := self._taken()) is not None:
            stream.close(ignore_errors=True)

    def _taken(self) -> Any:
        """The stream, which nobody else may close any more, or None."""
        with self._opening:
            stream, self._stream = self._stream, None
        return stream

    def _hear(self) -> Samples | None:
        """What the device recorded next; empty where it was not there in time, None at the end."""
        if self._closed.is_set():
            self._release()
        if self._gap:
            frames = min(self._gap, self._rate)  # a second at most
            self._gap -= frames
            return self._converter.push(bytes(2 * self._channels * frames))
        block = self._blocks.take(0 if self._closed.is_set() else _POLL_S)
        if block is None:
            if self._closed.is_set():
                tail, self._converter = self._converter.flush(), Converter(1, SAMPLE_RATE)
                return tail if len(tail) else None
            silent_s = time.monotonic() - self._heard_at
            if silent_s > _STALLED_S:
                self._lose(f"it has delivered nothing for {_STALLED_S:.0f} s")
            elif not self._stream.active:
                self._lose("it stopped")
            return np.zeros(0, np.int16)
        self._heard_at = time.monotonic()
        if isinstance(block, _Lost):
            self._gap = block.frames
            before = self._untold or AudioLost(self._at_s, 0.0, block.reason)
            self._untold = replace(before, lost_s=before.lost_s + block.frames / self._rate)
            return np.zeros(0, np.int16)
        return self._converter.push(block)

    def _lose(self, reason: str) -> None:
        self._absence = _Absence(self._heard_at)
        self._notify(DeviceLost(self._at_s, self.name, reason))
        if (stream := self._taken()) is not None:
            # PortAudio joins its thread, which may wait for the device that is gone without an end.
            self._closing = threading.Thread(target=stream.close, args=(True,), name="microphone closing", daemon=True)
            self._closing.start()

    def _wait(self) -> Samples | None:
        """The silence that has passed since the last call; looks for the device when it is time to."""
        absence = self._absence
        assert absence is not None
        if self._closed.wait(_POLL_S):
            self._release()
            return None
        tries = time.monotonic() >= absence.next_try_at
        back = tries and self._reopened()
        silence = absence.silence()
        if back:
            self._absence = None
            at_s = (self._delivered + len(silence)) / SAMPLE_RATE
            self._notify(DeviceBack(at_s, self.name, time.monotonic() - absence.since))
        elif tries:
            absence.tried()
        return silence

    def _reopened(self) -> bool:
        if self._closing is not None and self._closing.is_alive():
            return False  # PortAudio must not be restarted meanwhile
        sounddevice = portaudio()
        try:
            if self._rescan:
                with contextlib.suppress(sounddevice.PortAudioError):  # an earlier start has failed
                    sounddevice._terminate()
                sounddevice._initialize()
            self._open(find_device(self._wanted))
        except (ValueError, sounddevice.PortAudioError, UsageError, DeviceError):
            return False
        return True

    def _tell_lost(self, at_once: bool) -> None:
        """At most one notice a second of audio, which has all that was lost since the one before."""
        if self._untold is not None and (at_once or self._at_s >= self._told_at_s + 1):
            untold, self._untold, self._told_at_s = self._untold, None, self._at_s
            self._notify(untold)


class _Absence:
    """The time that the device is away: how much silence it makes, and when to look for it again."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._filled = 0
        self._attempt = 0
        self.next_try_at = time.monotonic() + backoff_s(0)

    def tried(self) -> None:
        self._attempt += 1
        self.next_try_at = time.monotonic() + backoff_s(self._attempt)

    def silence(self) -> Samples:
        """What has passed since the last call, [n]."""
        due = round((time.monotonic() - self.since) * SAMPLE_RATE) - self._filled
        self._filled += due
        return np.zeros(due, np.int16)
