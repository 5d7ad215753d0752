"""Reads the nodes and constants of an ONNX file. Large tensors are memory-mapped, not copied."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ...errors import ModelError
from ..onnx_header import fields

# onnx.proto: ModelProto.graph, GraphProto.node and .initializer, TensorProto.raw_data.
_GRAPH, _NODE, _INITIALIZER, _RAW_DATA = 7, 1, 5, 9
PASS_THROUGH = ("Constant", "Identity", "Cast", "Transpose")
"""Operators that return a constant unchanged, or with another type or axis order."""
_WIDER = (TensorProto.FLOAT, TensorProto.DOUBLE)
_FLOATS = (*_WIDER, TensorProto.FLOAT16, TensorProto.BFLOAT16)


class Scope:
    """The nodes of a graph, or of one branch of an If, and the floating-point constants in their scope."""

    def __init__(
        self, nodes: Iterable[NodeProto], tensors: Mapping[str, NDArray[Any] | None], outer: Scope | None
    ) -> None:
        self.nodes = list(nodes)
        self._constants, self._outer = dict(tensors), outer
        for node in self.nodes:  # ONNX requires topological order
            if any(isinstance(name, bytes) for name in (node.name, node.op_type, *node.input, *node.output)):
                raise ValueError("a name is not valid UTF-8")
            if not node.output:
                raise ValueError(f"{node.op_type or 'a node'} has no output")
            if node.op_type in PASS_THROUGH and len(node.output) == 1 and (value := self._folded(node)) is not None:
                self._constants[node.output[0]] = value

    def constant(self, name: str) -> NDArray[Any] | None:
        """The value of a constant tensor: an initializer or a Constant, possibly copied, cast or transposed."""
        value = self._constants.get(name)
        return self._outer.constant(name) if value is None and self._outer else value

    def _folded(self, node: NodeProto) -> NDArray[Any] | None:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant":
            return _value(attributes["value"].t, None) if "value" in attributes else None
        value = self.constant(node.input[0]) if node.input else None
        if value is None or node.op_type == "Identity":
            return value
        if node.op_type == "Transpose":
            return value.transpose(list(attributes["perm"].ints) if "perm" in attributes else None)
        # Widening is exact, so it is left to the caller, which converts the weights that it keeps once.
        to = attributes["to"].i
        return value if to in _WIDER else value.astype(helper.tensor_dtype_to_np_dtype(to))


def read_scopes(path: Path) -> list[Scope]:
    """Read the graph of an ONNX file and the branches of its Ifs. Arrays are views of the file and keep it open."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        graphs = [
            value for number, value in fields(data, 0, len(data)) if number == _GRAPH and isinstance(value, tuple)
        ]
        nodes: list[NodeProto] = []
        tensors: dict[str, NDArray[Any] | None] = {}
        for number, value in (field for graph in graphs for field in fields(data, *graph)):
            if number == _NODE and isinstance(value, tuple):
                nodes.append(NodeProto.FromString(data[slice(*value)]))
            elif number == _INITIALIZER and isinstance(value, tuple):
                name, array = _tensor(data, *value, path.parent)
                tensors[name] = array
        return list(_with_branches(Scope(nodes, tensors, None), path.parent))
    except (OSError, ValueError, IndexError, KeyError, TypeError, DecodeError, OverflowError) as error:
        raise ModelError(f"{path} is not a readable ONNX model ({error}); fetch or export it again") from None


def _with_branches(scope: Scope, folder: Path) -> Iterator[Scope]:
    yield scope
    for node in scope.nodes:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                graph: GraphProto = attribute.g
                tensors = {tensor.name: _value(tensor, folder) for tensor in graph.initializer}
                yield from _with_branches(Scope(graph.node, tensors, scope), folder)


def _tensor(data: mmap.mmap, start: int, end: int, folder: Path) -> tuple[str, NDArray[Any] | None]:
    """The name and the value of the initializer in data[start:end]."""
    for number, value in fields(data, start, end):
        if number == _RAW_DATA and isinstance(value, tuple):
            first, last = value
            # Parse everything except raw_data, its key (1 byte) and its length (a varint with 7 bits per byte).
            key = first - max(1, -(-(last - first).bit_length() // 7)) - 1
            rest = TensorProto.FromString(data[start:key] + data[last:end])
            if rest.data_type not in _FLOATS:
                return rest.name, None
            dtype, shape = _type_and_shape(rest, last - first)
            return rest.name, np.frombuffer(data, dtype, math.prod(shape), first).reshape(shape)
    tensor = TensorProto.FromString(data[start:end])
    return tensor.name, _value(tensor, folder)


def _value(tensor: TensorProto, folder: Path | None) -> NDArray[Any] | None:
    """The value of a floating-point tensor. Only initializers may be stored in another file, in ``folder``."""
    if tensor.data_type not in _FLOATS:
        return None
    if folder is None or tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = Path(entries["location"])
    if location.is_absolute() or ".." in location.parts:
        raise ValueError(f"{tensor.name} is stored in {location}, outside the model's folder")
    dtype, shape = _type_and_shape(tensor, int(entries["length"]) if "length" in entries else None)
    return np.memmap(folder / location, dtype, "r", int(entries.get("offset", 0)), shape)


def _type_and_shape(tensor: TensorProto, size: int | None) -> tuple[np.dtype[Any], tuple[int, ...]]:
    dtype, shape = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)
    if size is not None and size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{tensor.name} has {size} bytes for the shape {list(shape)} of {dtype}")
    return dtype, shape
