"""Whether a frame is speech, from what two detectors and its level say: pure rules, no model and no clock."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from pipeline.bounds import within


@dataclass(frozen=True)
class GateOptions:
    """Found on mixtures of speech, rooms and noise; ``pipeline.bench vad`` measures them again."""

    # Probability at which speech begins, for a sound 12 dB above the room's noise; quieter ones need more, louder less.
    threshold: float = within(0.5, 0.01, 0.99)
    # Probability at which speech that has begun goes on.
    release_threshold: float = within(0.25, 0.01, 0.99)
    # What a dB of level is worth, in natural-log odds of the probability.
    level_weight: float = within(0.15, 0, 1)
    # Frames so far above the room's noise are kept beside speech, even where no detector is sure of them.
    audible_db: float = within(10.0, 0, 100)


class FrameDecision(NamedTuple):
    speech: bool
    audible: bool = False
    """Speech, or at least louder than the room: kept where speech is near, never enough to begin a segment."""


# The level at which the thresholds hold as they are written; above 25 dB more level says nothing more.
_REFERENCE_DB, _ENOUGH_DB = 12.0, 25.0
# Typing is a frame loud, speech longer: the level is the median of so much. The floor is the least mean over as much.
_LEVEL_MS = 100
# Somebody who speaks pauses for breath within so many seconds; a floor any older is another room's.
_FLOOR_S = 5
# Digital silence has no level; a quiet microphone's is above this.
_LOWEST_DB = -90.0
# Speech that was heard so long ago does not lower the threshold any more.
_MEMORY_MS = 500


class SpeechGate:
    """Confirms frames that were proposed, with hysteresis and an adaptive weight for their level.

    A frame is speech if ``logit(probability) + level_weight × (dB above the floor − 12)`` reaches the logit of the
    threshold: of ``threshold`` when nobody speaks, of ``release_threshold`` within half a second of speech.
    """

    def __init__(self, options: GateOptions, frame_ms: int) -> None:
        self.options = options
        self._begin, self._go_on = _logit(options.threshold), _logit(options.release_threshold)
        self._level = LevelMeter(frame_ms)
        self._memory = _MEMORY_MS // frame_ms
        self._since_speech = self._memory + 1

    def decide(self, probability: float, proposed: bool, level_db: float) -> FrameDecision:
        """Decide the next frame.

        Args:
            probability: of speech, in 0 to 1.
            proposed: whether the cheap detector takes the frame for speech.
            level_db: the frame's level, in dB under full scale.
        """
        steady_db, frame_db = self._level.push(level_db)
        weight = self.options.level_weight * (min(max(steady_db, 0.0), _ENOUGH_DB) - _REFERENCE_DB)
        evidence = _logit(probability) + weight
        possible = proposed and evidence >= self._go_on
        speaking = self._since_speech <= self._memory
        speech = possible and (speaking or evidence >= self._begin)
        self._since_speech = 1 if speech else self._since_speech + 1
        return FrameDecision(speech, possible or frame_db > self.options.audible_db)


class LevelMeter:
    """How far sound is above the quietest that the room has been for some seconds."""

    def __init__(self, frame_ms: int) -> None:
        self._recent: deque[float] = deque(maxlen=max(1, _LEVEL_MS // frame_ms))
        self._powers: deque[float] = deque(maxlen=self._recent.maxlen)
        self._block_frames = 1000 // frame_ms
        self._floors: deque[float] = deque(maxlen=_FLOOR_S)  # the least level of each of the last whole seconds
        self._floor = math.inf  # of the second in progress
        self._frames = 0

    def push(self, level_db: float) -> tuple[float, float]:
        """dB above the floor of the last 100 ms (their median) and of this frame."""
        self._recent.append(level_db)
        self._powers.append(10 ** (level_db / 10))
        power = sum(self._powers) / len(self._powers)
        self._floor = min(self._floor, 10 * math.log10(power))
        floor = max(min(self._floor, *self._floors) if self._floors else self._floor, _LOWEST_DB)
        self._frames += 1
        if self._frames == self._block_frames:
            self._floors.append(self._floor)
            self._floor, self._frames = math.inf, 0
        return median(self._recent) - floor, level_db - floor


def _logit(probability: float) -> float:
    kept = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))
