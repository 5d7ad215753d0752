"""Detects the format of a Marian model, transformers' or ONNX, and reads the checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ....errors import ModelError
from ..decode.exports import OPTIONAL_SETTINGS, TOKENIZER
from ..decode.settings import read_json
from ..decode.students import find_student
from .assemble import assemble, read_architecture
from .checkpoint import Checkpoint
from .huggingface import PYTORCH, SAFETENSORS, Weights, can_read_pytorch, has, read_pytorch, read_safetensors
from .onnx_export import has_onnx, read_onnx


def read_checkpoint(directory: Path) -> Checkpoint:
    """Read and check the Marian model in ``directory``.

    If a directory has several formats, the order is safetensors, PyTorch's if PyTorch is installed, ONNX.
    """
    if not os.path.isdir(directory):  # Path.is_dir raises for long names
        raise ModelError(f"no such model directory: {directory}; give the directory of the checkpoint")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise ModelError(f"the model directory {directory} is not readable; check its permissions")
    if has(directory, SAFETENSORS):
        return _from_transformers(directory, read_safetensors, "safetensors")
    if has(directory, PYTORCH) and (can_read_pytorch() or not has_onnx(directory)):
        return _from_transformers(directory, read_pytorch, "PyTorch")
    if has_onnx(directory):
        return _from_onnx(directory)
    if find_student(directory) is not None:
        raise ModelError(
            f"{directory} holds a student of Firefox Translations, which runs as it is; use it with --nmt {directory}"
        )
    raise ModelError(
        f"{directory} holds no checkpoint; expected model.safetensors, pytorch_model.bin or an fp32 ONNX export; "
        f"found {_listing(directory)}"
    )


def _from_transformers(directory: Path, read: Callable[[Path], Weights], origin: str) -> Checkpoint:
    config = read_json(directory / "config.json", required=True)
    read_architecture(config, directory)  # fail for other architectures before reading the weights
    return assemble(read(directory), config, _files(directory), origin, directory)


def _from_onnx(directory: Path) -> Checkpoint:
    config = read_json(directory / "config.json", required=True)
    weights, origin = read_onnx(directory, read_architecture(config, directory))
    return assemble(weights, config, _files(directory), origin, directory)


def _files(directory: Path) -> dict[str, bytes]:
    """The content of the tokenizer and generation settings files."""
    missing = [name for name in TOKENIZER if not (directory / name).is_file()]
    if missing:
        raise ModelError(f"{directory} lacks {', '.join(missing)}; copy them from the original checkpoint")
    try:
        return {
            name: (directory / name).read_bytes()
            for name in (*TOKENIZER, *OPTIONAL_SETTINGS)
            if (directory / name).is_file()
        }
    except OSError as error:
        raise ModelError(f"cannot read the files of {directory}: {error}; check their permissions") from None


def _listing(directory: Path) -> str:
    names = sorted(path.name for path in directory.iterdir())
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) + more) or "nothing"
