"""Reads Marian's weights from an ONNX export, using the exporter's names of nodes and parameters; no PyTorch needed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ....errors import ModelError
from ..decode.graphs import Kind, Layout
from ..decode.layout import find_files, find_layout
from .assemble import BIAS, DECODER, ENCODER, HEAD, POSITIONS, SHARED
from .checkpoint import Architecture, expected_shapes

Weights = dict[str, NDArray[Any]]

# Exporters name a node after its module, /model/decoder/layers.0/fc1/MatMul, and keep the names of parameters that are
# not transposed, model.decoder.layers.0.fc1.bias. Encoders are exported without their prefix.
_MODULE = re.compile(
    r"(?:.*?\.)??(?:(?P<side>encoder|decoder)\.)?(?P<module>"
    r"layers\.\d{1,4}\.(?:(?:self_attn|encoder_attn)\.[qkv]_proj|(?:self_attn|encoder_attn)\.out_proj|fc1|fc2|"
    r"(?:self_attn|encoder_attn|final)_layer_norm)|embed_tokens|shared|embed_positions|lm_head)"
)
# Suffixes of parameter names after merging two decoders or storing weights in half precision.
_NAME_SUFFIX = re.compile(r"(?:_merged_\d+|_fp16)+$")
_QUANTISED = re.compile(r"Quant|Integer|NBits|Bnb4|QLinear|^QGemm|^QAttention|^QOrdered")
# Operators that read the input of an activation function → the function.
_ACTIVATIONS = {frozenset(["Sigmoid", "Mul"]): "swish", frozenset(["Relu"]): "relu", frozenset(["Div", "Mul"]): "gelu"}
_PASS_THROUGH = ("Constant", "Identity", "Cast", "Transpose")
"""Operators that return a constant unchanged, or with another type or axis order."""
_WIDER = (TensorProto.FLOAT, TensorProto.DOUBLE)
_FLOATS = (*_WIDER, TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclass
class _Graph:
    """The weights and properties found in one file."""

    path: Path
    side: str | None
    """The side of names without a prefix; None if the file holds both sides."""
    weights: Weights = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    activations: set[str] = field(default_factory=set)
    scales: set[float] = field(default_factory=set)
    nonstandard: set[str] = field(default_factory=set)
    """Operators outside the standard ONNX domain."""


def has_onnx(directory: Path) -> bool:
    return any(True for folder in (directory, directory / "onnx") for _ in folder.glob("*.onnx"))


def read_onnx(directory: Path, architecture: Architecture) -> tuple[Weights, str]:
    """Read an export: weights by transformers' names without ``model.``, matrices [out, in]; and the kind of export."""
    layout = find_layout(directory, _file_suffix(directory))
    if layout.kind is Kind.STREAMING:
        raise ModelError(
            f"{directory} has been compiled already; give the checkpoint or the export that it was compiled from"
        )
    if layout.layers and (layout.layers, layout.heads) != (architecture.decoder_layers, architecture.decoder_heads):
        raise ModelError(
            f"{layout.later.path} has {layout.layers} layers of {layout.heads} heads, its config says "
            f"{architecture.decoder_layers} of {architecture.decoder_heads}; both must be of the same model"
        )
    weights: Weights = {}
    nonstandard: set[str] = set()
    for path, side in _weight_files(layout):
        graph = _read(path, side)
        _check(graph, architecture)
        nonstandard |= graph.nonstandard
        for name, array in graph.weights.items():
            weights[name] = _copied_or_tied(array, weights.get(DECODER) if name in (ENCODER, HEAD) else None)
    expected = expected_shapes(architecture).keys()
    missing, unknown = sorted(expected - weights.keys()), sorted(weights.keys() - expected - set(POSITIONS) - {SHARED})
    if nonstandard and (missing or unknown):
        raise ModelError(
            f"{directory}: the graphs were optimised (they have {', '.join(sorted(nonstandard))}), so their names no "
            f"longer identify the weights {', '.join((missing or unknown)[:3])}; give the export before optimisation"
        )
    kind = "merged" if layout.kind is Kind.MERGED else "one file" if layout.kind is Kind.ONE_FILE else "split"
    return weights, f"ONNX ({kind})"


def _file_suffix(directory: Path) -> str:
    """The suffix of the most exact files: fp32, or else fp16, which fp32 represents exactly."""
    stems = [path.stem for folder in (directory, directory / "onnx") for path in folder.glob("*.onnx")]
    try:
        find_files(directory, "")
    except ModelError:
        if any(stem.endswith("_fp16") for stem in stems):
            return "_fp16"
        if stems:
            raise ModelError(
                f"{directory} has quantised graphs only ({', '.join(sorted(stems))}); quantising "
                "their weights again would lose quality: give the fp32 export"
            ) from None
    return ""


def _weight_files(layout: Layout) -> Iterator[tuple[Path, str | None]]:
    """The files that together hold all weights. The decoder is first: other embeddings are compared with its own."""
    if layout.kind is Kind.ONE_FILE:
        yield layout.first.path, None
        return
    yield layout.first.path, "decoder"
    if layout.encoder:
        yield layout.encoder.path, "encoder"


def _copied_or_tied(array: NDArray[Any], tied: NDArray[Any] | None) -> NDArray[Any]:
    """Copy ``array``, or return ``tied`` if it is equal: exports store the large embedding up to three times."""
    if tied is not None and tied.shape == array.shape and np.array_equal(tied, array):
        return tied
    return np.array(array, dtype=np.float32, order="C")


def _read(path: Path, side: str | None) -> _Graph:
    graph = _Graph(path, side)
    for scope in _read_scopes(path):
        if quantised := {node.op_type for node in scope.nodes if _QUANTISED.search(node.op_type)}:
            raise ModelError(
                f"{path} is quantised (it has {', '.join(sorted(quantised))}); quantising its weights again would lose "
                "quality: give the fp32 export"
            )
        graph.nonstandard |= {node.op_type for node in scope.nodes if node.domain not in ("", "ai.onnx")}
        _WeightFinder(graph, scope).run()
    return graph


def _check(graph: _Graph, architecture: Architecture) -> None:
    """Check that the graph computes what the config says."""
    if graph.activations - {architecture.activation}:
        raise ModelError(
            f"{graph.path} computes {', '.join(sorted(graph.activations))}, its config says {architecture.activation}; "
            "both must be of the same model"
        )
    scales = graph.scales or {1.0}
    # In half precision, the scale has 11 bits.
    if any(abs(scale / architecture.embedding_scale - 1) > 1e-3 for scale in scales):
        raise ModelError(
            f"{graph.path} scales embeddings by {', '.join(map(str, scales))}, its config by "
            f"{architecture.embedding_scale}; both must be of the same model"
        )


class _WeightFinder:
    """Finds the weights in the nodes of a scope: each constant operand is a parameter of some module."""

    def __init__(self, graph: _Graph, scope: _Scope) -> None:
        self._graph, self._scope = graph, scope
        self._linear_outputs: dict[str, str] = {}
        """Output of a linear layer before its bias is added → its module."""
        self._embedding_outputs: set[str] = set()
        self._readers: dict[str, list[NodeProto]] = {}
        for node in scope.nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def run(self) -> None:
        for node in self._scope.nodes:
            if node.op_type in _PASS_THROUGH:
                continue  # the operator that uses their output is visited instead
            for index, name in enumerate(node.input):
                value = self._scope.constant(name)
                if value is not None and value.dtype.kind in "fV":
                    self._visit_operand(node, index, value)

    def _visit_operand(self, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        operator = node.op_type
        other = node.input[1 - index] if len(node.input) == 2 else ""
        if value.size == 1:
            if operator == "Mul" and other in self._embedding_outputs:
                self._graph.scales.add(float(value.reshape(())))
        elif operator == "Gemm" and (_attribute(node, "alpha", 1), _attribute(node, "beta", 1)) != (1, 1):
            self._store(f"{node.input[index]} (scaled by {operator})", node, index, value)
        elif operator in ("MatMul", "Gemm") and index == 1:
            module = self._linear(node)
            self._store(f"{module}.weight", node, index, value if _attribute(node, "transB", 0) else value.T)
            self._linear_outputs[node.output[0]] = module
            if operator == "Gemm":
                self._record_activation(module, node.output[0])
        elif operator == "Gemm":
            self._store_bias(self._linear(node), node, index, value)
        elif operator == "Add" and (module := self._linear_outputs.get(other, "")):
            self._store_bias(module, node, index, value)
            self._record_activation(module, node.output[0])
        elif operator in ("Mul", "Add") and value.ndim <= 2:  # more dimensions: an attention mask of fixed length
            kind = "weight" if operator == "Mul" else "bias"
            self._store(f"{self._module(node, node.input[index])}.{kind}", node, index, value)
        elif operator == "LayerNormalization":
            kind = {1: "weight", 2: "bias"}.get(index, "input")
            self._store(f"{self._module(node, node.input[index])}.{kind}", node, index, value)
        elif operator in ("Gather", "Slice") and index == 0:
            self._embedding_outputs.add(node.output[0])
            module = self._module(node, node.input[index])
            if module == "lm_head" and self._graph.side:  # a tied matrix stored under its other name
                module = f"{self._graph.side}.embed_tokens"
            self._store(f"{module}.weight", node, index, value)
        elif operator not in ("Mul", "Add"):
            self._store(f"{node.input[index]} (read by {operator})", node, index, value)

    def _linear(self, node: NodeProto) -> str:
        """The module of a MatMul or Gemm, from the node's name, or else from the name of the bias that is added."""
        module = self._module(node, "")
        if module:
            return module
        names = [*node.input[1:], *(name for reader in self._readers.get(node.output[0], []) for name in reader.input)]
        if any(_without_suffix(name).endswith(BIAS) for name in names):
            return "lm_head"
        return next((found for name in names if (found := self._module_in(name.rpartition(".")[0]))), node.input[1])

    def _module(self, node: NodeProto, operand: str) -> str:
        module = self._module_in(node.name.strip("/").replace("/", ".").rpartition(".")[0])
        if module or not operand:
            return module
        return self._module_in(_without_suffix(operand).rpartition(".")[0]) or operand

    def _module_in(self, path: str) -> str:
        match = _MODULE.fullmatch(path)
        if match is None:
            return ""
        module, side = match["module"], match["side"] or self._graph.side
        if module == "lm_head":
            return module
        if module == "shared" and side:
            module = "embed_tokens"
        return f"{side}.{module}" if side else module

    def _store_bias(self, module: str, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        self._store(BIAS if module == "lm_head" else f"{module}.bias", node, index, value)

    def _store(self, name: str, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        stored = self._graph.weights.get(name)
        # Both branches of a merged decoder read the same parameters, which is fine.
        if stored is not None and self._graph.sources[name] != node.input[index] and not np.array_equal(stored, value):
            raise ModelError(f"{self._graph.path} has two different {name}; expected an export of a Marian model")
        if stored is None:
            self._graph.weights[name], self._graph.sources[name] = value, node.input[index]

    def _record_activation(self, module: str, output: str) -> None:
        """Record the activation function, if ``output`` is that of a feed-forward block's first layer."""
        operators = frozenset(reader.op_type for reader in self._readers.get(output, []))
        if module.endswith(".fc1") and operators in _ACTIVATIONS:
            self._graph.activations.add(_ACTIVATIONS[operators])


def _attribute(node: NodeProto, name: str, default: float) -> float:
    return next((float(a.f or a.i) for a in node.attribute if a.name == name), default)


def _without_suffix(name: str) -> str:
    return _NAME_SUFFIX.sub("", name)


class _Scope:
    """The nodes of a graph, or of one branch of an If, and the floating-point constants in their scope."""

    def __init__(
        self, nodes: Iterable[NodeProto], tensors: Mapping[str, NDArray[Any] | None], outer: _Scope | None
    ) -> None:
        self.nodes = list(nodes)
        self._constants, self._outer = dict(tensors), outer
        for node in self.nodes:  # ONNX requires topological order
            if any(isinstance(name, bytes) for name in (node.name, node.op_type, *node.input, *node.output)):
                raise ValueError("a name is not valid UTF-8")
            if not node.output:
                raise ValueError(f"{node.op_type or 'a node'} has no output")
            if node.op_type in _PASS_THROUGH and len(node.output) == 1 and (value := self._folded(node)) is not None:
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


def _read_scopes(path: Path) -> list[_Scope]:
    """Read the graph of an ONNX file and the branches of its Ifs."""
    try:
        return list(_scopes(onnx.load(path, load_external_data=False).graph, path.parent, None))
    except (OSError, ValueError, IndexError, KeyError, TypeError, DecodeError, OverflowError) as error:
        raise ModelError(f"{path} is not a readable ONNX model ({error}); fetch or export it again") from None


def _scopes(graph: GraphProto, folder: Path, outer: _Scope | None) -> Iterator[_Scope]:
    scope = _Scope(graph.node, {tensor.name: _value(tensor, folder) for tensor in graph.initializer}, outer)
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
