"""A wider recogniser that hears what a narrow one does: its channels repeat the old ones (Chen et al. 2016, Net2Net)."""

from __future__ import annotations

import numpy as np


def widened(weights: dict[str, np.ndarray], times: int, heads: int) -> dict[str, np.ndarray]:
    """Weights of the same function whose d_model is ``times`` as large, with as many ``heads``.

    By transformers' names; ``head`` is a linear layer that reads the encoder's states.
    """
    rng = np.random.default_rng(1)
    return {name: _wide(name, had, times, heads, rng) for name, had in weights.items()}


def _wide(name: str, had: np.ndarray, times: int, heads: int, rng: np.random.Generator) -> np.ndarray:
    part = name.split(".")[-2]
    if part in ("embed_positions", "embed_tokens"):
        return np.tile(had, (1, times))
    if had.ndim > 1 and part not in ("conv1", "fc2"):
        had = _inputs(had, times, heads if part == "out_proj" else 1, rng)
    if part not in ("fc1", "head"):
        groups = heads if part in ("q_proj", "k_proj", "v_proj") else 1
        grouped = had.reshape(groups, had.shape[0] // groups, *had.shape[1:])
        had = np.concatenate([grouped] * times, axis=1).reshape(-1, *had.shape[1:])
    if part == "q_proj":
        return had / np.float32(times**0.5)  # a head sums so many times as much, and divides by that root more
    return had / times if name.startswith("model.decoder.layer_norm") else had  # embeddings follow, which repeat


def _inputs(had: np.ndarray, times: int, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Weights [out, in, ...] of inputs each group of which is repeated behind it.

    Those of one input's repetitions give its old weight together, and differ, or they would learn the same for ever.
    """
    apart = rng.normal(0, had.std() / 2, (times, *had.shape))
    parts = had / times + apart - apart.mean(0)
    grouped = parts.reshape(times, had.shape[0], groups, had.shape[1] // groups, *had.shape[2:])
    return np.concatenate(list(grouped), axis=2).reshape(had.shape[0], -1, *had.shape[2:]).astype(np.float32)
