"""Reads the student models of Firefox Translations: Marian models with a recurrent decoder in Marian's binary format.

The format (model.bin) has fp32 weights, or the 8 bits of intgemm. Little endian: version, number of items; for each item
the length of its name, type, number of dimensions, bytes of data; then all names, all shapes, padding, all data
(marian-dev, src/common/binary.cpp).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....errors import ModelError
from .assemble import BIAS, DECODER, ENCODER, HEAD, SHARED, abbreviated, check_complete, float32, read_architecture
from .checkpoint import Checkpoint, QuantisedMatrix, expected_shapes
from .marian import OPTIONS, flag, is_table, read_options, sizes, transformers_array, transformers_name

# Marian has no limit. Longer sources are translated in parts, and no translation may be longer.
_MAX_POSITIONS = 1024
_EPSILON = 1e-6  # Marian's (marian-dev, src/tensors/cpu/tensor_operators.cpp)
_VERSION = 1
_INT8, _FLOAT32, _INTGEMM8 = 0x101, 0x404, 0x4101
# Marian's own estimate of the largest activation, which the graphs do not need: they measure each one.
_ALPHA = "_QuantMultA"
_MAX_ITEMS, _MAX_NAME, _MAX_DIMENSIONS = 100_000, 1_000, 8


def read_student(path: Path) -> Checkpoint:
    """Read a model.bin. Its matrices are ``QuantisedMatrix`` if the file has 8 bits of them."""
    weights, options = _read(path)
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
    config = sizes(options, path)
    width, heads = config["d_model"], config["encoder_attention_heads"]
    if not (width and heads) or width % (8 * heads):
        raise ModelError(f"{path}: {heads} heads do not divide a width of {width} into multiples of 8")
    config |= {
        "vocab_size": source.shape[0],
        "decoder_vocab_size": target.shape[0],
        "max_position_embeddings": _MAX_POSITIONS,
    }
    architecture = replace(read_architecture(config, path), recurrent=True, epsilon=_EPSILON)
    expected = expected_shapes(architecture)
    if unknown := weights.keys() - expected:
        raise ModelError(f"{path} holds weights that a model of its options does not have: {abbreviated(unknown)}")
    check_complete(weights, expected, path)
    return Checkpoint(
        architecture, {name: _checked(name, weights[name], path) for name in expected}, {}, {}, "Marian bin"
    )


def _checked(name: str, value: Any, path: Path) -> Any:
    return value if isinstance(value, QuantisedMatrix) else float32(name, value, path)


class _Item(NamedTuple):
    name: str
    kind: int
    shape: tuple[int, ...]
    size: int
    """Bytes, with padding."""


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model with a recurrent decoder: (weights by transformers' names, options).

    Matrices are [out, in] and ``QuantisedMatrix`` if the file has 8 bits of them.
    """
    weights: dict[str, Any] = {}
    stored: bytes | None = None
    try:
        content = path.read_bytes()
        for item, data in _items(content):
            if item.name == OPTIONS:
                stored = bytes(data)
            elif not item.name.endswith(_ALPHA):
                weights[transformers_name(item.name)] = _weight(item, data)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    except (struct.error, ValueError) as error:
        raise ModelError(f"{path} is not a readable Marian model ({error}); fetch it again") from None
    return weights, read_options(stored, path)


def _items(content: bytes) -> Iterator[tuple[_Item, memoryview]]:
    """Each item with its data.

    Raises:
        ValueError, struct.error: the file is damaged.
    """
    version, count = struct.unpack_from("<2Q", content)
    if version != _VERSION or not 0 < count < _MAX_ITEMS:
        raise ValueError(f"it begins with version {version} and {count} items")
    heads = [struct.unpack_from("<4Q", content, 16 + 32 * number) for number in range(count)]
    offset = 16 + 32 * count
    names = []
    for length, _, dimensions, _ in heads:
        if not 0 < length < _MAX_NAME or dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"a name of {length} bytes and a shape of {dimensions} dimensions")
        names.append(content[offset : offset + length].rstrip(b"\0").decode())
        offset += length
    items = []
    for name, (_, kind, dimensions, size) in zip(names, heads, strict=True):
        items.append(_Item(name, kind, struct.unpack_from(f"<{dimensions}i", content, offset), size))
        offset += 4 * dimensions
    offset += 8 + struct.unpack_from("<Q", content, offset)[0]
    if (needed := offset + sum(item.size for item in items)) != len(content):
        raise ValueError(f"it has {len(content):,} bytes, its header needs {needed:,}")
    view = memoryview(content)
    for item in items:
        yield item, view[offset : offset + item.size]
        offset += item.size


def _weight(item: _Item, data: memoryview) -> Any:
    count = math.prod(item.shape)
    needed = {_FLOAT32: 4 * count, _INTGEMM8: count + 4}.get(item.kind)
    if needed is None:
        raise ValueError(f"{item.name} has the type {item.kind:#x}; supported are float32 and intgemm8")
    if min(item.shape, default=0) < 1 or needed > len(data):
        raise ValueError(f"{item.name} of the shape {list(item.shape)} has {len(data)} bytes")
    if item.kind == _FLOAT32:
        return transformers_array(item.name, np.frombuffer(data, "<f4", count).reshape(item.shape).astype(np.float32))
    if len(item.shape) != 2:
        raise ValueError(f"{item.name} is quantised and has the shape {list(item.shape)}")
    # All matrices but embeddings are stored transposed, under their own shape: [in, out], stored as [out, in].
    rows, columns = item.shape if is_table(item.name) else item.shape[::-1]
    (multiplier,) = struct.unpack_from("<f", data, count)
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"{item.name} has the quantisation multiplier {multiplier}")
    values = np.frombuffer(data, np.int8, count).reshape(rows, columns).copy()
    return QuantisedMatrix(values, np.full(rows, 1 / multiplier, np.float32))
