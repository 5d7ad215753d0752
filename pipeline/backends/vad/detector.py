"""Frame decisions for one stream: webrtcvad proposes and Silero confirms, or one of them decides alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import webrtcvad

from ...core import SAMPLE_RATE, FrameDecision, Samples, SpeechGate, VadConfig
from .silero import WINDOW_SAMPLES, SileroVad

# Silero does not run if no frame was proposed for this long.
_IDLE_MS = 500


class WebRtcVad:
    """Decides whether frames of ``frame_ms`` (10, 20 or 30) are speech. ``mode`` 0 keeps most, 3 filters most."""

    def __init__(self, mode: int, frame_ms: int) -> None:
        self.frame_samples = SAMPLE_RATE * frame_ms // 1000
        self._vad = webrtcvad.Vad(mode)

    def is_speech(self, frame: Samples) -> bool:
        """Decide one frame. A shorter frame (the last of the input) is padded with silence."""
        if len(frame) < self.frame_samples:
            frame = np.pad(frame, (0, self.frame_samples - len(frame)))
        return bool(self._vad.is_speech(frame.tobytes(), SAMPLE_RATE))


class _Frame(NamedTuple):
    samples: Samples
    proposed: bool


class SpeechDetector:
    """Splits audio of any chunking into frames and decides them, less than a Silero window (32 ms) plus a frame later.

    Holds at most that and one second of audio. Detectors may run on several threads at once: the shared model session
    is stateless.
    """

    def __init__(self, config: VadConfig) -> None:
        self._webrtc = WebRtcVad(config.mode, config.frame_ms)
        self._use_webrtc = config.detector != "silero"
        self._silero = SileroVad() if config.detector != "webrtc" else None
        self._gate = SpeechGate(config)
        self._idle_frames = _IDLE_MS // config.frame_ms
        self._frames_since_proposal = self._idle_frames
        self.heard_samples = 0
        """Samples in complete frames so far, including frames not yet decided."""
        self._partial_frame: Samples = np.zeros(0, np.int16)
        self._undecided: list[_Frame] = []
        self._partial_window: Samples = np.zeros(0, np.int16)

    def push(self, samples: Samples) -> Iterator[tuple[Samples, FrameDecision]]:
        """Add samples [n], and yield the frames that can now be decided, in order."""
        pending = np.concatenate([self._partial_frame, samples])
        size = self._webrtc.frame_samples
        whole = len(pending) // size * size
        # Copy, because a view would keep the whole chunk in memory.
        self._partial_frame = pending[whole:].copy()
        for start in range(0, whole, size):
            yield from self._add_frame(pending[start : start + size].copy())

    def flush(self) -> Iterator[tuple[Samples, FrameDecision]]:
        """End the input, and yield the undecided frames; the last one may be shorter."""
        if len(self._partial_frame):
            rest, self._partial_frame = self._partial_frame, self._partial_frame[:0]
            yield from self._add_frame(rest)
        if self._undecided:
            yield from self._decide(
                np.pad(self._partial_window, (0, WINDOW_SAMPLES - len(self._partial_window))), len(self._undecided)
            )
            self._partial_window = self._partial_window[:0]

    def _add_frame(self, samples: Samples) -> Iterator[tuple[Samples, FrameDecision]]:
        self.heard_samples += len(samples)
        proposed = not self._use_webrtc or self._webrtc.is_speech(samples)
        if self._silero is None:
            yield samples, FrameDecision(proposed)
            return
        self._undecided.append(_Frame(samples, proposed))
        self._frames_since_proposal = 0 if proposed else self._frames_since_proposal + 1
        self._partial_window = np.concatenate([self._partial_window, samples])
        if len(self._partial_window) >= WINDOW_SAMPLES:
            window, self._partial_window = self._partial_window[:WINDOW_SAMPLES], self._partial_window[WINDOW_SAMPLES:]
            # The window that contains the end of a frame decides it; the newest frame may need the next window.
            yield from self._decide(window, len(self._undecided) - (len(self._partial_window) > 0))

    def _decide(self, window: Samples, frames: int) -> Iterator[tuple[Samples, FrameDecision]]:
        assert self._silero is not None
        probability = self._silero.push(window, run=self._frames_since_proposal < self._idle_frames)
        decided, self._undecided = self._undecided[:frames], self._undecided[frames:]
        for frame in decided:
            yield frame.samples, self._gate.decide(probability, frame.proposed, level_db(frame.samples))


def level_db(samples: Samples) -> float:
    """Level of samples [n] without their DC offset, in dB relative to full scale."""
    sound = samples.astype(np.float64)
    power = (np.dot(sound, sound) - sound.sum() ** 2 / len(sound)) / len(sound)  # five times as fast as np.var
    return 10 * math.log10(max(float(power), 0.0) / 2.0**30 + 1e-12)
