"""The weights of a finished translator: what the compiler wrote, read back under transformers' names."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

Arrays = dict[str, np.ndarray]


def marian_weights(folder: Path) -> Arrays:
    """float32 weights by the names of ``MarianMTModel``, of ``folder`` in the streaming layout; a shared embedding.

    8-bit weights are those numbers times their scales: near what was trained, not the same. Exits if there is no such
    model, or if it is of a kind that no recipe here trains.
    """
    config = json.loads(_file(folder, "config.json").read_text())
    heads, width = config["decoder_attention_heads"], config["d_model"]
    if width // heads % 8 or not config["share_encoder_decoder_embeddings"]:
        sys.exit(f"{folder} has {heads} heads of {width} and cannot be gone on from: wanted are heads of 8, 16, 24 …")
    encoder, step = (_initialisers(_file(folder, name)) for name in ("encoder.onnx", "step.onnx"))
    scale = np.sqrt(width) if config["scale_embedding"] else 1.0
    found = {"model.shared.weight": _embedding(encoder) / np.float32(scale)}
    for graph in (encoder, step):
        for name in graph:
            layer, _, end = name.rpartition(".")
            if ".layers." in layer:
                found.update((f"model.{mine}", value) for mine, value in _named(graph, layer, end))
    return found


def _named(graph: Arrays, layer: str, end: str) -> Iterator[tuple[str, np.ndarray]]:
    """What ``layer``'s initialiser ``end`` holds, under the names it has in transformers; scales hold nothing alone."""
    if end == "skip":  # what the normalisation adds to its input: the bias of the linear layer before it
        before = layer.replace("attn_layer_norm", "attn.out_proj").replace("final_layer_norm", "fc2")
        yield f"{before}.bias", graph[f"{layer}.{end}"]
    elif end in ("weight", "bias"):
        value = _weight(graph, layer) if end == "weight" and f"{layer}.scales" in graph else graph[f"{layer}.{end}"]
        if not layer.endswith(".qkv"):
            yield f"{layer}.{end}", value
            return
        for letter, part in zip("qkv", np.split(value, 3), strict=True):
            yield f"{layer.removesuffix('qkv')}{letter}_proj.{end}", part


def _weight(graph: Arrays, layer: str) -> np.ndarray:
    """[out, in], of the compiler's two 8-bit forms: a scale a row, or one a block of a row."""
    values, scales = graph[f"{layer}.weight"], graph[f"{layer}.scales"]
    if values.dtype == np.int8:
        return np.ascontiguousarray((values * scales).T)
    rows, blocks, _ = values.shape
    return ((values.astype(np.float32) - 128) * scales.reshape(rows, blocks, 1)).reshape(rows, -1)


def _embedding(graph: Arrays) -> np.ndarray:
    values = (graph["embedding"].astype(np.float32) - 128) * graph["embedding.factors"]
    return values.reshape(len(values), -1)


def _initialisers(path: Path) -> Arrays:
    model = onnx.load(path)
    precision = {p.key: p.value for p in model.metadata_props}.get("precision", "")
    if json.loads(precision or "{}").get("decoder") != "int8":
        sys.exit(f"{path} was not compiled to int8 by this project, as --init wants it: {precision or 'no precision'}")
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).exists():
        sys.exit(f"no such file: {folder / name}. It comes with a finished translator, such as models/demo/nmt-en-zh")
    return folder / name
