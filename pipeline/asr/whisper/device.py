"""Where Whisper computes: on the CPU, or on a GPU if CTranslate2 reports one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from ...errors import UsageError, first_line

log = logging.getLogger(__name__)

# For compute_type = "int8", the default of the configuration: the first of these that the GPU has. Half precision is as exact as a
# recogniser needs and the fastest; GPUs without it report none.
_ON_GPU = ("float16", "int8_float16", "int8_float32", "float32")
_HALF = ("float16", "int8_float16")
_PROBE_FRAMES = 200
_LIBRARIES = "install NVIDIA's driver and pip install nvidia-cublas-cu12 nvidia-cudnn-cu12"


def load_model(directory: Path, device: str, compute_type: str, **threads: int) -> Any:
    """Load ``ctranslate2.models.Whisper`` on a device: "cpu", "cuda", or "auto", a GPU if there is one that works.

    Args:
        threads: ``intra_threads`` and ``inter_threads``.

    Raises:
        UsageError: "cuda", and no GPU works; or the device does not compute with the type.
        RuntimeError, ValueError: CTranslate2 cannot load the model.
    """

    def load(device: str, compute_type: str) -> Any:
        return ctranslate2.models.Whisper(str(directory), device=device, compute_type=compute_type, **threads)

    if device != "cpu":
        try:
            return _on_gpu(load, compute_type)
        except _NoGpuError as error:
            if device == "cuda":
                raise UsageError(
                    f'asr.device is "cuda", and {error}; {_LIBRARIES}, or set it to "auto" or "cpu"'
                ) from None
            if ctranslate2.get_cuda_device_count():  # else there is nothing to say
                log.warning("recognising on the CPU: %s; %s", error, _LIBRARIES)
    if compute_type in _HALF:
        known = ", ".join(sorted(ctranslate2.get_supported_compute_types("cpu")))
        raise UsageError(f"asr.compute_type is {compute_type!r}, which is for GPUs; this CPU has {known}")
    return load("cpu", compute_type)


class _NoGpuError(Exception):
    """No GPU works; the message says why."""


def _on_gpu(load: Callable[[str, str], Any], compute_type: str) -> Any:
    if not ctranslate2.get_cuda_device_count():
        raise _NoGpuError("CTranslate2 finds no CUDA device")
    try:
        known = ctranslate2.get_supported_compute_types("cuda")
        chosen = next(one for one in _ON_GPU if one in known) if compute_type == "int8" else compute_type
        if chosen not in {*known, "default", "auto"}:
            raise UsageError(f"asr.compute_type is {chosen!r}; this GPU has {', '.join(sorted(known))}")
        model = load("cuda", chosen)
        # cuBLAS and cuDNN are loaded by the first computation.
        silence = np.zeros((1, model.n_mels, _PROBE_FRAMES), np.float32)
        model.encode(ctranslate2.StorageView.from_array(silence), to_cpu=True)
    except RuntimeError as error:
        raise _NoGpuError(f"the GPU cannot be used: {first_line(error)}") from error
    log.info("recognising on the GPU (%s)", chosen)
    return model
