"""Reads the weights that transformers saved: safetensors, or PyTorch's format if PyTorch is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ....errors import ModelError, first_line
from ..decode.settings import read_json

Weights = dict[str, NDArray[Any]]

SAFETENSORS, PYTORCH = "model.safetensors", "pytorch_model.bin"
# Importing ml_dtypes adds bfloat16 to numpy, where safetensors looks it up by name.
_FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


def can_read_pytorch() -> bool:
    return importlib.util.find_spec("torch") is not None


def read_safetensors(directory: Path) -> Weights:
    """Read model.safetensors, or the files in model.safetensors.index.json. Names lose the leading ``model.``."""
    return _read(directory, SAFETENSORS, _read_safetensors)


def read_pytorch(directory: Path) -> Weights:
    """Read pytorch_model.bin, or the files in its index. Only tensors are unpickled."""
    if not can_read_pytorch():
        raise ModelError(
            f"{directory} has its weights only in {PYTORCH}, which needs PyTorch to read; install the extra: "
            "pip install 'streaming-speech-translation[train]', or give the model as safetensors or as an fp32 ONNX "
            "export"
        )
    return _read(directory, PYTORCH, _read_pytorch)


def has(directory: Path, name: str) -> bool:
    """Whether a directory has weights in the file ``name`` or in several, which its index names."""
    return (directory / name).is_file() or (directory / f"{name}.index.json").is_file()


def _read(directory: Path, name: str, read: Callable[[Path], Weights]) -> Weights:
    if (directory / name).is_file():
        return _without_prefix(read(directory / name), directory)
    index = directory / f"{name}.index.json"
    places = read_json(index, required=True).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise ModelError(f"{index} has no weight_map of weights to files; fetch it again")
    weights: Weights = {}
    for file in sorted(set(places.values())):
        if Path(file).name != file:
            raise ModelError(f"{index} names {file!r}, which is not a file of this directory; fetch it again")
        shard = read(directory / file)
        if wrong := [tensor for tensor in shard if places.get(tensor) != file]:
            raise ModelError(f"{index} does not say that {wrong[0]} is in {file}; fetch both again")
        weights |= shard
    if missing := places.keys() - weights.keys():
        raise ModelError(f"{index} lists {min(missing)} in {places[min(missing)]}, which lacks it; fetch both again")
    return _without_prefix(weights, directory)


def _without_prefix(weights: Weights, directory: Path) -> Weights:
    short = {name.removeprefix("model."): array for name, array in weights.items()}
    if len(short) != len(weights):
        raise ModelError(f"{directory} has a weight twice, with and without the prefix model.; fetch the model again")
    return short


def _read_safetensors(path: Path) -> Weights:
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            for name in names:
                if (stored := file.get_slice(name).get_dtype()) not in _FLOATS:
                    raise ModelError(
                        f"{path}: {name} is stored as {stored} (quantised); give the checkpoint in fp32 or fp16"
                    )
            return {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is not a readable safetensors file ({error}); fetch it again") from None


def _read_pytorch(path: Path) -> Weights:
    try:
        torch: Any = importlib.import_module("torch")
    except Exception as error:  # importing PyTorch can fail in any of its libraries
        raise ModelError(
            f"{path} needs PyTorch, which is installed but cannot be imported ({first_line(error)}); install it again"
        ) from error
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files can raise anything in PyTorch's parser
        reason = first_line(error)
        raise ModelError(f"{path} is not a readable file of PyTorch tensors ({reason}); fetch it again") from None
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in tensors.items()
    ):
        raise ModelError(f"{path} does not map names to tensors; expected what transformers saves")
    if quantised := [name for name, value in tensors.items() if not value.is_floating_point()]:
        raise ModelError(
            f"{path}: {quantised[0]} is not floating point (quantised); give the checkpoint in fp32 or fp16"
        )
    if absent := [name for name, value in tensors.items() if value.layout != torch.strided or value.is_meta]:
        raise ModelError(f"{path}: {absent[0]} is not a dense tensor; expected what transformers saves")
    return {name: value.detach().float().numpy() for name, value in tensors.items()}
