"""Assembles a Checkpoint from arrays and a config, and checks that they are complete, known and consistent."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError
from .checkpoint import Architecture, Array, Checkpoint, expected_shapes

ENCODER, DECODER, HEAD = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"
SHARED = "shared.weight"
"""transformers' name of an embedding that encoder and decoder share."""
BIAS = "final_logits_bias"
POSITIONS = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")

# silu is transformers' other name for swish. transformers' gelu is the exact one, computed with the error function.
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
# Options of the BART family that change the computation → the only value that Marian's graphs support.
_REQUIRED_OPTIONS: dict[str, Any] = {
    "normalize_before": False,
    "normalize_embedding": False,
    "layernorm_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "tie_encoder_decoder": False,
    "is_encoder_decoder": True,
}
_MAX_SIZE = 10_000_000
# Rounding a sine to bfloat16 changes it by up to 2^-9. Another formula, or trained positions, differ by far more.
_POSITION_TOLERANCE = 2**-8


def assemble(
    weights: Mapping[str, NDArray[Any]], config: Mapping[str, Any], files: Mapping[str, bytes], origin: str, place: Path
) -> Checkpoint:
    """Check the model that was read from ``place`` and build its Checkpoint.

    ``weights`` have transformers' names without the leading ``model.`` and any floating-point type. A tied matrix may
    be present under one of its names or under several.
    """
    architecture = read_architecture(config, place)
    expected = expected_shapes(architecture)
    share = _flag(config, "share_encoder_decoder_embeddings", True, place)
    tied = _flag(config, "tie_word_embeddings", True, place)
    known = {*expected, *POSITIONS} | ({SHARED} if share else set())
    if unknown := weights.keys() - known:
        raise ModelError(
            f"{place} holds weights that a Marian model of this config does not have: {abbreviated(unknown)}; "
            "only models that transformers calls Marian can be compiled"
        )
    converted = {name: float32(name, value, place) for name, value in weights.items()}
    for name in POSITIONS:
        if name in converted:
            _check_positions(name, converted.pop(name), architecture, place)
    if converted.get(BIAS, np.empty(0)).ndim == 2 and len(converted[BIAS]) == 1:
        converted[BIAS] = converted[BIAS][0]
    _tie(converted, share, tied, place)
    check_complete(converted, expected, place)
    source, target = _vocabulary_sizes(files, architecture, place)
    if (source, target) != (architecture.source_vocabulary, architecture.target_vocabulary):
        converted |= _trim_to_vocabulary(converted, source, target)
        architecture = replace(architecture, source_vocabulary=source, target_vocabulary=target)
        config = {**config, "vocab_size": source, "decoder_vocab_size": target}
    return Checkpoint(architecture, {name: converted[name] for name in expected}, dict(config), dict(files), origin)


def check_complete(weights: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]], place: Path) -> None:
    """Check the names and shapes of the weights that were read from ``place``."""
    if missing := expected.keys() - weights.keys():
        raise ModelError(
            f"{place} is incomplete: it lacks the weights {abbreviated(missing)}; fetch the checkpoint again"
        )
    for name, shape in expected.items():
        if weights[name].shape != shape:
            raise ModelError(
                f"{place}: {name} has the shape {list(weights[name].shape)}, its config expects {list(shape)}; "
                "weights and config must be of the same model"
            )


def read_architecture(config: Mapping[str, Any], place: Path) -> Architecture:
    """Read sizes and options from a config in transformers' format."""
    if (kind := config.get("model_type")) != "marian":
        raise ModelError(
            f"{place} holds a model of the type {kind!r}; only Marian models (model_type marian, such as opus-mt) "
            "can be compiled"
        )
    for key, required in _REQUIRED_OPTIONS.items():
        if config.get(key, required) not in (required, None):
            raise ModelError(f"{place}: the config says {key} {config[key]!r}; only {required!r} can be compiled")
    for key in ("quantization_config", "pruned_heads"):
        if config.get(key):
            raise ModelError(f"{place}: the config has {key}; give the original checkpoint, not quantised or pruned")
    activation = config.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise ModelError(
            f"{place}: the activation function is {activation!r}; supported are {', '.join(sorted(_ACTIVATIONS))}"
        )
    width = _size(config, "d_model", place)
    vocabulary = _size(config, "vocab_size", place)
    architecture = Architecture(
        d_model=width,
        encoder_layers=_size(config, "encoder_layers", place, 1000),
        decoder_layers=_size(config, "decoder_layers", place, 1000),
        encoder_heads=_size(config, "encoder_attention_heads", place),
        decoder_heads=_size(config, "decoder_attention_heads", place),
        encoder_ffn=_size(config, "encoder_ffn_dim", place),
        decoder_ffn=_size(config, "decoder_ffn_dim", place),
        activation=_ACTIVATIONS[activation],
        embedding_scale=math.sqrt(width) if _flag(config, "scale_embedding", False, place) else 1.0,
        max_positions=_size(config, "max_position_embeddings", place),
        source_vocabulary=vocabulary,
        target_vocabulary=_size(config, "decoder_vocab_size", place)
        if config.get("decoder_vocab_size")
        else vocabulary,
    )
    for key in ("encoder_attention_heads", "decoder_attention_heads"):
        if width % config[key]:
            raise ModelError(
                f"{place}: d_model {width} is not divisible by {key} {config[key]}; fetch config.json again"
            )
    return architecture


def sinusoids(positions: int, d_model: int) -> Array:
    """Position embeddings as transformers computes them for Marian, [positions, d_model]: sines first, then cosines."""
    return _sinusoids(positions, d_model, d_model // 2)


def marian_sinusoids(positions: int, d_model: int) -> Array:
    """Position embeddings as Marian computes them: the slowest wave has a wavelength of 10,000 · 2π positions."""
    return _sinusoids(positions, d_model, d_model // 2 - 1)


def _sinusoids(positions: int, d_model: int, steps: int) -> Array:
    angle = np.arange(positions)[:, None] / np.power(10_000, np.arange(-(-d_model // 2)) / steps)
    return np.concatenate([np.sin(angle), np.cos(angle[:, : d_model // 2])], axis=1).astype(np.float32)


def float32(name: str, value: NDArray[Any], place: Path) -> Array:
    if value.dtype.name not in ("float64", "float32", "float16", "bfloat16"):
        raise ModelError(f"{place}: {name} is stored as {value.dtype} (quantised); give the checkpoint in fp32 or fp16")
    array: Array = np.ascontiguousarray(value, dtype=np.float32)
    # Checking the extremes avoids a boolean array of the weights' size.
    if not (array.size and np.isfinite(array.min()) and np.isfinite(array.max())):
        raise ModelError(f"{place}: {name} is empty or holds values that are not finite; fetch the checkpoint again")
    return array


def _check_positions(name: str, stored: Array, architecture: Architecture, place: Path) -> None:
    computed = sinusoids(architecture.max_positions, architecture.d_model)
    if stored.shape != computed.shape:
        raise ModelError(
            f"{place}: {name} has the shape {list(stored.shape)}, its config expects {list(computed.shape)}; "
            "weights and config.json must be of the same model"
        )
    if np.abs(stored - computed).max() > _POSITION_TOLERANCE:
        raise ModelError(
            f"{place}: {name} does not hold sinusoids; models with trained or other positions cannot be compiled"
        )


def _tie(arrays: dict[str, Array], share: bool, tied: bool, place: Path) -> None:
    """Map every name of a tied matrix to the one stored array. Several stored copies must be equal."""
    head = (HEAD,) if tied else ()
    for group in ((SHARED, ENCODER, DECODER, *head),) if share else ((DECODER, *head),):
        stored = [name for name in group if name in arrays]
        for name in stored[1:]:
            if not np.array_equal(arrays[name], arrays[stored[0]]):
                raise ModelError(
                    f"{place}: {stored[0]} and {name} differ, but the config ties them "
                    f"(share_encoder_decoder_embeddings {share}, tie_word_embeddings {tied}); "
                    "weights and config.json must be of the same model"
                )
        if stored:
            arrays |= dict.fromkeys(group, arrays[stored[0]])
    arrays.pop(SHARED, None)


def _trim_to_vocabulary(arrays: Mapping[str, Array], source: int, target: int) -> dict[str, Array]:
    """Cut the arrays that have one row per token to the vocabulary sizes: fine-tuning may leave unused padding rows."""
    sizes = {ENCODER: source, DECODER: target, HEAD: target, BIAS: target}
    trimmed: dict[tuple[int, int], Array] = {}  # tied arrays stay one object
    return {name: trimmed.setdefault((id(arrays[name]), size), arrays[name][:size]) for name, size in sizes.items()}


def _vocabulary_sizes(files: Mapping[str, bytes], architecture: Architecture, place: Path) -> tuple[int, int]:
    """Sizes of the source and target vocabularies; without the file, the rows of the embedding."""
    target = "target_vocab.json" if "target_vocab.json" in files else "vocab.json"
    if target == "vocab.json" and _json(files, "tokenizer_config.json", place).get("separate_vocabs") is True:
        raise ModelError(f"{place} lacks target_vocab.json, but its tokenizer_config.json says separate_vocabs")
    sizes = []
    for name, rows in (("vocab.json", architecture.source_vocabulary), (target, architecture.target_vocabulary)):
        if (entries := len(_json(files, name, place))) > rows:
            raise ModelError(
                f"{place}: {name} has {entries} entries, the embedding {rows} rows; they must be of the same model"
            )
        sizes.append(entries or rows)
    return sizes[0], sizes[1]


def _json(files: Mapping[str, bytes], name: str, place: Path) -> dict[str, Any]:
    try:
        value = json.loads(files.get(name, b"{}"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{place}: {name} is not readable JSON ({error}); fetch it again") from None
    if not isinstance(value, dict):
        raise ModelError(f"{place}: {name} must hold a JSON object; fetch it again")
    return value


def _size(config: Mapping[str, Any], key: str, place: Path, maximum: int = _MAX_SIZE) -> int:
    value = config.get(key)
    if type(value) is not int or not 0 < value <= maximum:
        raise ModelError(
            f"{place}: the config says {key} {value!r}; expected a number from 1 to {maximum}; fetch it again"
        )
    return value


def _flag(config: Mapping[str, Any], key: str, default: bool, place: Path) -> bool:
    value = config.get(key, default)
    if type(value) is not bool:
        raise ModelError(f"{place}: the config says {key} {value!r}; expected true or false; fetch it again")
    return value


def abbreviated(names: Iterable[str]) -> str:
    """The first three names and the number of the others."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(ordered[:3]) + more
