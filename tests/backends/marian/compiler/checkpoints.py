"""Checkpoints for the compiler's tests: the tiny model in each format, unchanged or modified."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from pipeline.backends.marian.compile.checkpoint import expected_shapes
from pipeline.backends.marian.compile.checkpoint_files import read_checkpoint
from pipeline.errors import ModelError
from tests.conftest import LAYOUTS, SETTINGS, TINY

Weights = dict[str, NDArray[Any]]


def true_weights():
    """The tiny model's weights by transformers' names."""
    return dict(load_file(TINY / "model.safetensors"))


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
