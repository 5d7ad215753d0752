"""Builds the two graphs of the streaming layout.

``encoder``: source ids → the cross-attention keys and values of every decoder layer, run once per sentence.
``step``: new target ids and the KV so far → after each, the next token and its log-probability (and all scores, if
requested).

The batch size is always 1. In shapes, S is the source length, T the number of new target tokens, P the capacity of the
KV buffers, H the number of heads, D the head size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from .assemble import sinusoids
from .checkpoint import Architecture, Array, Checkpoint
from .graph import CONTRIB, GraphBuilder, Precision
from .layers import Layers, head_size
from .quantize import Moment

# Number of best output rows that are recomputed if the output projection is quantised.
_RESCORED_ROWS = 32


@dataclass(frozen=True)
class Precisions:
    """The precision of each part of the model."""

    encoder: Precision
    decoder: Precision
    output: Precision
    """The output projection."""
    embedding: Precision
    """Both embeddings: INT8 or FP32."""


Rows = NDArray[np.int64]
"""[rows], ascending: the target ids that the step graph can take and produce."""


def _pad_heads(checkpoint: Checkpoint) -> dict[str, Any]:
    """The weights, with zero rows and columns that pad the decoder's heads. The padding does not change the results."""
    a = checkpoint.architecture
    weights = dict(checkpoint.weights)
    size, padded_size = a.d_model // a.decoder_heads, head_size(a)

    def padded(weight: Array) -> Array:
        heads = weight.reshape(a.decoder_heads, size, *weight.shape[1:])
        padding = np.zeros((a.decoder_heads, padded_size - size, *weight.shape[1:]), np.float32)
        return np.concatenate([heads, padding], axis=1).reshape(-1, *weight.shape[1:])

    if size == padded_size:
        return weights
    for layer in range(a.decoder_layers):
        for block in ("self_attn", "encoder_attn"):
            prefix = f"decoder.layers.{layer}.{block}"
            for name in (f"{prefix}.{part}_proj.{kind}" for part in "qkv" for kind in ("weight", "bias")):
                weights[name] = padded(weights[name])
            out = f"{prefix}.out_proj.weight"
            weights[out] = np.ascontiguousarray(padded(weights[out].T).T)
    return weights


def build_encoder(checkpoint: Checkpoint, precisions: Precisions) -> onnx.ModelProto:
    """Build ``input_ids`` [1, S] → ``present.{layer}.encoder.{key,value}`` [1, H, S, D] for each decoder layer.

    The graph keeps all ids: in a joint vocabulary, text without a piece in source.spm may be a target piece (汤姆 in an
    English text). For a recurrent decoder, it takes ``embedded`` [1, S, d_model] in place of ids.
    """
    a, w = checkpoint.architecture, _pad_heads(checkpoint)
    g = GraphBuilder("encoder")
    net = Layers(g, a, w, precisions.encoder)
    if a.recurrent:
        x = g.input("embedded", np.float32, [1, "source", a.d_model])
    else:
        ids = g.input("input_ids", np.int64, [1, "source"])
        x = _embed(g, ids, w["encoder.embed_tokens.weight"], a, precisions.embedding)
        length = g.node("Shape", ids, name="length", start=1, end=2)
        table = g.constant("positions", sinusoids(a.max_positions, a.d_model)[None])
        begin, axis = g.constant("begin", np.zeros(1, np.int64)), g.constant("axis", np.ones(1, np.int64))
        x = g.node("Add", x, g.node("Slice", table, begin, length, axis, name="here"), name="embedded")
    for layer in range(a.encoder_layers):
        x = net.attend_to_itself(x, f"encoder.layers.{layer}")
        x = net.feed_forward(x, f"encoder.layers.{layer}")
    shape = g.constant("heads", np.array([1, -1, a.decoder_heads, head_size(a)], np.int64))
    for layer in range(a.decoder_layers):
        for kind in ("key", "value"):
            name = f"decoder.layers.{layer}.encoder_attn.{kind[0]}_proj"
            split = g.node("Reshape", net.linear(x, name), shape, name=f"{name}.split")
            out = g.node("Transpose", split, name=f"present.{layer}.encoder.{kind}", perm=[0, 2, 1, 3])
            g.output(out, np.float32, [1, a.decoder_heads, "source", head_size(a)])
    return g.build(_metadata(checkpoint, precisions))


def build_step(
    checkpoint: Checkpoint,
    rows: Rows,
    precisions: Precisions,
    pad: int,
    moments: Mapping[str, Moment] | None = None,
    *,
    alignment: tuple[int, int] | None = None,
    tapped: bool = False,
) -> onnx.ModelProto:
    """Build the decoder, which takes T new tokens after those whose KV is in the buffers.

    Inputs: ``input_ids`` [1, T] and ``position_ids`` [1, T] int64; ``seqlens_k`` [1] int32, the number of positions
    including the new ones, minus 1; ``total_sequence_length`` [1] int32, that number itself; for each layer
    ``past_key_values.{layer}.encoder.{key,value}`` [1, H, S, D] and ``past_key_values.{layer}.decoder.{key,value}``
    [1, H, P, D].

    Outputs, after each new token: ``token`` [T] int64, the most probable next one except ``pad``, and its
    ``log_probability`` [T]; ``logits`` [T, rows], minus infinity for ``pad``. Also ``output_ids`` [rows], the id of each
    row; for each layer ``present.{layer}.decoder.{key,value}``. These may be bound to the past's buffers, which are then
    extended in place.

    ``alignment``, a (layer, head), adds the output ``alignment`` [1, T, S]: the attention weights of that head of
    cross-attention.

    ``moments`` of the inputs of linear layers, by the layer's name, improve 4-bit weights; see ``quantize_blocks``.
    ``tapped`` adds the input of each linear layer as an output, listed in the metadata, to compute the moments from; and the
    cross-attention of each layer, to choose an alignment head by.
    """
    a, w = checkpoint.architecture, _pad_heads(checkpoint)
    g = GraphBuilder("step", moments)
    ids = g.input("input_ids", np.int64, [1, "new"])
    positions = g.input("position_ids", np.int64, [1, "new"])
    lengths = (g.input("seqlens_k", np.int32, [1]), g.input("total_sequence_length", np.int32, [1]))
    # len(rows) is out of range, so that the run fails for an id without a row.
    row_of = np.full(a.target_vocabulary, len(rows), np.int32)
    row_of[rows] = np.arange(len(rows))
    row = g.node("Gather", g.constant("row_of", row_of), ids, name="row")
    x = _embed(g, row, w["decoder.embed_tokens.weight"][rows], a, precisions.embedding)
    table = g.constant("positions", sinusoids(a.max_positions, a.d_model))
    x = g.node("Add", x, g.node("Gather", table, positions, name="here"), name="embedded")
    net = Layers(g, a, w, precisions.decoder, alignment, tapped=tapped)
    for layer in range(a.decoder_layers):
        x = net.attend_to_target(x, layer, lengths)
        x = net.attend_to_source(x, layer)
        x = net.feed_forward(x, f"decoder.layers.{layer}")
    _choose_token(g, x, checkpoint, rows, precisions, pad)
    metadata = _metadata(checkpoint, precisions) | {"vocabulary": str(a.target_vocabulary), "pad_token": str(pad)}
    if tapped:
        for tensor in dict.fromkeys(g.linear_inputs.values()):
            g.output(tensor, np.float32, [1, "new", "width"] if tensor != "final" else ["new", "width"])
        metadata["linear_inputs"] = json.dumps(g.linear_inputs)
    return g.build(metadata)


def build_recurrent_step(checkpoint: Checkpoint, precisions: Precisions, *, shortlisted: bool) -> onnx.ModelProto:
    """Build a recurrent decoder, which takes the newest token of each hypothesis of a sentence.

    Inputs: ``embedded`` [1, new, d_model]; for each layer ``past.{layer}`` [1, new, d_model] and
    ``past_key_values.{layer}.encoder.{key,value}`` [1, H, S, D]; if ``shortlisted``, the ``rows`` [rows, d_model] of the
    output projection and their ``biases`` [rows], which are else those of the whole vocabulary.

    Outputs: ``logits`` [new, rows]; ``best`` [new, 1], the row with the highest one, ``best_logit`` [new, 1], and ``total`` [new, 1], the logarithm of the sum of all exponentials; ``alignment`` [1, new, S], the attention weights of the first head of
    the last layer; for each layer ``present.{layer}``, which may be bound to the past's buffer.
    """
    a, w = checkpoint.architecture, checkpoint.weights
    g = GraphBuilder("step")
    x = g.input("embedded", np.float32, [1, "new", a.d_model])
    net = Layers(g, a, w, precisions.decoder, (a.decoder_layers - 1, 0))
    for layer in range(a.decoder_layers):
        x = net.recur(x, layer)
        x = net.attend_to_source(x, layer)
        x = net.feed_forward(x, f"decoder.layers.{layer}")
    final = g.node("Squeeze", x, g.constant("batch", np.zeros(1, np.int64)), name="final")
    if shortlisted:
        rows = g.input("rows", np.float32, ["rows", a.d_model])
        logits = g.node("Gemm", final, rows, g.input("biases", np.float32, ["rows"]), name="logits", transB=1)
    else:
        logits = g.linear(final, w["lm_head.weight"], w["final_logits_bias"], precisions.output, "logits")
    g.nodes("TopK", logits, g.constant("one", np.ones(1, np.int64)), outputs=["best_logit", "best"], axis=1)
    g.node("ReduceLogSumExp", logits, name="total", axes=[1])
    g.output(logits, np.float32, ["new", "rows"])
    g.output("best_logit", np.float32, ["new", 1])
    g.output("best", np.int64, ["new", 1])
    g.output("total", np.float32, ["new", 1])
    return g.build(_metadata(checkpoint, precisions))


def _choose_token(g: GraphBuilder, x: str, checkpoint: Checkpoint, ids: Rows, precisions: Precisions, pad: int) -> None:
    """Add the output projection, and after each new token the chosen one with its log-probability."""
    w = checkpoint.weights
    one = g.constant("one", np.ones(1, np.int64))
    final = g.node("Squeeze", x, g.constant("batch", np.zeros(1, np.int64)), name="final")
    bias = w["final_logits_bias"][ids].copy()
    # Mask pad: the logit of its row is always 0, which is sometimes the highest.
    bias[ids == pad] = -np.inf
    rows = w["lm_head.weight"][ids]
    # TopK is faster than ArgMax. It takes logits, because log-probabilities may be equal after rounding.
    if precisions.output is Precision.FP32:
        logits = g.linear(final, rows, bias, precisions.output, "logits")
        g.nodes("TopK", logits, one, outputs=["best_logit", "best"], axis=1)
    else:
        coarse = g.linear(final, rows, bias, precisions.output, "coarse_logits")
        scores = _rescore(g, final, coarse, checkpoint, rows, precisions.embedding)
        logits = g.node("ScatterElements", coarse, "candidates", scores, name="logits", axis=1)
        g.nodes("TopK", scores, one, outputs=["best_logit", "best_candidate"], axis=1)
        g.node("GatherElements", "candidates", "best_candidate", name="best", axis=1)
    row = g.node("Squeeze", "best", one, name="row_of_best")
    g.node("Gather", g.constant("ids", ids), row, name="token")
    g.node("Identity", "ids", name="output_ids")
    log_probabilities = g.node("LogSoftmax", logits, name="log_probabilities", axis=1)
    log_probability = g.node("GatherElements", log_probabilities, "best", name="best_log_probability", axis=1)
    g.node("Squeeze", log_probability, one, name="log_probability")
    g.output("token", np.int64, ["new"])
    g.output("log_probability", np.float32, ["new"])
    g.output("output_ids", np.int64, [len(ids)])
    g.output("logits", np.float32, ["new", len(ids)])


def _rescore(
    g: GraphBuilder, final: str, coarse: str, checkpoint: Checkpoint, rows: Array, precision: Precision
) -> str:
    """Recompute the best of the ``coarse`` logits with rows of higher precision: [T, candidates]."""
    w, scale = checkpoint.weights, np.float32(checkpoint.architecture.embedding_scale)
    table = "embedding"
    if w["lm_head.weight"] is not w["decoder.embed_tokens.weight"]:
        table = g.table("output", rows, scale, precision)
    count, width = min(_RESCORED_ROWS, len(rows)), rows.shape[1]
    g.nodes(
        "TopK", coarse, g.constant("few", np.array([count], np.int64)), outputs=["coarse_best", "candidates"], axis=1
    )
    found = g.look_up(table, "candidates", width, precision, "candidate")
    by_position = g.constant("by_position", np.array([-1, count, width], np.int64))
    exact = g.node("Reshape", found, by_position, name="candidates_by_position")
    unscaled = g.node("Mul", final, g.constant("unscale", np.array(1 / scale, np.float32)), name="final_unscaled")
    query = g.node("Unsqueeze", unscaled, "one", name="final_by_position")
    product = g.node("FusedMatMul", query, exact, name="candidate_products", domain=CONTRIB, transB=1)
    flat = g.node("Squeeze", product, "one", name="candidate_scores")
    biases = g.node("Gather", "coarse_logits.bias", "candidates", name="candidate_biases")
    return g.node("Add", flat, biases, name="rescored")


def _embed(g: GraphBuilder, row: str, weight: Array, a: Architecture, precision: Precision) -> str:
    """Look up scaled rows of ``weight``, [1, T, d_model], by their indices [1, T]."""
    table = g.table("embedding", weight, np.float32(a.embedding_scale), precision)
    return g.look_up(table, row, a.d_model, precision, "embedded_id")


def _metadata(checkpoint: Checkpoint, precisions: Precisions) -> dict[str, str]:
    parts = {name: part.value for name, part in vars(precisions).items()}
    return {"layout": "streaming 1", "precision": json.dumps(parts), "origin": checkpoint.origin}
