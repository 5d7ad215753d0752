"""Reads the weights of a compiled translator, with transformers' names."""

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
    """Read the float32 weights, by ``MarianMTModel``'s names, of a streaming layout with a shared embedding.

    8-bit weights are dequantised, so they are close to the trained ones but not equal. Exits if ``folder`` has no such
    model, or one of a kind that these recipes do not train.
    """
    config = json.loads(_existing_file(folder, "config.json").read_text())
    heads, width = config["decoder_attention_heads"], config["d_model"]
    if width // heads % 8 or not config["share_encoder_decoder_embeddings"]:
        sys.exit(
            f"{folder} has {heads} heads for d_model {width}, or separate embeddings; --init needs a shared embedding "
            "and a head size that is a multiple of 8. Name another model"
        )
    encoder, step = (_initialisers(_existing_file(folder, name)) for name in ("encoder.onnx", "step.onnx"))
    scale = np.sqrt(width) if config["scale_embedding"] else 1.0
    found = {"model.shared.weight": _embedding(encoder) / np.float32(scale)}
    for graph in (encoder, step):
        for name in graph:
            layer, _, end = name.rpartition(".")
            if ".layers." in layer:
                found.update((f"model.{mine}", value) for mine, value in _transformers_weights(graph, layer, end))
    return found


def _transformers_weights(graph: Arrays, layer: str, end: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the weights in the initialiser ``end`` of ``layer`` with transformers' names; nothing for scales."""
    if end == "skip":  # the bias of the preceding linear layer, which the normalisation adds
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
    """Dequantise one of the compiler's two 8-bit formats, with a scale per row or per block of a row: [out, in]."""
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
        sys.exit(f"{path} has the precision {precision or 'none'}; --init needs one that was compiled to int8")
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _existing_file(folder: Path, name: str) -> Path:
    if not (folder / name).exists():
        sys.exit(f"no such file: {folder / name}. Expected a compiled translator, such as models/demo/nmt-en-zh")
    return folder / name
