"""Checkpoints for the compiler's tests: the tiny model in each format, unchanged or modified."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from pipeline.errors import ModelError
from pipeline.nmt.compile.checkpoint import expected_shapes
from pipeline.nmt.compile.source import read_checkpoint
from tests.conftest import LAYOUTS, SETTINGS, TINY

Weights = dict[str, NDArray[Any]]


def true_weights():
    """The tiny model's weights by transformers' names."""
    return dict(load_file(TINY / "model.safetensors"))


def weights_with_empty_pad():
    """As ``true_weights``, but with zeros for <pad>, as in all converted opus-mt models: Marian has no such token."""
    weights = true_weights()
    weights["model.shared.weight"][-1] = 0
    return weights


def tiny_config():
    config: dict[str, Any] = json.loads((TINY / "config.json").read_text("utf-8"))
    return config


def write_settings(folder, config=None):
    """The tiny model's tokenizer and settings. ``config`` changes keys of config.json, or removes them if None."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETTINGS:
        (folder / name).write_bytes((TINY / name).read_bytes())
    changed = {key: value for key, value in (tiny_config() | dict(config or {})).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(changed), "utf-8")
    return folder


def write_checkpoint(folder, weights=None, config=None):
    """Write a directory in transformers' format."""
    write_settings(folder, config)
    save_file(true_weights() if weights is None else weights, folder / "model.safetensors")
    return folder


def half(weights):
    return {name: array.astype(np.float16) for name, array in weights.items()}


def write_export(folder, layout, below=""):
    """Write the tiny model as an ONNX export, with its graphs in the subfolder ``below``."""
    write_settings(folder)
    (folder / below).mkdir(exist_ok=True)
    for name in LAYOUTS[layout]:
        (folder / below / Path(name).name).write_bytes((TINY / name).read_bytes())
    return folder


def write_with_pad_of(folder, layout, checkpoint):
    """Write the tiny model as an ONNX export, with the row of <pad> from ``checkpoint``."""
    write_export(folder, layout)
    for path in folder.glob("*.onnx"):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            array = onnx.numpy_helper.to_array(tensor).copy()
            if array.shape == (878, 48):
                array[-1] = checkpoint.weights["decoder.embed_tokens.weight"][-1]
            elif array.shape == (48, 878):
                array[:, -1] = checkpoint.weights["lm_head.weight"][-1]
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        onnx.save(model, path)
    return folder


# Content of special:model.yml. A trained model has some 200 options; these are the relevant ones.
MODEL_OPTIONS = """
dec-cell-base-depth: 2
dec-cell-high-depth: 1
dec-depth: 2
dim-emb: 48
dim-vocabs:
  - 877
  - 877
enc-depth: 2
layer-normalization: false
right-left: false
tied-embeddings: false
tied-embeddings-all: true
tied-embeddings-src: false
transformer-aan-depth: 2
transformer-aan-nogate: false
transformer-decoder-autoreg: self-attention
transformer-dim-ffn: 128
transformer-ffn-activation: swish
transformer-ffn-depth: 2
transformer-guided-alignment-layer: last
transformer-heads: 4
transformer-no-projection: false
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-preprocess: ""
transformer-tied-layers:
  []
transformer-train-position-embeddings: false
type: transformer
ulr: false
ulr-dim-emb: 0
version: v1.9.0 2020-03-10
"""
DECODING = """
relative-paths: true
models:
  - opus.model1.npz.best-perplexity.npz
vocabs:
  - opus.vocab.yml
  - opus.vocab.yml
beam-size: 6
normalize: 1
word-penalty: 0
"""
NPZ = "opus.model1.npz.best-perplexity.npz"
_PARTS = {
    "self_attn.q_proj": "self_{}q",
    "self_attn.k_proj": "self_{}k",
    "self_attn.v_proj": "self_{}v",
    "self_attn.out_proj": "self_{}o",
    "self_attn_layer_norm": "self_Wo_ln_{}",
    "encoder_attn.q_proj": "context_{}q",
    "encoder_attn.k_proj": "context_{}k",
    "encoder_attn.v_proj": "context_{}v",
    "encoder_attn.out_proj": "context_{}o",
    "encoder_attn_layer_norm": "context_Wo_ln_{}",
    "fc1": "ffn_{}1",
    "fc2": "ffn_{}2",
    "final_layer_norm": "ffn_ffn_ln_{}",
}


def marian_weights():
    """The tiny model in Marian's format: its names, matrices [in, out], vectors [1, n], without <pad>."""
    found: Weights = {}
    for name, array in true_weights().items():
        if name == "model.shared.weight":
            found["Wemb"] = array[:-1]
        elif name == "final_logits_bias":
            found["decoder_ff_logit_out_b"] = array[:, :-1]
        else:
            side, _, layer, rest = name.removeprefix("model.").split(".", 3)
            module, _, kind = rest.rpartition(".")
            letter = {"weight": "scale", "bias": "bias"} if "norm" in module else {"weight": "W", "bias": "b"}
            value = array.T if array.ndim == 2 else array[None]
            found[f"{side}_l{int(layer) + 1}_{_PARTS[module].format(letter[kind])}"] = value
    return found


def write_archive(folder, weights=None, options=MODEL_OPTIONS):
    """Write a directory like an unpacked OPUS-MT archive."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((TINY / name).read_bytes())
    stored = np.frombuffer(options.strip().encode() + b"\n\0", np.int8)
    arrays: dict[str, Any] = marian_weights() if weights is None else weights
    np.savez(folder / NPZ, **arrays, **{"special:model.yml": stored})
    (folder / "decoder.yml").write_text(DECODING, "utf-8")
    write_vocabulary(folder / "opus.vocab.yml", list(tiny_vocabulary())[:-1])
    return folder


def write_vocabulary(path, pieces):
    lines = (f"{json.dumps(piece, ensure_ascii=False)}: {index}\n" for index, piece in enumerate(pieces))
    path.write_text("".join(lines), "utf-8", newline="\n")


def tiny_vocabulary():
    table: dict[str, int] = json.loads((TINY / "vocab.json").read_text("utf-8"))
    assert [*table.values()] == list(range(878))
    assert [*table][-1] == "<pad>"
    return table


EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")


def expected_weights(saved):
    """The weights that transformers saved, by the names in a Checkpoint."""
    short = {name.removeprefix("model."): array for name, array in saved.items()}
    embedding, bias = short.pop("shared.weight"), short.pop("final_logits_bias")
    return short | dict.fromkeys(EMBEDDINGS, embedding) | {"final_logits_bias": bias[0]}


def assert_same_weights(checkpoint, saved=None):
    """Assert that the weights are bit-identical to ``saved``, by default those that transformers saved."""
    expected = expected_weights(true_weights() if saved is None else saved)
    assert checkpoint.weights.keys() == expected.keys() == expected_shapes(checkpoint.architecture).keys()
    for name, array in checkpoint.weights.items():
        assert array.dtype == np.float32
        assert array.flags.c_contiguous, name
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def refusal(directory):
    """The error message for a directory that cannot be read."""
    with pytest.raises(ModelError) as caught:
        read_checkpoint(directory)
    message = str(caught.value)
    assert str(directory) in message
    return message


# Truncated downloads, an empty file, and unrelated bytes.
DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: data[:-4096],
    lambda data: data[:100],
    lambda data: b"",
    lambda data: b"\xff" * len(data),
)
