"""Decide whether a frame is speech, from two detectors and the frame's level. Pure: no model and no clock."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple, Protocol

from ..events import Samples
from .options import VadConfig


class FrameDecision(NamedTuple):
    speech: bool
    audible: bool = False
    """Speech, or louder than the noise floor. Kept next to speech, but does not begin a segment."""
    loud: bool = False
    """Far louder, and perhaps speech: a quiet voiceless word. Continues a segment, but does not begin one."""


class FrameDetector(Protocol):
    """Splits the audio of one stream into frames, and decides them; ``backends.SpeechDetector`` is one."""

    heard_samples: int
    """Samples in complete frames so far, including frames not yet decided."""

    def push(self, samples: Samples) -> Iterable[tuple[Samples, FrameDecision]]:
        """Add samples [n]; the frames that can now be decided, in order."""
        ...

    def flush(self) -> Iterable[tuple[Samples, FrameDecision]]:
        """End the input; the undecided frames."""
        ...


# Level at which the thresholds apply unchanged, and level above which the weight no longer grows.
_REFERENCE_DB, _MAX_WEIGHTED_DB = 12.0, 25.0
# The level is the median over this time: typing is loud for one frame, speech for longer. The floor is the lowest mean
# over the same time.
_LEVEL_MS = 100
# Whispered words far above the floor have probabilities down to this.
_LOUD_DB, _PERHAPS = 28.0, 0.01
# Age limit of the noise floor in seconds. Speakers pause for breath within this time; an older floor may be outdated.
_FLOOR_S = 5
# Lower limit of the floor, for digital silence. A quiet microphone is above it.
_MIN_FLOOR_DB = -90.0
# ``release_threshold`` applies for this long after speech.
_MEMORY_MS = 1_500


class SpeechGate:
    """Confirms proposed frames, with hysteresis and a weight for their level; ``tests/backends/vad/test_accuracy.py`` has what it was tuned on.

    A frame is speech if ``logit(probability) + level_weight × (dB above the floor − 12)`` reaches the logit of the
    threshold: ``release_threshold`` within 1.5 s of speech, otherwise ``threshold``.
    """

    def __init__(self, options: VadConfig) -> None:
        self.options = options
        self._begin_logit, self._continue_logit = _logit(options.threshold), _logit(options.release_threshold)
        self._level = LevelMeter(options.frame_ms)
        self._memory_frames = _MEMORY_MS // options.frame_ms
        self._since_speech = self._memory_frames + 1

    def decide(self, probability: float, proposed: bool, level_db: float) -> FrameDecision:
        """Decide the next frame.

        Args:
            probability: the probability of speech, 0 to 1.
            proposed: True if the cheap detector takes the frame for speech.
            level_db: the frame's level, in dB relative to full scale.
        """
        steady_db, frame_db = self._level.push(level_db)
        weight = self.options.level_weight * (min(max(steady_db, 0.0), _MAX_WEIGHTED_DB) - _REFERENCE_DB)
        evidence = _logit(probability) + weight
        possible = proposed and evidence >= self._continue_logit
        speaking = self._since_speech <= self._memory_frames
        speech = possible and (speaking or evidence >= self._begin_logit)
        self._since_speech = 1 if speech else self._since_speech + 1
        loud = proposed and probability >= _PERHAPS and frame_db >= _LOUD_DB
        return FrameDecision(speech, possible or frame_db > self.options.audible_db, loud)


class LevelMeter:
    """Measures the level above the noise floor, which is the quietest level of the last seconds."""

    def __init__(self, frame_ms: int) -> None:
        self._recent: deque[float] = deque(maxlen=max(1, _LEVEL_MS // frame_ms))
        self._powers: deque[float] = deque(maxlen=self._recent.maxlen)
        self._block_frames = 1000 // frame_ms
        self._floors: deque[float] = deque(maxlen=_FLOOR_S)  # lowest level of each of the last complete seconds
        self._floor = math.inf  # lowest level of the current second
        self._frames = 0

    def push(self, level_db: float) -> tuple[float, float]:
        """Add a frame; return dB above the floor of the last 100 ms (median) and of this frame."""
        self._recent.append(level_db)
        self._powers.append(10 ** (level_db / 10))
        power = sum(self._powers) / len(self._powers)
        self._floor = min(self._floor, 10 * math.log10(power))
        floor = max(min(self._floor, *self._floors) if self._floors else self._floor, _MIN_FLOOR_DB)
        self._frames += 1
        if self._frames == self._block_frames:
            self._floors.append(self._floor)
            self._floor, self._frames = math.inf, 0
        return median(self._recent) - floor, level_db - floor


def _logit(probability: float) -> float:
    kept = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))
