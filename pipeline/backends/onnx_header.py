"""Read the inputs, outputs and metadata of an ONNX file without loading its weights.

ONNX Runtime gives this information only after loading the whole model. This reader walks the protobuf wire format
(https://protobuf.dev/programming-guides/encoding) with the field numbers of onnx.proto and skips all other fields.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelError

_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16"}
"""onnx.proto, TensorProto.DataType: the types of inputs and outputs in Marian graphs."""


@dataclass(frozen=True)
class Port:
    """An input or output: its element type and shape. Dynamic dimensions are given by name."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class OnnxHeader:
    path: Path
    inputs: dict[str, Port]
    outputs: dict[str, Port]
    metadata: frozenset[str] = frozenset()
    """The keys."""


def read_header(path: Path) -> OnnxHeader:
    """Read the header of an ONNX file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _model(path, data)
    except FileNotFoundError:
        raise ModelError(f"no such file: {path}") from None
    except (OSError, ValueError, IndexError, UnicodeDecodeError) as error:
        # mmap refuses empty files with a ValueError.
        raise ModelError(f"{path} is not a readable ONNX model ({error}); fetch or export it again") from None


def _model(path: Path, data: mmap.mmap) -> OnnxHeader:
    inputs: dict[str, Port] = {}
    outputs: dict[str, Port] = {}
    weights: set[str] = set()
    metadata: set[str] = set()
    for number, value in _fields(data, 0, len(data)):
        if number == 14 and isinstance(value, tuple):
            metadata.update(_texts(data, value, 1))
        if number == 7 and isinstance(value, tuple):
            for inner, content in _fields(data, *value):
                if inner in (11, 12) and isinstance(content, tuple):
                    port = _port(data, *content)
                    (inputs if inner == 11 else outputs)[port.name] = port
                elif inner == 5 and isinstance(content, tuple):
                    weights.update(_texts(data, content, 8))
    for name in weights:  # older exporters list weights among the inputs too
        inputs.pop(name, None)
    if not outputs:
        raise ValueError("it declares no outputs")
    return OnnxHeader(path, inputs, outputs, frozenset(metadata))


def _texts(data: mmap.mmap, message: tuple[int, int], field: int) -> list[str]:
    spans = [value for number, value in _fields(data, *message) if number == field and isinstance(value, tuple)]
    return [data[start:end].decode() for start, end in spans]


def _port(data: mmap.mmap, start: int, end: int) -> Port:
    name, dtype = "", "unknown"
    shape: list[int | str] = []
    for number, value in _fields(data, start, end):
        if number == 1 and isinstance(value, tuple):
            name = data[value[0] : value[1]].decode()
        elif number == 2 and isinstance(value, tuple):
            for kind, tensor in _fields(data, *value):
                if kind != 1 or not isinstance(tensor, tuple):
                    continue
                for inner, content in _fields(data, *tensor):
                    if inner == 1 and isinstance(content, int):
                        dtype = _TYPES.get(content, f"type {content}")
                    elif inner == 2 and isinstance(content, tuple):
                        shape = [_dimension(data, *dim) for n, dim in _fields(data, *content) if isinstance(dim, tuple)]
    return Port(name, dtype, tuple(shape))


def _dimension(data: mmap.mmap, start: int, end: int) -> int | str:
    for number, value in _fields(data, start, end):
        if number == 1 and isinstance(value, int):
            return value
        if number == 2 and isinstance(value, tuple):
            return data[value[0] : value[1]].decode()
    return "?"


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
    """Yield (field number, integer or (start, end) byte range) for each field of a message, without copying."""
    offset = start
    while offset < end:
        key, offset = _varint(data, offset)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, offset = _varint(data, offset)
            yield number, value
        elif kind == 2:
            length, offset = _varint(data, offset)
            if offset + length > end:
                raise ValueError(f"it is truncated: byte {offset + length} of {end} is missing")
            yield number, (offset, offset + length)
            offset += length
        elif kind in (1, 5):
            offset += 8 if kind == 1 else 4
        else:
            raise ValueError("it is not a protobuf message")


def _varint(data: mmap.mmap, offset: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, offset
        shift += 7
    raise ValueError("it is not a protobuf message")
