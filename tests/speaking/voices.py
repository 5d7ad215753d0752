"""Voices for tests: files in Piper's layout whose model is a formula, so that what they say can be computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RATE = 16_000
SAMPLES_A_SIGN = 800
SIGNS = ["_", "^", "$", *" .,?!", *"abcdefghijklmnopqrstuvwxyz\u0301"]


def signs_in(samples: np.ndarray, speed: float = 1.0) -> str:
    """What a voice of ``made_voice`` said."""
    level = samples[round(SAMPLES_A_SIGN / speed / 2) :: round(SAMPLES_A_SIGN / speed)].astype(float) / 32_767 * 64
    return "".join(SIGNS[round(each)] for each in level).replace("_", "")


def made_voice(folder: Path, language: str = "de", name: str = "voice", **changes: Any) -> Path:
    """A voice that says each sign as samples of a level of its own. ``changes`` are made to its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "audio": {"sample_rate": RATE},
        "phoneme_type": "text",
        "phoneme_id_map": {sign: [number] for number, sign in enumerate(SIGNS)},
        "language": {"code": language, "name_native": "abc"},
    } | changes
    constants = [
        numpy_helper.from_array(np.array(value, kind), key)
        for key, value, kind in [
            ("samples", SAMPLES_A_SIGN, np.float32), ("half", 0.5, np.float32), ("zero", 0, np.int64),
            ("one", 1, np.int64), ("last", [-1], np.int64), ("at", 1, np.int64), ("scale", 64, np.float32),
            ("shape", [1, 1, 1, -1], np.int64),
        ]
    ]  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Gather", ["scales", "at"], ["length"]),
        node("Mul", ["samples", "length"], ["each"]),
        node("Round", ["each"], ["each_whole"]),
        node("Cast", ["each_whole"], ["step"], to=TensorProto.INT64),
        node("Reshape", ["input", "last"], ["ids"]),
        node("Size", ["ids"], ["count"]),
        node("Mul", ["count", "step"], ["total"]),
        node("Range", ["zero", "total", "one"], ["positions"]),
        node("Div", ["positions", "step"], ["which"]),
        node("Gather", ["ids", "which"], ["signs"]),
        node("Cast", ["signs"], ["levels"], to=TensorProto.FLOAT),
        node("Div", ["levels", "scale"], ["sound"]),
        node("Reshape", ["sound", "shape"], ["output"]),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [1, "n"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, 1, "t"])
    graph = helper.make_graph(nodes, "voice", inputs, [output], constants)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    path.with_name(f"{name}.onnx.json").write_text(json.dumps(config), "utf-8")
    return path
