"""Marian's weights out of an ONNX export, found by the names that exporters give to nodes and parameters; no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from pipeline.errors import ModelError
from pipeline.nmt.compiler.assemble import BIAS, DECODER, ENCODER, HEAD, POSITIONS, SHARED
from pipeline.nmt.compiler.checkpoint import Architecture, expected_shapes
from pipeline.nmt.compiler.onnx_tensors import PASSING, Scope, read_scopes
from pipeline.nmt.layout import Kind, Layout, find_files, find_layout

Weights = dict[str, NDArray[Any]]

# Exporters name a node by the modules around it, /model/decoder/layers.0/fc1/MatMul, and keep the names of parameters
# that are not transposed, model.decoder.layers.0.fc1.bias. Encoders are exported without their prefix.
_MODULE = re.compile(
    r"(?:.*?\.)??(?:(?P<side>encoder|decoder)\.)?(?P<module>"
    r"layers\.\d{1,4}\.(?:(?:self_attn|encoder_attn)\.[qkv]_proj|(?:self_attn|encoder_attn)\.out_proj|fc1|fc2|"
    r"(?:self_attn|encoder_attn|final)_layer_norm)|embed_tokens|shared|embed_positions|lm_head)"
)
# What merging two decoders and storing weights in half precision append to a parameter's name.
_APPENDED = re.compile(r"(?:_merged_\d+|_fp16)+$")
_QUANTISED = re.compile(r"Quant|Integer|NBits|Bnb4|QLinear|^QGemm|^QAttention|^QOrdered")
# What computes an activation function from its input → the function.
_ACTIVATIONS = {frozenset(["Sigmoid", "Mul"]): "swish", frozenset(["Relu"]): "relu", frozenset(["Div", "Mul"]): "gelu"}


@dataclass
class _Graph:
    """What one file gave."""

    path: Path
    side: str | None
    """What a name without a prefix belongs to; None where a file holds both sides."""
    weights: Weights = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    activations: set[str] = field(default_factory=set)
    scales: set[float] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    """Operators of no standard set."""


def has_onnx(directory: Path) -> bool:
    return any(True for folder in (directory, directory / "onnx") for _ in folder.glob("*.onnx"))


def read_onnx(directory: Path, architecture: Architecture) -> tuple[Weights, str]:
    """The weights of an export, by transformers' names without ``model.``, matrices [out, in]; and the kind of export.

    Raises:
        ModelError: no complete export, a damaged or quantised one, one whose nodes no longer show which weights they
            hold, or one that computes otherwise than the config says.
    """
    layout = find_layout(directory, _suffix(directory))
    if layout.kind is Kind.STREAMING:
        raise ModelError(
            f"{directory} has been compiled already; give the checkpoint or the export that it was made from"
        )
    if layout.layers and (layout.layers, layout.heads) != (architecture.decoder_layers, architecture.decoder_heads):
        raise ModelError(
            f"{layout.later.path} has {layout.layers} layers of {layout.heads} heads, its config says "
            f"{architecture.decoder_layers} of {architecture.decoder_heads}; both must be of one model"
        )
    weights: Weights = {}
    foreign: set[str] = set()
    for path, side in _parts(layout):
        graph = _read(path, side)
        _check(graph, architecture)
        foreign |= graph.foreign
        for name, array in graph.weights.items():
            weights[name] = _owned(array, weights.get(DECODER) if name in (ENCODER, HEAD) else None)
    expected = expected_shapes(architecture).keys()
    missing, unknown = sorted(expected - weights.keys()), sorted(weights.keys() - expected - set(POSITIONS) - {SHARED})
    if foreign and (missing or unknown):
        raise ModelError(
            f"{directory}: the graphs were optimised (they have {', '.join(sorted(foreign))}), so that names no longer tell "
            f"which weights are {', '.join((missing or unknown)[:3])}; give the export from before that"
        )
    kind = "merged" if layout.kind is Kind.MERGED else "one file" if layout.kind is Kind.ONE_FILE else "split"
    return weights, f"ONNX ({kind})"


def _suffix(directory: Path) -> str:
    """The most exact files there are: fp32, else fp16, which fp32 holds exactly."""
    stems = [path.stem for folder in (directory, directory / "onnx") for path in folder.glob("*.onnx")]
    try:
        find_files(directory, "")
    except ModelError:
        if any(stem.endswith("_fp16") for stem in stems):
            return "_fp16"
        if stems:
            raise ModelError(
                f"{directory} has quantised graphs only ({', '.join(sorted(stems))}); "
                "rounding their weights again would lose quality: give the fp32 export"
            ) from None
    return ""


def _parts(layout: Layout) -> Iterator[tuple[Path, str | None]]:
    """The files that hold all weights, the decoder's first: its embedding is what the others are compared with."""
    if layout.kind is Kind.ONE_FILE:
        yield layout.first.path, None
        return
    yield layout.first.path, "decoder"
    if layout.encoder:
        yield layout.encoder.path, "encoder"


def _owned(array: NDArray[Any], tied: NDArray[Any] | None) -> NDArray[Any]:
    """``array`` in memory of its own, or ``tied`` if it holds the same: an embedding is large and stored thrice."""
    if tied is not None and tied.shape == array.shape and np.array_equal(tied, array):
        return tied
    return np.array(array, dtype=np.float32, order="C")


def _read(path: Path, side: str | None) -> _Graph:
    graph = _Graph(path, side)
    for scope in read_scopes(path):
        if quantised := {node.op_type for node in scope.nodes if _QUANTISED.search(node.op_type)}:
            raise ModelError(
                f"{path} is quantised (it has {', '.join(sorted(quantised))}); rounding its weights again would lose "
                "quality: give the fp32 export"
            )
        graph.foreign |= {node.op_type for node in scope.nodes if node.domain not in ("", "ai.onnx")}
        _Walk(graph, scope).run()
    return graph


def _check(graph: _Graph, architecture: Architecture) -> None:
    """Hold what the graph computes against what the config says."""
    if graph.activations - {architecture.activation}:
        raise ModelError(
            f"{graph.path} computes {', '.join(sorted(graph.activations))}, its config says {architecture.activation}; "
            "both must be of one model"
        )
    scales = graph.scales or {1.0}
    # Half precision keeps 11 bits of it.
    if any(abs(scale / architecture.embedding_scale - 1) > 1e-3 for scale in scales):
        raise ModelError(
            f"{graph.path} scales embeddings by {', '.join(map(str, scales))}, its config by "
            f"{architecture.embedding_scale}; both must be of one model"
        )


class _Walk:
    """One pass over the nodes of a scope: each constant operand is a parameter of some module."""

    def __init__(self, graph: _Graph, scope: Scope) -> None:
        self._graph, self._scope = graph, scope
        self._projected: dict[str, str] = {}
        """What a linear layer gives before its bias is added → its module."""
        self._embedded: set[str] = set()
        self._readers: dict[str, list[NodeProto]] = {}
        for node in scope.nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def run(self) -> None:
        for node in self._scope.nodes:
            if node.op_type in PASSING:
                continue  # what they hand on is seen where it is used
            for index, name in enumerate(node.input):
                value = self._scope.constant(name)
                if value is not None and value.dtype.kind in "fV":
                    self._operand(node, index, value)

    def _operand(self, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        operator = node.op_type
        other = node.input[1 - index] if len(node.input) == 2 else ""
        if value.size == 1:
            if operator == "Mul" and other in self._embedded:
                self._graph.scales.add(float(value.reshape(())))
        elif operator == "Gemm" and (_attribute(node, "alpha", 1), _attribute(node, "beta", 1)) != (1, 1):
            self._keep(f"{node.input[index]} (scaled by {operator})", node, index, value)
        elif operator in ("MatMul", "Gemm") and index == 1:
            module = self._linear(node)
            self._keep(f"{module}.weight", node, index, value if _attribute(node, "transB", 0) else value.T)
            self._projected[node.output[0]] = module
            if operator == "Gemm":
                self._follow(module, node.output[0])
        elif operator == "Gemm":
            self._keep_bias(self._linear(node), node, index, value)
        elif operator == "Add" and (module := self._projected.get(other, "")):
            self._keep_bias(module, node, index, value)
            self._follow(module, node.output[0])
        elif operator in ("Mul", "Add") and value.ndim <= 2:  # with more dimensions it is a mask, made for one length
            kind = "weight" if operator == "Mul" else "bias"
            self._keep(f"{self._module(node, node.input[index])}.{kind}", node, index, value)
        elif operator == "LayerNormalization":
            kind = {1: "weight", 2: "bias"}.get(index, "input")
            self._keep(f"{self._module(node, node.input[index])}.{kind}", node, index, value)
        elif operator in ("Gather", "Slice") and index == 0:
            self._embedded.add(node.output[0])
            module = self._module(node, node.input[index])
            if module == "lm_head" and self._graph.side:  # a tied matrix under its other name
                module = f"{self._graph.side}.embed_tokens"
            self._keep(f"{module}.weight", node, index, value)
        elif operator not in ("Mul", "Add"):
            self._keep(f"{node.input[index]} (read by {operator})", node, index, value)

    def _linear(self, node: NodeProto) -> str:
        """The module of a MatMul or Gemm; where nodes have no such names, the bias added to it tells."""
        module = self._module(node, "")
        if module:
            return module
        names = [*node.input[1:], *(name for reader in self._readers.get(node.output[0], []) for name in reader.input)]
        if any(_plain(name).endswith(BIAS) for name in names):
            return "lm_head"
        return next((found for name in names if (found := self._named(name.rpartition(".")[0]))), node.input[1])

    def _module(self, node: NodeProto, operand: str) -> str:
        found = self._named(node.name.strip("/").replace("/", ".").rpartition(".")[0])
        if found or not operand:
            return found
        return self._named(_plain(operand).rpartition(".")[0]) or operand

    def _named(self, path: str) -> str:
        match = _MODULE.fullmatch(path)
        if match is None:
            return ""
        module, side = match["module"], match["side"] or self._graph.side
        if module == "lm_head":
            return module
        if module == "shared" and side:
            module = "embed_tokens"
        return f"{side}.{module}" if side else module

    def _keep_bias(self, module: str, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        self._keep(BIAS if module == "lm_head" else f"{module}.bias", node, index, value)

    def _keep(self, name: str, node: NodeProto, index: int, value: NDArray[Any]) -> None:
        known = self._graph.weights.get(name)
        # Both branches of a merged decoder read the same parameters.
        if known is not None and self._graph.sources[name] != node.input[index] and not np.array_equal(known, value):
            raise ModelError(f"{self._graph.path} has two different {name}; not a Marian export that can be understood")
        if known is None:
            self._graph.weights[name], self._graph.sources[name] = value, node.input[index]

    def _follow(self, module: str, output: str) -> None:
        """What reads the first layer of a feed-forward block is its activation function."""
        operators = frozenset(reader.op_type for reader in self._readers.get(output, []))
        if module.endswith(".fc1") and operators in _ACTIVATIONS:
            self._graph.activations.add(_ACTIVATIONS[operators])


def _attribute(node: NodeProto, name: str, default: float) -> float:
    return next((float(a.f or a.i) for a in node.attribute if a.name == name), default)


def _plain(name: str) -> str:
    return _APPENDED.sub("", name)
