"""Frame decisions of one stream: webrtcvad proposes, Silero confirms, or either alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.events import Samples
from pipeline.vad.gate import FrameDecision, SpeechGate
from pipeline.vad.options import VadConfig
from pipeline.vad.silero import WINDOW_SAMPLES, SileroVad
from pipeline.vad.webrtc import WebRtcVad

# Silero rests when nothing has been proposed for so long.
_REST_MS = 500


class _Frame(NamedTuple):
    samples: Samples
    proposed: bool


class SpeechDetector:
    """Takes audio in any chunking and gives frames with their decisions, less than a Silero window (32 ms) and a frame later.

    Holds no more than that and a second of audio. Detectors on other threads may run at the same time: what they share,
    the model's session, keeps no state.
    """

    def __init__(self, config: VadConfig) -> None:
        self._webrtc = WebRtcVad(config.mode, config.frame_ms)
        self._ask_webrtc = config.detector != "silero"
        self._silero = SileroVad() if config.detector != "webrtc" else None
        self._gate = SpeechGate(config, config.frame_ms)
        self._rest_frames = _REST_MS // config.frame_ms
        self._unproposed = self._rest_frames  # frames since the last proposal
        self.heard_samples = 0
        """Samples in whole frames so far, those not yet decided included."""
        self._rest: Samples = np.zeros(0, np.int16)  # less than a frame
        self._undecided: list[_Frame] = []
        self._window: Samples = np.zeros(0, np.int16)  # less than a Silero window

    def push(self, samples: Samples) -> Iterator[tuple[Samples, FrameDecision]]:
        """Frames that these samples [n] decide, in order."""
        pending = np.concatenate([self._rest, samples])
        size = self._webrtc.frame_samples
        whole = len(pending) // size * size
        # Copies, so that the few samples that wait do not keep the whole chunk alive.
        self._rest = pending[whole:].copy()
        for start in range(0, whole, size):
            yield from self._take(pending[start : start + size].copy())

    def flush(self) -> Iterator[tuple[Samples, FrameDecision]]:
        """The input is over: the frames not yet decided, the last one shorter than others."""
        if len(self._rest):
            rest, self._rest = self._rest, self._rest[:0]
            yield from self._take(rest)
        if self._undecided:
            yield from self._decide(np.pad(self._window, (0, WINDOW_SAMPLES - len(self._window))), len(self._undecided))
            self._window = self._window[:0]

    def _take(self, samples: Samples) -> Iterator[tuple[Samples, FrameDecision]]:
        self.heard_samples += len(samples)
        proposed = not self._ask_webrtc or self._webrtc.is_speech(samples)
        if self._silero is None:
            yield samples, FrameDecision(proposed)
            return
        self._undecided.append(_Frame(samples, proposed))
        self._unproposed = 0 if proposed else self._unproposed + 1
        self._window = np.concatenate([self._window, samples])
        if len(self._window) >= WINDOW_SAMPLES:
            window, self._window = self._window[:WINDOW_SAMPLES], self._window[WINDOW_SAMPLES:]
            # A frame is decided by the window that holds its end: the newest may have to wait for the next.
            yield from self._decide(window, len(self._undecided) - (len(self._window) > 0))

    def _decide(self, window: Samples, frames: int) -> Iterator[tuple[Samples, FrameDecision]]:
        assert self._silero is not None
        probability = self._silero.push(window, run=self._unproposed < self._rest_frames)
        decided, self._undecided = self._undecided[:frames], self._undecided[frames:]
        for frame in decided:
            yield frame.samples, self._gate.decide(probability, frame.proposed, level_db(frame.samples))


def level_db(samples: Samples) -> float:
    """Level of the alternating part of samples [n], in dB under full scale."""
    sound = samples.astype(np.float64)
    power = (np.dot(sound, sound) - sound.sum() ** 2 / len(sound)) / len(sound)  # np.var takes five times as long
    return 10 * math.log10(max(float(power), 0.0) / 2.0**30 + 1e-12)
