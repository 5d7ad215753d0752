"""The layers of encoder and decoder as nodes of an ONNX graph. Shapes are as in ``pipeline.backends.marian.compile.model_graphs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .checkpoint import FORGET, UPDATE, Architecture, stacked
from .graph import CONTRIB, GraphBuilder, Precision

Declare = Callable[[str, type[np.generic], list[int | str]], str]
"""``GraphBuilder.input`` or ``GraphBuilder.output``."""
HEADS = "attention"
"""``attention.{layer}`` [1, H, T, S]: outputs of a tapped step graph, the cross-attention weights of each layer's heads."""


def head_size(a: Architecture) -> int:
    """The decoder's head size in the graphs, padded with zeros to a multiple of 8 for GroupQueryAttention."""
    return -(-a.d_model // a.decoder_heads // 8) * 8


class Layers:
    """Adds the layers of one side of the network to a graph."""

    def __init__(
        self,
        g: GraphBuilder,
        a: Architecture,
        weights: Mapping[str, Any],
        precision: Precision,
        alignment: tuple[int, int] | None = None,
        *,
        tapped: bool = False,
    ) -> None:
        """``alignment``, ``tapped``: see ``build_step``."""
        self._g, self._a, self._w, self._precision = g, a, weights, precision
        self._alignment, self._tapped = alignment, tapped
        self._scale: float = (a.d_model // a.decoder_heads) ** -0.5
        """Factor of attention scores in the decoder, from the head size of the trained model, without padding."""

    def linear(self, x: str, name: str) -> str:
        return self._g.linear(x, self._w[f"{name}.weight"], self._w[f"{name}.bias"], self._precision, name)

    def feed_forward(self, x: str, prefix: str) -> str:
        hidden, name = self.linear(x, f"{prefix}.fc1"), f"{prefix}.active"
        if self._a.activation == "swish":
            active = self._g.node("QuickGelu", hidden, name=name, domain=CONTRIB, alpha=1.0)
        elif self._a.activation == "relu":
            active = self._g.node("Relu", hidden, name=name)
        else:
            active = self._g.node("Gelu", hidden, name=name, domain=CONTRIB)
        return self._add_and_normalise(x, active, f"{prefix}.fc2", f"{prefix}.final_layer_norm")

    def attend_to_itself(self, x: str, prefix: str) -> str:
        """Self-attention of one encoder layer."""
        parts = [f"{prefix}.{part}" for part in "qkv"]
        self._g.nodes("Split", self._qkv(x, f"{prefix}.self_attn"), outputs=parts, axis=2)
        heads = self._a.encoder_heads
        attended = self._g.node(
            "MultiHeadAttention", *parts, name=f"{prefix}.attended", domain=CONTRIB, num_heads=heads
        )
        return self._add_and_normalise(x, attended, f"{prefix}.self_attn.out_proj", f"{prefix}.self_attn_layer_norm")

    def attend_to_target(self, x: str, layer: int, lengths: tuple[str, str]) -> str:
        """Self-attention of one decoder layer, which extends its KV buffers."""
        prefix, attended = f"decoder.layers.{layer}", f"decoder.layers.{layer}.attended"
        past = self._key_and_value(self._g.input, f"past_key_values.{layer}.decoder", "room")
        present = self._key_and_value(self._g.output, f"present.{layer}.decoder", "room")
        self._g.nodes(
            "GroupQueryAttention",
            *(self._qkv(x, f"{prefix}.self_attn"), "", "", *past, *lengths),
            outputs=[attended, *present],
            domain=CONTRIB,
            num_heads=self._a.decoder_heads,
            kv_num_heads=self._a.decoder_heads,
            scale=self._scale,
        )
        return self._add_and_normalise(x, attended, f"{prefix}.self_attn.out_proj", f"{prefix}.self_attn_layer_norm")

    def attend_to_source(self, x: str, layer: int) -> str:
        """Cross-attention of one decoder layer to the encoder's KV."""
        block = f"decoder.layers.{layer}.encoder_attn"
        cross = self._key_and_value(self._g.input, f"past_key_values.{layer}.encoder", "source")
        query = self.linear(x, f"{block}.q_proj")
        if self._alignment is not None and self._alignment[0] == layer:
            self._add_attention(query, cross[0], "alignment", self._alignment[1])
        if self._tapped:
            self._add_attention(query, cross[0], f"{HEADS}.{layer}")
        attended = self._g.node(
            "MultiHeadAttention",
            *(query, *cross),
            name=f"decoder.layers.{layer}.cross",
            domain=CONTRIB,
            num_heads=self._a.decoder_heads,
            scale=self._scale,
        )
        return self._add_and_normalise(x, attended, f"{block}.out_proj", f"{block}_layer_norm")

    def recur(self, x: str, layer: int) -> str:
        """The SSRU cell of one decoder layer: c' = f · c + (1 - f) · u, with f and u from ``x``."""
        g, w, width, prefix = self._g, self._w, self._a.d_model, f"decoder.layers.{layer}"
        past = g.input(f"past.{layer}", np.float32, [1, "new", width])
        weight = stacked([w[f"{prefix}.{name}.weight"] for name in (FORGET, UPDATE)])
        bias = np.concatenate([w[f"{prefix}.{FORGET}.bias"], np.zeros(width, np.float32)])
        forget, update = f"{prefix}.forget", f"{prefix}.update"
        both = g.linear(x, weight, bias, self._precision, f"{prefix}.rnn")
        g.nodes("Split", both, outputs=[forget, update], axis=2)
        kept = g.node("Sigmoid", forget, name=f"{prefix}.kept")
        change = g.node("Mul", kept, g.node("Sub", past, update, name=f"{prefix}.difference"), name=f"{prefix}.change")
        cell = g.output(g.node("Add", update, change, name=f"present.{layer}"), np.float32, [1, "new", width])
        active = g.node("Relu", cell, name=f"{prefix}.cell_active")
        return self._normalise_sum(x, active, f"{prefix}.self_attn_layer_norm")

    def _qkv(self, x: str, prefix: str) -> str:
        """Query, key and value in one product: [1, T, 3 · H · D]."""
        weight = stacked([self._w[f"{prefix}.{part}_proj.weight"] for part in "qkv"])
        bias = np.concatenate([self._w[f"{prefix}.{part}_proj.bias"] for part in "qkv"])
        return self._g.linear(x, weight, bias, self._precision, f"{prefix}.qkv")

    def _key_and_value(self, declare: Declare, name: str, length: str) -> list[str]:
        """Declare a decoder layer's keys and values [1, H, length, D] as inputs or outputs of the graph."""
        shape: list[int | str] = [1, self._a.decoder_heads, length, head_size(self._a)]
        return [declare(f"{name}.{kind}", np.float32, shape) for kind in ("key", "value")]

    def _add_attention(self, query: str, key: str, name: str, head: int | None = None) -> None:
        """Add the cross-attention weights of a layer as an output: [1, T, S] of one head, or [1, H, T, S] of all."""
        g, heads = self._g, self._a.decoder_heads
        shape = g.constant(f"{name}.shape", np.array([1, -1, heads, head_size(self._a)], np.int64))
        split, of_all = g.node("Reshape", query, shape, name=f"{name}.split"), [heads] if head is None else []
        if head is None:
            query = g.node("Transpose", split, name=f"{name}.query", perm=[0, 2, 1, 3])
        else:
            index = g.constant(f"{name}.head", np.array(head, np.int64))
            query = g.node("Gather", split, index, name=f"{name}.query", axis=2)
            key = g.node("Gather", key, index, name=f"{name}.key", axis=1)
        scores = g.node("FusedMatMul", query, key, name=f"{name}.scores", domain=CONTRIB, transB=1, alpha=self._scale)
        g.output(g.node("Softmax", scores, name=name, axis=-1), np.float32, [1, *of_all, "new", "source"])

    def _add_and_normalise(self, x: str, y: str, linear: str, norm: str) -> str:
        """Layer normalisation of the sum of ``x`` and ``linear`` of ``y``."""
        if self._a.recurrent:
            return self._normalise_sum(x, self.linear(y, linear), norm)
        product = self._g.linear(y, self._w[f"{linear}.weight"], None, self._precision, linear)
        names = [*self._norm_parameters(norm), self._g.constant(f"{norm}.skip", self._w[f"{linear}.bias"])]
        return self._g.node(
            "SkipLayerNormalization", product, x, *names, name=norm, domain=CONTRIB, epsilon=self._a.epsilon
        )

    def _normalise_sum(self, x: str, y: str, norm: str) -> str:
        """Layer normalisation of the sum of ``x`` and ``y``, in a quarter of the time of SkipLayerNormalization (14 rows)."""
        total = self._g.node("Add", y, x, name=f"{norm}.sum")
        return self._g.node(
            "LayerNormalization", total, *self._norm_parameters(norm), name=norm, epsilon=self._a.epsilon
        )

    def _norm_parameters(self, norm: str) -> list[str]:
        return [self._g.constant(f"{norm}.{name}", self._w[f"{norm}.{name}"]) for name in ("weight", "bias")]
