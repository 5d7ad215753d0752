"""Reads the nodes and constants of an ONNX file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ...errors import ModelError

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
    """Read the graph of an ONNX file and the branches of its Ifs."""
    try:
        return list(_scopes(onnx.load(path, load_external_data=False).graph, path.parent, None))
    except (OSError, ValueError, IndexError, KeyError, TypeError, DecodeError, OverflowError) as error:
        raise ModelError(f"{path} is not a readable ONNX model ({error}); fetch or export it again") from None


def _scopes(graph: GraphProto, folder: Path, outer: Scope | None) -> Iterator[Scope]:
    scope = Scope(graph.node, {tensor.name: _value(tensor, folder) for tensor in graph.initializer}, outer)
    yield scope
    for node in scope.nodes:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _scopes(attribute.g, folder, scope)


def _value(tensor: TensorProto, folder: Path | None) -> NDArray[Any] | None:
    """The value of a floating-point tensor. Only initializers may be stored in another file, in ``folder``, which is mapped."""
    if tensor.data_type not in _FLOATS:
        return None
    if folder is None or tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = Path(entries["location"])
    if location.is_absolute() or ".." in location.parts:
        raise ValueError(f"{tensor.name} is stored in {location}, outside the model's folder")
    dtype, shape = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)
    if int(entries.get("length", size := math.prod(shape) * dtype.itemsize)) != size:
        raise ValueError(f"{tensor.name} has {entries['length']} bytes for the shape {list(shape)} of {dtype}")
    return np.memmap(folder / location, dtype, "r", int(entries.get("offset", 0)), shape)
