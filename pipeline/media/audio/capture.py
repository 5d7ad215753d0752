"""Capture from an input device: pausing, reconnecting, and measuring how much audio was lost."""

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

from ...core import SAMPLE_RATE, AudioLost, DeviceBack, DeviceLost, Paused, Resumed, Samples, SourceNotice
from ...errors import DeviceError, UsageError
from .devices import AudioDevice, find_device, library_messages_logged, portaudio, settings_for
from .level import SILENCE_DBFS, LevelCheck, level_dbfs

_BLOCK_S = 0.02
# A device that delivers no block for this long counts as lost. A working one delivers a block every 20 ms, the first
# within half a second of its start, also during silence.
_STALLED_S = 3.0
# How often a waiting read checks for ``close`` and for a lost device.
_POLL_S = 0.1
# Capacity of the queue between the device's thread and the reading thread. It is not the backlog: the reading thread
# reads continuously, and the queue fills only while that thread is blocked, such as by a disk that does not respond.
_QUEUE_S = 10.0
# Maximum audio that a device and its driver buffer. PortAudio's high latency is below half a second.
_DEVICE_BUFFER_S = 1.0


def backoff_s(attempt: int) -> float:
    """Seconds to wait before attempt ``attempt`` (from 0) to reopen a device: 0.5 s, doubling up to 5 s."""
    return min(5.0, 0.5 * 2.0 ** min(attempt, 10))


class Converter:
    """Converts recorded blocks to mono at another rate."""

    def __init__(self, channels: int, rate: int, wanted_rate: int = SAMPLE_RATE) -> None:
        self._channels, self._rate = channels, rate
        self._resampler = None if rate == wanted_rate else AudioResampler(format="s16", layout="mono", rate=wanted_rate)

    def push(self, block: bytes) -> Samples:
        """Convert interleaved int16; channels are averaged. The resampler may hold samples back."""
        frames = np.frombuffer(block, np.int16).reshape(-1, self._channels)
        mono: Samples = frames[:, 0] if self._channels == 1 else np.rint(frames.mean(axis=1)).astype(np.int16)
        if self._resampler is None:
            return mono
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(mono)[None], format="s16", layout="mono")
        frame.sample_rate = self._rate
        return self._joined(self._resampler.resample(frame))

    def flush(self) -> Samples:
        """Return the samples held back. Nothing may be pushed afterwards."""
        return self._joined(self._resampler.resample(None) if self._resampler is not None else [])

    def _joined(self, frames: list[AudioFrame]) -> Samples:
        return np.concatenate([np.zeros(0, np.int16), *(frame.to_ndarray()[0] for frame in frames)])


@dataclass
class _Gap:
    """A gap in the audio."""

    frames: int
    """Length of the gap; 0 if unknown."""
    reason: str


class _BlockQueue:
    """A queue of blocks from the device's thread to the reading thread. A block that does not fit leaves a gap."""

    def __init__(self, limit_frames: int) -> None:
        self._limit = limit_frames
        self._items: deque[tuple[bytes, int] | _Gap] = deque()
        self._changed = threading.Condition()
        self.frames = 0
        """Frames in the queue, without gaps."""

    def put(self, block: bytes, frames: int) -> bool:
        """Add a block; False if the queue is full and the block is lost."""
        with self._changed:
            if self.frames + frames > self._limit:
                return False
            self._items.append((block, frames))
            self.frames += frames
            self._changed.notify()
        return True

    def lose(self, frames: int, reason: str) -> None:
        """Add a gap after the newest block."""
        with self._changed:
            last = self._items[-1] if self._items else None
            if isinstance(last, _Gap):
                last.frames += frames
            else:
                self._items.append(_Gap(frames, reason))
            self._changed.notify()

    def take(self, timeout_s: float) -> bytes | _Gap | None:
        """Remove the oldest block or gap; None after the timeout."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._items, timeout_s):
                return None
            item = self._items.popleft()
            if isinstance(item, _Gap):
                return item
            block, frames = item
            self.frames -= frames
            return block


class DeviceClock:
    """Computes how much audio a device lost, from the recording times that it reports."""

    def __init__(self) -> None:
        self._due_s: float | None = None  # expected recording time of the next block
        self._called_at = 0.0

    def block(self, recorded_s: float, length_s: float, now_s: float, *, overflow: bool) -> float:
        """Seconds lost just before a block; 0 if nothing was lost or the reported times are implausible.

        Args:
            recorded_s: time of its first sample on the device's clock (PortAudio's inputBufferAdcTime); 0 if the
                system does not report it.
            length_s: length of the block.
            now_s: time on another clock. A loss cannot exceed the time since the previous block plus the buffers.
            overflow: the device reports a loss. Without one, differences of times are jitter.
        """
        due_s, passed_s, lost_s = self._due_s, now_s - self._called_at, 0.0
        if overflow and recorded_s > 0 and due_s is not None:
            missing_s = recorded_s - due_s
            if 0 < missing_s <= passed_s + _DEVICE_BUFFER_S:
                lost_s = missing_s
            recorded_s = due_s + lost_s  # otherwise jitter would add up over many blocks
        self._due_s = recorded_s + length_s if recorded_s > 0 else None
        self._called_at = now_s
        return lost_s


class Capture:
    """An input device, selected by number, by part of its name, or the default device.

    A live source that must be read continuously; ``Microphone`` does that. While paused or unplugged, it delivers
    silence in real time, so that times in the audio stay correct and the current segment ends and is translated. An
    unplugged device is reopened when it is back, even under another number. Lost audio is reported, and replaced by
    silence of the same length if that is known.
    """

    duration_s: float | None = None

    def __init__(self, device: str | None = None, *, rescan: bool = True) -> None:
        """Find the device. Recording begins with ``start`` or the first ``read``.

        Args:
            rescan: restart PortAudio to find a device that was plugged in again, because PortAudio lists devices only
                once. Use False if the app has other PortAudio streams in this process: a restart would end them.
        """
        self._rescan = rescan
        self._device = find_device(device)
        # Reopen by name: after unplugging, another device may have the number.
        self._reopen_name = None if device is None else self._device.lasting_name
        self._blocks = _BlockQueue(0)
        self._gap_frames = 0  # frames of silence still to be delivered
        self._channels, self._rate = 1, SAMPLE_RATE
        self._converter = Converter(self._channels, self._rate)
        self._stream: Any = None
        self._closer: threading.Thread | None = None  # closes the stream of a lost device
        self._stream_lock = threading.Lock()
        self._closed = threading.Event()
        self._reading = self._paused = False
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._delivered = 0  # samples
        self._heard_at = 0.0
        self._absence: _Absence | None = None
        self._unreported_loss: AudioLost | None = None
        self._reported_at_s = -1.0
        self._level_check = LevelCheck(self.name)
        self.overflows = 0
        """Number of losses, by the device or by this program, because audio was not read in time."""
        self.level_dbfs = SILENCE_DBFS
        """Level of the newest block."""

    @property
    def name(self) -> str:
        return self._device.name

    @property
    def connected(self) -> bool:
        """False while the device is lost."""
        return self._absence is None

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def backlog_s(self) -> float:
        return (self._blocks.frames + self._gap_frames) / self._rate

    @property
    def _at_s(self) -> float:
        return self._delivered / SAMPLE_RATE

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """Call ``notify``, from any thread, with each event of the device."""
        self._notify = notify

    def pause(self) -> None:
        """Deliver silence until ``resume``. Idempotent."""
        if not self._paused:
            self._paused = True
            self._notify(Paused(self._at_s))

    def resume(self) -> None:
        """Deliver recorded audio again. Idempotent."""
        if self._paused:
            self._paused = False
            self._notify(Resumed(self._at_s))

    def start(self) -> None:
        """Begin recording. Later calls do nothing."""
        if self._stream is None and self._absence is None and not self._closed.is_set():
            sounddevice = portaudio()
            try:
                with library_messages_logged():
                    self._open(self._device)
            except (ValueError, sounddevice.PortAudioError) as error:
                raise DeviceError(
                    f"the input device {self.name!r} cannot be opened ({error}); choose another with --device"
                ) from error

    def read(self) -> Samples | None:
        """Wait for the next samples; None when everything recorded before ``close`` has been read."""
        self._reading = True
        try:
            self.start()
            while True:
                samples = self._read_device() if self._absence is None else self._read_silence()
                if samples is None or len(samples):
                    break
        finally:
            self._reading = False
            if self._closed.is_set():  # there may be no later read to release it
                self._release()
        if samples is not None:
            self._delivered += len(samples)
            self.level_dbfs = level_dbfs(samples)
            if self.connected and not self._paused and (level := self._level_check.push(samples, self._at_s)):
                self._notify(level)
        self._report_loss(at_once=samples is None)
        return samples

    def close(self) -> None:
        """Stop recording and release the device. Reads deliver the audio recorded so far, then None. Idempotent.

        Does not wait for a read on another thread: that read releases the device.
        """
        self._closed.set()
        if not self._reading:
            self._release()

    def _open(self, device: AudioDevice) -> None:
        channels, rate = settings_for(device, "input", SAMPLE_RATE)
        blocks, clock = _BlockQueue(round(rate * _QUEUE_S)), DeviceClock()

        def received(data: Any, frames: int, times: Any, status: Any) -> None:
            overflow = bool(status.input_overflow)
            lost_s = clock.block(times.inputBufferAdcTime, frames / rate, time.monotonic(), overflow=overflow)
            if overflow:
                blocks.lose(round(lost_s * rate), f"{device.name} was not read in time")
            taken = blocks.put(bytes(len(data)) if self._paused else bytes(data), frames)
            if not taken:
                blocks.lose(frames, "this program was too busy to read it")
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
        with self._stream_lock:
            self._device, self._converter = device, Converter(channels, rate)
            self._channels, self._rate, self._gap_frames = channels, rate, 0
            self._stream, self._blocks, self._heard_at = stream, blocks, time.monotonic()

    def _release(self) -> None:
        if (stream := self._detach_stream()) is not None:
            stream.close(ignore_errors=True)

    def _detach_stream(self) -> Any:
        """Take over the stream, so that no other thread closes it; None if there is none."""
        with self._stream_lock:
            stream, self._stream = self._stream, None
        return stream

    def _read_device(self) -> Samples | None:
        """The next recorded samples; empty if there are none in time, None at the end."""
        if self._closed.is_set():
            self._release()
        if self._gap_frames:
            frames = min(self._gap_frames, self._rate)  # a second at most
            self._gap_frames -= frames
            return self._converter.push(bytes(2 * self._channels * frames))
        block = self._blocks.take(0 if self._closed.is_set() else _POLL_S)
        if block is None:
            if self._closed.is_set():
                tail, self._converter = self._converter.flush(), Converter(1, SAMPLE_RATE)
                return tail if len(tail) else None
            silent_s = time.monotonic() - self._heard_at
            if silent_s > _STALLED_S:
                self._lose_device(f"it has delivered nothing for {_STALLED_S:.0f} s")
            elif not self._stream.active:
                self._lose_device("it stopped")
            return np.zeros(0, np.int16)
        self._heard_at = time.monotonic()
        if isinstance(block, _Gap):
            self._gap_frames = block.frames
            before = self._unreported_loss or AudioLost(self._at_s, 0.0, block.reason)
            self._unreported_loss = replace(before, lost_s=before.lost_s + block.frames / self._rate)
            return np.zeros(0, np.int16)
        return self._converter.push(block)

    def _lose_device(self, reason: str) -> None:
        self._absence = _Absence(self._heard_at)
        self._notify(DeviceLost(self._at_s, self.name, reason))
        if (stream := self._detach_stream()) is not None:
            # Close on another thread: PortAudio joins its own, which may wait for the lost device forever.
            self._closer = threading.Thread(target=stream.close, args=(True,), name="microphone closing", daemon=True)
            self._closer.start()

    def _read_silence(self) -> Samples | None:
        """Silence for the time since the last call. Tries to reopen the device when an attempt is due."""
        absence = self._absence
        assert absence is not None
        if self._closed.wait(_POLL_S):
            self._release()
            return None
        tries = time.monotonic() >= absence.next_try_at
        back = tries and self._reopen()
        silence = absence.silence()
        if back:
            self._absence = None
            at_s = (self._delivered + len(silence)) / SAMPLE_RATE
            self._notify(DeviceBack(at_s, self.name, time.monotonic() - absence.since))
        elif tries:
            absence.tried()
        return silence

    def _reopen(self) -> bool:
        if self._closer is not None and self._closer.is_alive():
            return False  # PortAudio must not be restarted before the stream is closed
        sounddevice = portaudio()
        try:
            with library_messages_logged():
                if self._rescan:
                    with contextlib.suppress(
                        sounddevice.PortAudioError
                    ):  # not initialised, if an earlier restart failed
                        sounddevice._terminate()
                    sounddevice._initialize()
                self._open(find_device(self._reopen_name))
        except (ValueError, sounddevice.PortAudioError, UsageError, DeviceError):
            return False
        return True

    def _report_loss(self, at_once: bool) -> None:
        """Report losses, at most once per second of audio, with the sum since the last report."""
        if self._unreported_loss is not None and (at_once or self._at_s >= self._reported_at_s + 1):
            loss, self._unreported_loss, self._reported_at_s = self._unreported_loss, None, self._at_s
            self._notify(loss)


class _Absence:
    """A time without the device: how much silence is due, and when to try to reopen it."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._filled = 0
        self._attempt = 0
        self.next_try_at = time.monotonic() + backoff_s(0)

    def tried(self) -> None:
        self._attempt += 1
        self.next_try_at = time.monotonic() + backoff_s(self._attempt)

    def silence(self) -> Samples:
        """Silence [n] for the time since the last call."""
        due = round((time.monotonic() - self.since) * SAMPLE_RATE) - self._filled
        self._filled += due
        return np.zeros(due, np.int16)
