"""Voices for tests: files in the layouts of Piper and Kokoro whose model is a formula, so that what they say can be computed."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pipeline.store.known import KOKORO

RATE = 16_000
SAMPLES_A_SIGN = 800
SIGNS = ["_", "^", "$", *" .,?!", *"abcdefghijklmnopqrstuvwxyz\u0301Iʤ→↓"]


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
    path = folder / f"{name}.onnx"
    length = [helper.make_node("Gather", ["scales", "at"], ["length"])]
    _save(path, length, "input", {"input_lengths": (TensorProto.INT64, [1]), "scales": (TensorProto.FLOAT, [3])})
    path.with_name(f"{name}.onnx.json").write_text(json.dumps(config), "utf-8")
    return path


def made_kokoro(folder: Path, voice: str = "pf_dora", styles: np.ndarray | None = None) -> tuple[Path, Path]:
    """The model and the voices of Kokoro: each sign is said as by ``made_voice``, times the first value of the style.

    ``styles``: the first value for each number of signs, from 1 on: [510].
    """
    signs = {sign: number for number, sign in enumerate(SIGNS)}
    (folder / "vocab.json").write_text(json.dumps({"vocab": signs}), "utf-8")
    length = [helper.make_node("Div", ["one_each", "speed"], ["length"])]
    inputs = {"style": (TensorProto.FLOAT, [1, 256]), "speed": (TensorProto.FLOAT, [1])}
    _save(folder / KOKORO.files[0].name, length, "tokens", inputs)
    table = np.repeat(np.ones(510, "<f4") if styles is None else styles.astype("<f4"), 256)
    archive = folder / "voices.tgz"
    with tarfile.open(archive, "w:gz") as file:
        for name in (voice, "af_heart"):
            member = tarfile.TarInfo(f"package/voices/{name}.bin")
            member.size = table.nbytes
            file.addfile(member, io.BytesIO(table.tobytes()))
    return folder, archive


def _save(path: Path, length: list[onnx.NodeProto], ids: str, others: dict[str, tuple[int, list[int]]]) -> None:
    """Save a model that says each of ``ids`` for "length" times SAMPLES_A_SIGN, times the first value of "style" if it is an input."""
    constants = [
        numpy_helper.from_array(np.array(value, kind), key)
        for key, value, kind in [
            ("samples", SAMPLES_A_SIGN, np.float32), ("half", 0.5, np.float32), ("zero", 0, np.int64),
            ("one", 1, np.int64), ("last", [-1], np.int64), ("at", 1, np.int64), ("scale", 64, np.float32),
            ("shape", [1, 1, 1, -1], np.int64), ("one_each", [1], np.float32),
        ]
    ]  # fmt: skip
    node = helper.make_node
    nodes = [
        *length,
        node("Mul", ["samples", "length"], ["each"]),
        node("Round", ["each"], ["each_whole"]),
        node("Cast", ["each_whole"], ["step"], to=TensorProto.INT64),
        node("Reshape", [ids, "last"], ["ids"]),
        node("Size", ["ids"], ["count"]),
        node("Mul", ["count", "step"], ["total"]),
        node("Range", ["zero", "total", "one"], ["positions"]),
        node("Div", ["positions", "step"], ["which"]),
        node("Gather", ["ids", "which"], ["signs"]),
        node("Cast", ["signs"], ["levels"], to=TensorProto.FLOAT),
        node("Div", ["levels", "scale"], ["sound"]),
    ]
    if "style" in others:
        nodes += [
            node("Gather", ["style", "zero"], ["styles"], axis=1),
            node("Mul", ["sound", "styles"], ["styled"]),
            node("Reshape", ["styled", "shape"], ["output"]),
        ]
    else:
        nodes.append(node("Reshape", ["sound", "shape"], ["output"]))
    info = helper.make_tensor_value_info
    inputs = [info(ids, TensorProto.INT64, [1, "n"]), *(info(name, *each) for name, each in others.items())]
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, 1, "t"])
    graph = helper.make_graph(nodes, "voice", inputs, [output], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
