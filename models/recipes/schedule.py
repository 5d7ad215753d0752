"""Learning rate and weight of the guided attention at each step, for trainings that may be extended or cut short."""

from __future__ import annotations

import math

WARMUP = 1000  # steps until the peak
HELD = 4000  # steps until the rate begins to fall with the inverse square root of the step (Vaswani et al. 2017)
# Weight of the cross-entropy of attention with word alignments, for one head per layer. Without it, attention takes most
# of a short training to learn the correspondences.
GUIDANCE = 0.5
GUIDED = 10_000  # steps until it reaches its final value
# The last layer's head is guided to the end, weakly: the pipeline reads it as the alignment (`commit = "word"`).
FINAL_GUIDANCE = 0.05


def learning_rate(step: int, peak: float, steps: int, cooldown: int, warmup: int = WARMUP) -> float:
    """The rate at ``step``, counted from 0. It falls to 0 linearly over the last ``cooldown`` of ``steps`` steps.

    Up to there it depends on ``step`` alone, so that a training can be stopped and extended at any step.
    """
    rate = peak * min(1.0, (step + 1) / warmup, math.sqrt(HELD / (step + 1)))
    return rate * min(1.0, (steps - step) / cooldown) if cooldown else rate


def guidance(step: int, last_layer: bool) -> float:
    """The weight of the guided attention at ``step`` for a layer's guided head."""
    return max(FINAL_GUIDANCE if last_layer else 0.0, GUIDANCE * (1 - step / GUIDED))
