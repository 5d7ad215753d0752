"""The weights of a finished recogniser: what CTranslate2's converter wrote, read back under transformers' names."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
_ATTENTIONS = {"self_attention": "self_attn", "attention": "encoder_attn"}


def whisper_weights(folder: Path) -> dict[str, np.ndarray]:
    """float32 weights by the names of ``WhisperForConditionalGeneration``, of ``folder``'s float or int8 model.bin.

    int8 weights are those numbers times their rows' scales: near what was trained, not the same. Exits if there is no
    such file, or if it is of another kind.
    """
    path = folder / "model.bin"
    if not path.exists():
        sys.exit(f"no such file: {path}. It comes with a finished recogniser, such as models/demo/asr-en")
    kind, variables = _read(path.read_bytes())
    if kind != "WhisperSpec":
        sys.exit(f"{path} is no Whisper model of CTranslate2's but {kind!r}")
    found: dict[str, np.ndarray] = {}
    for name, value in variables.items():
        if value.ndim == 0 or not name.startswith(("encoder/", "decoder/")) or name.endswith("_scale"):
            continue
        if value.dtype == np.int8:
            scale = variables[f"{name}_scale"]
            value = value / scale.reshape(-1, *[1] * (value.ndim - 1))
        for mine, part in _named(name.split("/"), value.astype(np.float32)):
            found[f"model.{mine}"] = part
    return found


def _named(parts: list[str], value: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """``value`` under the name it has in transformers, or its parts under theirs: projections are written as one."""
    side, *inner, end = parts
    end = {"gamma": "weight", "beta": "bias"}.get(end, end)
    match inner:
        case ["embeddings"]:
            yield f"{side}.embed_tokens.weight", value
        case ["position_encodings"]:
            yield f"{side}.embed_positions.weight", value
        case ["conv1" | "conv2" | "layer_norm" as name]:
            yield f"{side}.{name}.{end}", value
        case [layer, "ffn", name]:
            name = {"layer_norm": "final_layer_norm", "linear_0": "fc1", "linear_1": "fc2"}[name]
            yield f"{side}.layers.{layer.removeprefix('layer_')}.{name}.{end}", value
        case [layer, attention, name]:
            block = f"{side}.layers.{layer.removeprefix('layer_')}.{_ATTENTIONS[attention]}"
            if name == "layer_norm":
                yield f"{block}_layer_norm.{end}", value
                return
            own = attention == "self_attention"
            held = {"linear_0": "qkv" if own else "q", "linear_1": "o" if own else "kv", "linear_2": "o"}[name]
            for letter, piece in zip(held, np.split(value, len(held)), strict=True):
                if (letter, end) != ("k", "bias"):  # Whisper's keys have none: zeros were written
                    yield f"{block}.{'out' if letter == 'o' else letter}_proj.{end}", piece


def _read(data: bytes) -> tuple[str, dict[str, np.ndarray]]:
    """What kind of model CTranslate2's binary format, version 6, holds, and its variables (its model_spec.py)."""
    at = 0

    def number(form: str) -> int:
        nonlocal at
        at += struct.calcsize(form)
        return int(struct.unpack_from(form, data, at - struct.calcsize(form))[0])

    def string() -> str:
        nonlocal at
        length = number("<H")
        at += length
        return data[at - length : at - 1].decode()

    if (version := number("<I")) != 6:
        sys.exit(f"this model.bin is of version {version} of CTranslate2's format; 6 is known here")
    kind, _ = string(), number("<I")
    variables = {}
    for _ in range(number("<I")):
        name = string()
        shape = [number("<I") for _ in range(number("<B"))]
        dtype, size = number("<B"), number("<I")
        if dtype >= len(_TYPES):
            sys.exit(f"{name} of this model.bin has a type that is not known here ({dtype})")
        variables[name] = np.frombuffer(data[at : at + size], _TYPES[dtype]).reshape(shape)
        at += size
    return kind, variables
