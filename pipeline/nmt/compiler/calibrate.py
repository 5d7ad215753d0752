"""Collects the second moments of the inputs of the decoder's linear layers, for fitting 4-bit rounding."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipeline.nmt.compiler.quantize import Moment
from pipeline.nmt.session import open_session

# Enough sentences for several times as many positions as the widest layer has columns (2,048 in opus-mt).
_MAX_SENTENCES = 400


def input_moments(
    encoder: Path,
    step: Path,
    sentences: Sequence[tuple[Sequence[int], Sequence[int]]],
    progress: Callable[[float], None],
) -> dict[str, Moment]:
    """Return the mean of x·xᵀ [columns, columns] over the inputs x of each linear layer, by the layer's name.

    Args:
        encoder: the fp32 encoder graph.
        step: the fp32 step graph, built with ``tapped``, so that it outputs the inputs of its linear layers.
        sentences: source ids and decoder input ids (the start token and the translation) of each sentence.
    """
    encode, decode = open_session(encoder, 0), open_session(step, 0)
    linear_inputs: dict[str, str] = json.loads(decode.get_modelmeta().custom_metadata_map["linear_inputs"])
    tensors = list(dict.fromkeys(linear_inputs.values()))
    kv_outputs = [port.name for port in encode.get_outputs()]
    past = {port.name: port.shape for port in decode.get_inputs() if ".decoder." in port.name}
    sums: dict[str, Moment] = {}
    positions = dict.fromkeys(tensors, 0)
    chosen = sentences[:_MAX_SENTENCES]
    for number, (source, target) in enumerate(chosen):
        progress(number / len(chosen))
        kv = encode.run(kv_outputs, {"input_ids": np.array([source], np.int64)})
        length = len(target)
        inputs = {name.replace("present", "past_key_values"): value for name, value in zip(kv_outputs, kv, strict=True)}
        inputs |= {name: np.zeros((1, heads, length, size), np.float32) for name, (_, heads, _, size) in past.items()}
        inputs |= {
            "input_ids": np.array([target], np.int64),
            "position_ids": np.arange(length)[None],
            "seqlens_k": np.array([length - 1], np.int32),
            "total_sequence_length": np.array([length], np.int32),
        }
        for tensor, value in zip(tensors, decode.run(tensors, inputs), strict=True):
            rows = value.reshape(-1, value.shape[-1]).astype(np.float64)
            sums[tensor] = sums.get(tensor, 0) + rows.T @ rows
            positions[tensor] += len(rows)
    return {layer: sums[tensor] / positions[tensor] for layer, tensor in linear_inputs.items()}
