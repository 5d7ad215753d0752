"""Tiny streaming models for sherpa-onnx, made by rule: they know loud from soft, and say a fixed text while they hear speech.

Of every 40 ms that are loud, a counter is kept; each time it has come to ``EVERY``, the next piece of the text is said.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

EVERY = 6
"""Loud frames of 40 ms in which a piece is said."""
FRAMES, STEP = 16, 4  # features of 10 ms in a chunk; those of a frame
_LOUD = -11.0  # mean of the 80 logarithms of sherpa-onnx's features; silence is -15.9
_UNLIKELY = -20.0

HOTEL = ("▁WHERE", "▁IS", "▁THE", "▁HO", "TEL")
CHINESE = ("酒", "店", "在", "哪", "里", "▁O", "K")

Node = tuple[str, str, str, dict[str, Any]]  # operator, inputs, outputs, attributes


def ctc_model(folder: Path, pieces: Sequence[str] = HOTEL, name: str = "model.onnx", **metadata: object) -> Path:
    """A folder with a model in the form of NeMo's streaming CTC models. ``metadata``: None leaves a key out."""
    kept = {f"cache_last_{kind}_dim{at}": 1 for kind in ("channel", "time") for at in (1, 2, 3)}
    known = {"window_size": FRAMES, "chunk_shift": FRAMES, "subsampling_factor": STEP, "vocab_size": len(pieces)}
    state = [1, 1, 1, 1]
    _write(
        folder / name,
        [
            ("ReduceMean", "x", "levels", {"axes": [1], "keepdims": 0}),
            *_heard("kept", "kept_next", len(pieces)),
            ("OneHot", "pieces vocabulary likely", "logits", {}),
            *(("Identity", old, f"{old}_next", {}) for old in ("unused", "unused_length")),
            ("Identity", "length", "frames", {}),
        ],
        {"x": (1, ["N", 80, "T"]), "length": (7, ["N"]), "unused": (1, state), "kept": (1, state)}
        | {"unused_length": (7, [1])},
        {"logits": (1, [1, "F", len(pieces) + 1]), "frames": (7, ["N"]), "unused_next": (1, state)}
        | {"kept_next": (1, state), "unused_length_next": (7, [1])},
        _constants(len(pieces), state),
        {key: value for key, value in (known | kept | metadata).items() if value is not None},
    )
    return _with_tokens(folder, pieces)


def transducer_model(folder: Path, pieces: Sequence[str] = HOTEL) -> Path:
    """A folder with a model in the form of icefall's streaming LSTM transducers."""
    size, state = len(pieces) + 1, [1, 1, 1]
    _write(
        folder / "encoder-epoch-1.onnx",
        [
            ("ReduceMean", "x", "levels", {"axes": [2], "keepdims": 0}),
            *_heard("kept", "kept_next", len(pieces)),
            ("OneHot", "pieces vocabulary likely", "encoder_out", {}),
            ("Identity", "unused", "unused_next", {}),
        ],
        {"x": (1, ["N", "T", 80]), "kept": (1, state), "unused": (1, state)},
        {"encoder_out": (1, [1, "F", size]), "kept_next": (1, state), "unused_next": (1, state)},
        _constants(len(pieces), state),
        {"model_type": "lstm", "num_encoder_layers": 1, "T": FRAMES, "decode_chunk_len": FRAMES}
        | {"rnn_hidden_size": 1, "d_model": 1},
    )
    _write(
        folder / "decoder-epoch-1.onnx",
        [
            ("ReduceMax", "y", "last", {"axes": [1], "keepdims": 1}),
            ("Cast", "last", "number", {"to": TensorProto.FLOAT}),
            ("Mul", "number nothing", "decoder_out", {}),
        ],
        {"y": (7, ["N", 2])},
        {"decoder_out": (1, ["N", size])},
        {"nothing": np.zeros((1, size), np.float32)},
        {"vocab_size": size, "context_size": 2},
    )
    _write(
        folder / "joiner-epoch-1.onnx",
        [("Add", "encoder_out decoder_out", "logit", {})],
        {"encoder_out": (1, ["N", size]), "decoder_out": (1, ["N", size])},
        {"logit": (1, ["N", size])},
        {},
        {"joiner_dim": size},
    )
    return _with_tokens(folder, pieces)


def _heard(old: str, new: str, count: int) -> list[Node]:
    """From ``levels`` [1, T] and the counter to the numbers of ``pieces`` [1, T / 4]; 0: nothing is said."""
    return [
        ("Reshape", "levels framed", "by_frame", {}),
        ("ReduceMean", "by_frame", "level", {"axes": [2], "keepdims": 0}),
        ("Greater", "level loud", "is_loud", {}),
        ("Cast", "is_loud", "one", {"to": TensorProto.FLOAT}),
        ("CumSum", "one axis", "more", {}),
        ("Reshape", f"{old} single", "before", {}),
        ("Add", "more before", "count", {}),
        ("ReduceMax", "count", "last", {"keepdims": 1}),
        ("Reshape", "last state", new, {}),
        ("Mod", "count every", "rest", {"fmod": 1}),
        ("Equal", "rest zero", "is_whole", {}),
        ("And", "is_whole is_loud", "is_said", {}),
        ("Div", "count every", "number", {}),
        ("Sub", "number unit", "from_zero", {}),
        ("Mod", "from_zero turns", "turn", {"fmod": 1}),
        ("Add", "turn unit", "piece", {}),
        ("Where", "is_said piece zero", "said", {}),
        ("Cast", "said", "pieces", {"to": TensorProto.INT64}),
    ]


def _constants(pieces: int, state: Sequence[int]) -> dict[str, Any]:
    return {
        "framed": np.array([1, -1, STEP]),
        "single": np.array([1, 1]),
        "state": np.array(state),
        "axis": np.array(1),
        "loud": np.float32(_LOUD),
        "every": np.float32(EVERY),
        "turns": np.float32(pieces),
        "zero": np.float32(0),
        "unit": np.float32(1),
        "vocabulary": np.array(pieces + 1),
        "likely": np.array([_UNLIKELY, 0], np.float32),
    }


def _write(
    path: Path,
    nodes: Sequence[Node],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    constants: dict[str, Any],
    metadata: dict[str, object],
) -> None:
    ports = [[helper.make_tensor_value_info(name, *port) for name, port in each.items()] for each in (inputs, outputs)]
    graph = helper.make_graph(
        [helper.make_node(kind, old.split(), new.split(), **more) for kind, old, new, more in nodes],
        path.stem,
        *ports,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {key: str(value) for key, value in metadata.items()})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def _with_tokens(folder: Path, pieces: Sequence[str]) -> Path:
    lines = [f"{piece} {at}\n" for at, piece in enumerate(("<blk>", *pieces))]
    (folder / "tokens.txt").write_text("".join(lines), "utf-8")
    return folder
