"""The audio of a session: from the rate of the speaker's device to 16 kHz, waiting until the stages take it; when it was spoken,
and silence in the place of none.
"""

from __future__ import annotations

import asyncio
from collections import deque

import av
import numpy as np
from av.audio.resampler import AudioResampler

from ..core import SAMPLE_RATE, PipelineStats, Samples
from .protocol import ProtocolError

# What a client buffered comes within this time after the first of it, in seconds, unless it has to wait.
_BURST_S = 2.0
# Then the pace is measured over this time, in seconds of audio a second. Real pace is 1; messages come irregularly.
_PACE_S = 3.0
_SLOWEST, _FASTEST = 0.5, 1.5
# The most that a client buffers: the page gives up after some 50 s.
_MOST_S = 60.0
# A sender that sends no audio for this long is silent. Networks stall for less.
_SILENT_S = 1.5
# A stream that is further ahead of real time is a recording. As much may wait (``ServerLimits.backlog_s``), and speech
# that a client buffered is ahead for a few seconds only (``BufferedSpeech``).
_AHEAD_S = 30.0


class Intake:
    """Takes 16-bit little-endian mono PCM at any rate and gives int16 samples [n] at 16 kHz. Loses nothing."""

    def __init__(self, sample_rate: int, limit_s: float) -> None:
        """``limit_s``: seconds of audio that may wait before ``room`` makes the sender wait."""
        self.received = 0
        """Samples received, at the sender's rate."""
        self.holding = False
        """Whether the sender waits, see ``room``."""
        self.ended = False
        """Whether no more audio comes."""
        self._rate, self._limit = sample_rate, round(limit_s * SAMPLE_RATE)
        self._resampler = _resampler(sample_rate)
        self._half = b""  # the first byte of a sample of which the second has not come
        self._waiting: deque[Samples] = deque()
        self._length = 0  # samples that wait
        self._arrived = 0  # samples that wait or were taken
        self._changed = asyncio.Event()

    @property
    def waiting_s(self) -> float:
        """Seconds of audio that wait to be taken."""
        return self._length / SAMPLE_RATE

    @property
    def arrived_s(self) -> float:
        """Seconds of audio that wait or were taken."""
        return self._arrived / SAMPLE_RATE

    @property
    def full(self) -> bool:
        """Whether the sender has to wait, see ``room``."""
        return self._length > self._limit

    def push(self, data: bytes) -> None:
        """Take audio. Half a sample at the end is completed by the next call.

        Raises:
            ProtocolError: audio after the end.
        """
        if self.ended:
            raise ProtocolError("ended", "audio came after the end of the session; start another one")
        data = self._half + data
        whole = len(data) - len(data) % 2
        self._half = data[whole:]
        samples = np.frombuffer(data[:whole], "<i2")
        self.received += len(samples)
        if self._resampler is None:
            self._add(samples.astype(np.int16))
        elif len(samples):
            frame = av.AudioFrame.from_ndarray(samples.astype(np.int16)[None, :], "s16", "mono")
            frame.sample_rate = self._rate
            self._resample(frame)

    def fill(self, seconds: float) -> None:
        """Add silence, which the sender has not sent."""
        self._add(np.zeros(round(seconds * SAMPLE_RATE), np.int16))

    def go_on_at(self, sample_rate: int) -> None:
        """What comes now has another rate, unless it is the same."""
        if sample_rate != self._rate:
            if self._resampler is not None and self.received:
                self._resample(None)
            self._rate, self._resampler, self._half = sample_rate, _resampler(sample_rate), b""

    def resume(self) -> None:
        """The sender has connected again, and goes on after the last whole sample."""
        self._half = b""

    def end(self) -> None:
        """No more audio comes. Idempotent."""
        if not self.ended:
            if self._resampler is not None and self.received:
                self._resample(None)
            self.ended = True
            self._changed.set()

    async def take(self) -> Samples | None:
        """All audio that waits, as soon as there is some; None after the last."""
        while not self._waiting and not self.ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._waiting:
            return None
        taken = np.concatenate(self._waiting)
        self._waiting.clear()
        self._length = 0
        self._changed.set()
        return taken

    async def room(self) -> None:
        """Wait while too much audio waits."""
        try:
            while self.full and not self.ended:
                self.holding = True
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.holding = False

    def _resample(self, frame: av.AudioFrame | None) -> None:
        assert self._resampler is not None
        for resampled in self._resampler.resample(frame):
            self._add(resampled.to_ndarray()[0].astype(np.int16))

    def _add(self, samples: Samples) -> None:
        if len(samples):
            self._waiting.append(samples)
            self._length += len(samples)
            self._arrived += len(samples)
            self._changed.set()


def _resampler(sample_rate: int) -> AudioResampler | None:
    return AudioResampler("s16", "mono", SAMPLE_RATE) if sample_rate != SAMPLE_RATE else None


class BufferedSpeech:
    """Tells speech that a client buffered until its session existed from a recording that is sent faster than it plays.

    Pure: the caller tells the time.

    Both begin with more audio than there was time to speak it in. Then speech comes at real pace. A recording comes
    faster, until its sender has to wait; from then on, its pace is that of the recogniser.
    """

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._buffered_s = 0.0
        self._window: tuple[float, float] | None = None  # when the measurement of the pace began, and heard_s then
        self._known = False

    def heard(self, now_s: float, heard_s: float, waits: bool) -> float | None:
        """Audio has come, ``heard_s`` seconds in all. ``waits``: too much waits here, so that its sender has to wait.

        Returns:
            When the first of it was spoken, as soon as that is known, and only once; otherwise None.
        """
        if self._known:
            return None
        if self._began_s is None:
            self._began_s = now_s
        self._buffered_s = max(self._buffered_s, heard_s - (now_s - self._began_s))
        if waits or now_s - self._began_s <= _BURST_S:
            self._window = None
            return None
        since_s, before_s = self._window = self._window or (now_s, heard_s)
        if now_s - since_s < _PACE_S:
            return None
        self._window = now_s, heard_s
        self._known = _SLOWEST <= (heard_s - before_s) / (now_s - since_s) <= _FASTEST and self._buffered_s <= _MOST_S
        return self._began_s - self._buffered_s if self._known else None


class SilentSender:
    """Tells how much silence stands for the time in which a sender sends nothing. Pure: the caller tells the time."""

    def __init__(self, ending_s: float, now_s: float) -> None:
        """``ending_s``: the silence that ends a sentence."""
        self.ahead_s = 0.0
        """Silence by which the audio is longer than the time that it took."""
        self._ending_s, self._heard_s, self._given_s = ending_s, now_s, 0.0

    def heard(self, now_s: float) -> None:
        """Audio has come, or none is expected."""
        self._heard_s, self._given_s = now_s, 0.0

    def due_s(self, now_s: float, behind_s: float) -> float:
        """Seconds of silence that are due now; the audio is as long as the time that has passed less ``behind_s``.

        Audio that came faster than it plays has no time for silence. It gets only what ends its sentence.
        """
        silent_s = now_s - self._heard_s
        if silent_s < _SILENT_S:
            return 0.0
        due_s = max(0.0, min(silent_s - self._given_s, max(behind_s, self._ending_s - self._given_s)))
        self._given_s += due_s
        self.ahead_s += max(0.0, due_s - max(0.0, behind_s))
        return due_s


class Timing:
    """When the audio of an intake was spoken, and how much of it is not fed to the stages yet."""

    def __init__(self, intake: Intake, stats: PipelineStats, ending_s: float, now_s: float) -> None:
        """``stats``: of the stages; they are told what waits. ``ending_s``: the silence that ends a sentence."""
        self._intake, self._stats = intake, stats
        self._buffered, self._silent = BufferedSpeech(), SilentSender(ending_s, now_s)
        stats.backlog_s = self.backlog_s

    def backlog_s(self) -> float:
        """Seconds of audio that wait, or were taken and are not fed yet."""
        return max(0.0, self._intake.arrived_s - self._stats.received_samples / SAMPLE_RATE)

    def age_s(self, spoken_s: float) -> float | None:
        """Seconds since the audio before ``spoken_s`` was spoken; None: it is of a recording. Called on the stages' threads."""
        return None if self._stats.ahead_s - self._silent.ahead_s > _AHEAD_S else self._stats.age_s(spoken_s)

    def heard(self, now_s: float) -> None:
        """Audio has come."""
        self._silent.heard(now_s)
        spoken_at_s = self._buffered.heard(self._stats.clock(), self._intake.arrived_s, self._intake.full)
        if spoken_at_s is not None:
            self._stats.spoken_from(spoken_at_s)

    def fill(self, now_s: float, *, expected: bool) -> None:
        """Add the silence that is due. ``expected``: whether a sender is there who would send audio if anybody spoke."""
        if not expected or self._intake.full or not self._intake.arrived_s:
            self._silent.heard(now_s)
        self._intake.fill(self._silent.due_s(now_s, self._stats.stream_s - self._intake.arrived_s))
