"""What the decoder's linear layers are fed on real text: the second moments that 4-bit rounding is fitted to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipeline.nmt.compiler.quantize import Moment
from pipeline.nmt.session import open_session

# Sentences are enough when their positions are several times the widest layer (2,048 in opus-mt).
_MOST_SENTENCES = 400


def input_moments(
    encoder: Path,
    step: Path,
    sentences: Sequence[tuple[Sequence[int], Sequence[int]]],
    progress: Callable[[float], None],
) -> dict[str, Moment]:
    """Linear layer → mean of x·xᵀ [columns, columns] over its inputs x.

    Args:
        encoder: the fp32 encoder graph.
        step: the fp32 step graph with its linear inputs tapped.
        sentences: source ids, and what the decoder is fed for them: the start token and the translation.
    """
    encode, decode = open_session(encoder, 0), open_session(step, 0)
    fed: dict[str, str] = json.loads(decode.get_modelmeta().custom_metadata_map["linear_inputs"])
    tensors = list(dict.fromkeys(fed.values()))
    kv_outputs = [port.name for port in encode.get_outputs()]
    past = {port.name: port.shape for port in decode.get_inputs() if ".decoder." in port.name}
    sums: dict[str, Moment] = {}
    positions = dict.fromkeys(tensors, 0)
    chosen = sentences[:_MOST_SENTENCES]
    for number, (source, target) in enumerate(chosen):
        progress(number / len(chosen))
        kv = encode.run(kv_outputs, {"input_ids": np.array([source], np.int64)})
        length = len(target)
        feed = {name.replace("present", "past_key_values"): value for name, value in zip(kv_outputs, kv, strict=True)}
        feed |= {name: np.zeros((1, heads, length, size), np.float32) for name, (_, heads, _, size) in past.items()}
        feed |= {
            "input_ids": np.array([target], np.int64),
            "position_ids": np.arange(length)[None],
            "seqlens_k": np.array([length - 1], np.int32),
            "total_sequence_length": np.array([length], np.int32),
        }
        for tensor, value in zip(tensors, decode.run(tensors, feed), strict=True):
            rows = value.reshape(-1, value.shape[-1]).astype(np.float64)
            sums[tensor] = sums.get(tensor, 0) + rows.T @ rows
            positions[tensor] += len(rows)
    return {layer: sums[tensor] / positions[tensor] for layer, tensor in fed.items()}
