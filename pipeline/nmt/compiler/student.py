"""Reads the student models of Firefox Translations: Marian models with a recurrent decoder, made for CPUs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pipeline.errors import ModelError
from pipeline.nmt.compiler.assemble import BIAS, DECODER, ENCODER, HEAD, SHARED, abbreviated, check_complete, float32
from pipeline.nmt.compiler.checkpoint import Architecture, Checkpoint, Quantised, expected_shapes
from pipeline.nmt.compiler.marian import Options, flag, number
from pipeline.nmt.compiler.marian_bin import read_bin

# Marian has no limit. Longer sources are translated in parts, and no translation may be longer.
_MAX_POSITIONS = 1024
_EPSILON = 1e-6  # Marian's (marian-dev, src/tensors/cpu/tensor_operators.cpp)


def read_student(path: Path) -> Checkpoint:
    """Read a model.bin. Its matrices are ``Quantised`` if the file has 8 bits of them.

    Raises:
        ModelError: the file is damaged, or is not a model with a recurrent decoder.
    """
    weights, options = read_bin(path)
    shared = flag(options, "tied-embeddings-all")
    if not (shared or flag(options, "tied-embeddings")):
        raise ModelError(
            f"{path} has an output layer of its own; supported are models that share it with the embedding"
        )
    stored = (SHARED,) if shared else (ENCODER, DECODER)
    if missing := [name for name in (*stored, BIAS) if name not in weights]:
        raise ModelError(f"{path} is incomplete: it lacks the weights {abbreviated(missing)}; fetch it again")
    source, target = weights.pop(stored[0]), weights.pop(stored[-1], None)
    target = source if shared else target
    weights |= {ENCODER: source, DECODER: target, HEAD: target}
    architecture = _architecture(options, (source.shape[0], target.shape[0]), path)
    expected = expected_shapes(architecture)
    if unknown := weights.keys() - expected:
        raise ModelError(f"{path} holds weights that a model of its options does not have: {abbreviated(unknown)}")
    check_complete(weights, expected, path)
    return Checkpoint(
        architecture, {name: _checked(name, weights[name], path) for name in expected}, {}, {}, "Marian bin"
    )


def _checked(name: str, value: Any, path: Path) -> Any:
    return value if isinstance(value, Quantised) else float32(name, value, path)


def _architecture(options: Options, vocabularies: tuple[int, int], path: Path) -> Architecture:
    width, heads = number(options, "dim-emb", path), number(options, "transformer-heads", path)
    if not (width and heads) or width % (8 * heads):
        raise ModelError(f"{path}: {heads} heads do not divide a width of {width} into multiples of 8")
    ffn = number(options, "transformer-dim-ffn", path)
    decoder_ffn = (
        number(options, "transformer-decoder-dim-ffn", path) if "transformer-decoder-dim-ffn" in options else 0
    )
    return Architecture(
        d_model=width,
        encoder_layers=number(options, "enc-depth", path),
        decoder_layers=number(options, "dec-depth", path),
        encoder_heads=heads,
        decoder_heads=heads,
        encoder_ffn=ffn,
        decoder_ffn=decoder_ffn or ffn,
        activation=options.get("transformer-ffn-activation", "swish"),
        embedding_scale=math.sqrt(width),
        max_positions=_MAX_POSITIONS,
        source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1],
        recurrent=True,
        epsilon=_EPSILON,
    )
