"""Checkpoints for the tests of the compiler: the tiny model as transformers wrote it, whole or changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from tests.conftest import LAYOUTS, SETTINGS, TINY

Weights = dict[str, NDArray[Any]]


def true_weights() -> Weights:
    """The tiny model's weights by the names that transformers saved them under."""
    return dict(load_file(TINY / "model.safetensors"))


def tiny_config() -> dict[str, Any]:
    config: dict[str, Any] = json.loads((TINY / "config.json").read_text("utf-8"))
    return config


def write_settings(folder: Path, config: Mapping[str, Any] | None = None) -> Path:
    """The tiny model's tokenizer and settings, with some keys of config.json changed, or taken out where None."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETTINGS:
        (folder / name).write_bytes((TINY / name).read_bytes())
    changed = {key: value for key, value in (tiny_config() | dict(config or {})).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(changed), "utf-8")
    return folder


def write_checkpoint(folder: Path, weights: Weights | None = None, config: Mapping[str, Any] | None = None) -> Path:
    """A directory as transformers writes it."""
    write_settings(folder, config)
    save_file(true_weights() if weights is None else weights, folder / "model.safetensors")
    return folder


def half(weights: Weights) -> Weights:
    return {name: array.astype(np.float16) for name, array in weights.items()}


def write_export(folder: Path, layout: str, below: str = "") -> Path:
    """The tiny model as an ONNX export, its graphs in the folder ``below`` if one is named."""
    write_settings(folder)
    (folder / below).mkdir(exist_ok=True)
    for name in LAYOUTS[layout]:
        (folder / below / Path(name).name).write_bytes((TINY / name).read_bytes())
    return folder
