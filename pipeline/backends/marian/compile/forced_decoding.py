"""What the fp32 graphs show when they are run over whole translations: the best alignment head, and the inputs of layers.

The alignment head is that of the decoder's cross-attention which tells best which source token the next target token
translates. The reference is found without attention: a target token translates the source token without which it is least
probable. Cf. Li et al. 2019, "On the Word Alignment from Neural Machine Translation", prediction difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...onnx_session import open_session
from .layers import HEADS
from .quantize import Moment

# Sentences to choose a head by, and their length in tokens: each source token takes a run.
_HEAD_SENTENCES, _HEAD_TOKENS = 24, 32
# Target tokens that depend on no source token by more than this, in nats, are left out: punctuation, function words.
_LEAST_EFFECT = 1.0
# With fewer target tokens than this, the best of many heads may be right by chance.
_LEAST_TOKENS = 30
# Enough sentences for several times as many positions as the widest layer has columns (2,048 in opus-mt).
_MOMENT_SENTENCES = 400

ForcedPairs = Sequence[tuple[Sequence[int], Sequence[int]]]
"""Source ids and decoder input ids of each sentence: the start token, and the translation."""


@dataclass(frozen=True)
class AlignmentHead:
    """A head of the decoder's cross-attention."""

    layer: int
    head: int
    agreement: float
    """Share of the target tokens for which the head looks most at the source token without which they are least probable."""


class TappedModel:
    """The fp32 encoder graph, and the step graph that was built with ``tapped``; run over whole sentences."""

    def __init__(self, encoder: Path, step: Path) -> None:
        self._encode, self._decode = open_session(encoder, 0), open_session(step, 0)
        self._kv = [port.name for port in self._encode.get_outputs()]
        self._past = {port.name: port.shape for port in self._decode.get_inputs() if ".decoder." in port.name}
        names = [port.name for port in self._decode.get_outputs() if port.name.startswith(f"{HEADS}.")]
        self._attention = [f"{HEADS}.{layer}" for layer in range(len(names))]
        (output_ids,) = self._run([0], self._encoded([0]), ["output_ids"])
        self._row_of = {index: row for row, index in enumerate(output_ids.tolist())}

    def best_head(self, sentences: ForcedPairs, progress: Callable[[float], None]) -> AlignmentHead | None:
        """The best head on some sentences, whose translations have their end token; None if they say too little."""
        chosen = [pair for pair in sentences if 2 < len(pair[0]) <= _HEAD_TOKENS and len(pair[1]) > 2][:_HEAD_SENTENCES]
        right: NDArray[np.float64] | None = None
        counted = 0
        for number, (source, target) in enumerate(chosen):
            progress(number / len(chosen))
            effects, attention = self._measured(source, target)
            clear = effects.max(axis=1) > _LEAST_EFFECT
            right_here = attention[:, :, clear, :-1].argmax(axis=3) == effects[clear].argmax(axis=1)
            counted += int(clear.sum())
            right = right_here.sum(axis=2) + (0 if right is None else right)
        if right is None or counted < _LEAST_TOKENS:
            return None
        layer, head = np.unravel_index(int(right.argmax()), right.shape)
        return AlignmentHead(int(layer), int(head), float(right.max()) / counted)

    def input_moments(self, sentences: ForcedPairs, progress: Callable[[float], None]) -> dict[str, Moment]:
        """The mean of x·xᵀ [columns, columns] over the inputs x of each linear layer, by the layer's name."""
        linear_inputs: dict[str, str] = json.loads(self._decode.get_modelmeta().custom_metadata_map["linear_inputs"])
        tensors = list(dict.fromkeys(linear_inputs.values()))
        sums: dict[str, Moment] = {}
        positions = dict.fromkeys(tensors, 0)
        chosen = sentences[:_MOMENT_SENTENCES]
        for number, (source, target) in enumerate(chosen):
            progress(number / len(chosen))
            for tensor, value in zip(tensors, self._run(target, self._encoded(source), tensors), strict=True):
                rows = value.reshape(-1, value.shape[-1]).astype(np.float64)
                sums[tensor] = sums.get(tensor, 0) + rows.T @ rows
                positions[tensor] += len(rows)
        return {layer: sums[tensor] / positions[tensor] for layer, tensor in linear_inputs.items()}

    def _measured(
        self, source: Sequence[int], target: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """By how much each target token is less probable without each source token, in nats: [T, S - 1], without the end
        token of the source; and the attention of each head when the token is chosen: [layers, heads, T, S]."""
        kv, given, wanted = self._encoded(source), list(target[:-1]), [self._row_of[token] for token in target[1:]]
        logits, *attention = self._run(given, kv, ["logits", *self._attention])
        whole = _log_probabilities(logits, wanted)
        effects = [
            whole
            - _log_probabilities(self._run(given, [np.delete(each, at, axis=2) for each in kv], ["logits"])[0], wanted)
            for at in range(len(source) - 1)
        ]
        return np.stack(effects, axis=1), np.stack([value[0] for value in attention])

    def _encoded(self, source: Sequence[int]) -> list[NDArray[np.float32]]:
        kv: list[NDArray[np.float32]] = self._encode.run(self._kv, {"input_ids": np.array([source], np.int64)})
        return kv

    def _run(
        self, tokens: Sequence[int], kv: Sequence[NDArray[np.float32]], outputs: Sequence[str]
    ) -> list[NDArray[Any]]:
        length = len(tokens)
        inputs: dict[str, NDArray[Any]] = {
            name.replace("present", "past_key_values"): value for name, value in zip(self._kv, kv, strict=True)
        }
        inputs |= {
            name: np.zeros((1, heads, length, size), np.float32) for name, (_, heads, _, size) in self._past.items()
        }
        inputs |= {
            "input_ids": np.array([tokens], np.int64),
            "position_ids": np.arange(length)[None],
            "seqlens_k": np.array([length - 1], np.int32),
            "total_sequence_length": np.array([length], np.int32),
        }
        values: list[NDArray[Any]] = self._decode.run(list(outputs), inputs)
        return values


def _log_probabilities(logits: NDArray[Any], wanted: Sequence[int]) -> NDArray[np.float64]:
    """The log-probability of the wanted row after each token."""
    scores = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    log_probabilities: NDArray[np.float64] = scores[np.arange(len(wanted)), wanted] - np.log(np.exp(scores).sum(axis=1))
    return log_probabilities
