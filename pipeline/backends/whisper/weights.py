"""A Whisper model in memory, which engines share: on the CPU, or on a GPU if CTranslate2 reports one."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import tokenizers

from ...errors import ModelError, UsageError, first_line
from ..machine import usable_cores

log = logging.getLogger(__name__)

# For compute_type = "int8", the default of the configuration: the first of these that the GPU has. Half precision is as exact as a
# recogniser needs and the fastest; GPUs without it report none.
_ON_GPU = ("float16", "int8_float16", "int8_float32", "float32")
_HALF = ("float16", "int8_float16")
_PROBE_FRAMES = 200
_LIBRARIES = "install NVIDIA's driver and pip install nvidia-cublas-cu12"
# Threads of a call unless configured, on as many cores or more: CTranslate2's default.
_DEFAULT_THREADS = 4


@dataclass(frozen=True)
class WhisperWeights:
    """A Whisper model in memory. Thread-safe: engines for different languages may share it."""

    directory: Path
    model: Any
    """``ctranslate2.models.Whisper``."""
    tokenizer: tokenizers.Tokenizer

    @property
    def calls_at_once(self) -> int:
        """How many calls run at the same time; further ones wait."""
        return int(self.model.num_workers)

    @classmethod
    def load(
        cls,
        directory: Path,
        compute_type: str = "int8",
        threads: int = 0,
        several_calls: bool = False,
        device: str = "cpu",
    ) -> WhisperWeights:
        """Load a CTranslate2 Whisper model.

        Args:
            threads: of each call; 0: up to four.
            several_calls: calls of several threads run at the same time, as many as the cores carry. Each further one takes
                about 40 MB with base.
            device: see ``load_model``.
        """
        cores = usable_cores()
        at_once = max(1, cores // (threads or min(cores, _DEFAULT_THREADS))) if several_calls else 1
        try:
            model = load_model(directory, device, compute_type, intra_threads=threads, inter_threads=at_once)
            return cls(directory, model, tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json")))
        except UsageError:
            raise
        except Exception as error:  # RuntimeError, ValueError; tokenizers raises plain Exception
            raise ModelError(
                f"CTranslate2 cannot load {directory}: {first_line(error)}; fetch or convert it again"
            ) from error


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
    _load_installed_libraries()
    try:
        types = ctranslate2.get_supported_compute_types("cuda")
        chosen = next(kind for kind in _ON_GPU if kind in types) if compute_type == "int8" else compute_type
        if chosen not in {*types, "default", "auto"}:
            raise UsageError(f"asr.compute_type is {chosen!r}; this GPU has {', '.join(sorted(types))}")
        model = load("cuda", chosen)
        # cuBLAS is loaded by the first computation.
        silence = np.zeros((1, model.n_mels, _PROBE_FRAMES), np.float32)
        model.encode(ctranslate2.StorageView.from_array(silence), to_cpu=True)
    except RuntimeError as error:
        raise _NoGpuError(f"the GPU cannot be used: {first_line(error)}") from error
    log.info("recognising on the GPU (%s)", chosen)
    return model


def _load_installed_libraries() -> None:
    """Load the cuBLAS and cuDNN of pip's packages, which CTranslate2 then finds by name; the system does not look in there."""
    packages = importlib.util.find_spec("nvidia")
    for folder in (packages and packages.submodule_search_locations) or ():
        for name in ("cublas", "cudnn"):
            for pattern in (f"{name}/lib/lib{name}.so.*", f"{name}/bin/{name}64_*.dll"):
                for path in Path(folder).glob(pattern):
                    with suppress(OSError):  # of another system; CTranslate2 says what it lacks
                        ctypes.CDLL(str(path))
