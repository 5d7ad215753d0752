"""A Marian checkpoint in a form independent of its file format: sizes, fp32 weights, settings, tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
UPDATE, FORGET = "rnn.update", "rnn.forget"
"""Linear layers of a recurrent decoder layer."""


@dataclass(frozen=True, eq=False)
class QuantisedMatrix:
    """A matrix in 8 bits, as it is stored in a file."""

    values: NDArray[np.int8]
    """[rows, columns]"""
    scales: Array
    """[rows]: a row is its values times its scale."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def dense(matrix: Array | QuantisedMatrix) -> Array:
    """A matrix in fp32."""
    return matrix.values * matrix.scales[:, None] if isinstance(matrix, QuantisedMatrix) else matrix


def stacked(matrices: Sequence[Array | QuantisedMatrix]) -> Array | QuantisedMatrix:
    """The rows of several matrices in one, in 8 bits if all are."""
    quantised = [matrix for matrix in matrices if isinstance(matrix, QuantisedMatrix)]
    if len(quantised) < len(matrices):
        return np.concatenate([dense(matrix) for matrix in matrices])
    values = np.concatenate([matrix.values for matrix in quantised])
    return QuantisedMatrix(values, np.concatenate([matrix.scales for matrix in quantised]))


@dataclass(frozen=True)
class Architecture:
    """The sizes and options that the graphs are built from.

    Layers normalise after the residual (post-norm), as in all Marian models that transformers supports. Positions are
    sinusoidal.
    """

    d_model: int
    encoder_layers: int
    decoder_layers: int
    encoder_heads: int
    decoder_heads: int
    encoder_ffn: int
    decoder_ffn: int
    activation: str
    """"swish", "relu" or "gelu"."""
    embedding_scale: float
    """Factor of the embeddings: sqrt(d_model), or 1 if the checkpoint does not scale them."""
    max_positions: int
    source_vocabulary: int
    """Rows of the encoder's embedding."""
    target_vocabulary: int
    """Rows of the decoder's embedding and of the output projection."""
    recurrent: bool = False
    """The decoder's layers have an SSRU cell in place of self-attention (Kim et al. 2019, "From Research to Production and
    Back: Ludicrously Fast Neural Machine Translation"): a state of d_model numbers each, whatever the length."""
    epsilon: float = 1e-5
    """Added to the variance in layer normalisation. The default is that of torch.nn.LayerNorm, which transformers uses."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A complete, checked Marian model."""

    architecture: Architecture
    weights: Mapping[str, Any]
    """Arrays in fp32, and matrices that are ``QuantisedMatrix`` in the source. Weights by transformers' names without the leading ``model.``; matrices are [out, in].

    Always present, tied or not (tied ones are the same array object): ``encoder.embed_tokens.weight``
    [source_vocabulary, d_model], ``decoder.embed_tokens.weight`` [target_vocabulary, d_model], ``lm_head.weight``
    [target_vocabulary, d_model], ``final_logits_bias`` [target_vocabulary]. For each encoder layer,
    ``encoder.layers.{i}.`` + ``self_attn.{q,k,v,out}_proj``, ``self_attn_layer_norm``, ``fc1``, ``fc2``,
    ``final_layer_norm``, each ``.weight`` and ``.bias``. For each decoder layer, those and
    ``encoder_attn.{q,k,v,out}_proj``, ``encoder_attn_layer_norm``; a recurrent one has ``rnn.{update,forget}`` in place of
    ``self_attn``, the former without a bias. Position embeddings are computed, not stored.
    """
    config: Mapping[str, Any]
    """The content of config.json in transformers' format; generated if the source has none."""
    files: Mapping[str, bytes]
    """The other files of a model directory by name: source.spm, target.spm, vocab.json and, if present,
    target_vocab.json, generation_config.json, tokenizer_config.json."""
    origin: str
    """The source format, part of the graphs' metadata: "safetensors", "PyTorch", "ONNX (merged)", "ONNX (split)", "Marian bin"."""


def expected_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """The shape of every weight that a checkpoint of this architecture must have, by name."""
    a = architecture
    d = a.d_model
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.embed_tokens.weight": (a.source_vocabulary, d),
        "decoder.embed_tokens.weight": (a.target_vocabulary, d),
        "lm_head.weight": (a.target_vocabulary, d),
        "final_logits_bias": (a.target_vocabulary,),
    }
    sides = (("encoder", a.encoder_layers, a.encoder_ffn), ("decoder", a.decoder_layers, a.decoder_ffn))
    for side, layers, ffn in sides:
        blocks = ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn")
        recurrent = a.recurrent and side == "decoder"
        attending = blocks[1:] if recurrent else blocks
        linear = {f"{block}.{name}_proj": (d, d) for block in attending for name in ("q", "k", "v", "out")}
        linear |= {"fc1": (ffn, d), "fc2": (d, ffn)} | ({FORGET: (d, d), UPDATE: (d, d)} if recurrent else {})
        norms = [*(f"{block}_layer_norm" for block in blocks), "final_layer_norm"]
        for layer in range(layers):
            prefix = f"{side}.layers.{layer}"
            for name, (rows, columns) in linear.items():
                shapes |= {f"{prefix}.{name}.weight": (rows, columns), f"{prefix}.{name}.bias": (rows,)}
            for name in norms:
                shapes |= {f"{prefix}.{name}.weight": (d,), f"{prefix}.{name}.bias": (d,)}
            shapes.pop(f"{prefix}.{UPDATE}.bias", None)
    return shapes
