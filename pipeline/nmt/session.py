"""ONNX Runtime sessions: opened and run, with its exceptions, which share no base of their own, told as ours."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

import onnxruntime as ort

from pipeline.errors import DecodingStoppedError, ModelError, first_line


def quiet_options() -> ort.RunOptions:
    options = ort.RunOptions()
    options.log_severity_level = 4  # errors arrive as exceptions; on the terminal they would tear the subtitles
    return options


@contextlib.contextmanager
def told_as_ours(path: Path, steps: int, options: ort.RunOptions) -> Iterator[None]:
    """Around a run of the graph in ``path`` after ``steps`` tokens.

    Raises:
        DecodingStoppedError: the run was terminated through ``options``.
        ModelError: it failed.
    """
    try:
        yield
    except Exception as error:
        if options.terminate:
            raise DecodingStoppedError("the translation was stopped") from error
        reason = first_line(error)
        raise ModelError(f"{path} failed at step {steps}: {reason}; inspect the model, or make it again") from error


def open_session(path: Path, threads: int) -> ort.InferenceSession:
    """A session on the CPU; ``threads`` of one run, 0 leaves the number to ONNX Runtime.

    Raises:
        ModelError: ONNX Runtime cannot load the file.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Idle threads that spin take the cores from the recogniser.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # 8-bit products that are exact on processors with AVX2 and no VNNI, too, where plain ones saturate.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exception classes share no base of their own
        reason = first_line(error)
        raise ModelError(
            f"ONNX Runtime {ort.__version__} cannot load {path}: {reason}; fetch or export it again"
        ) from error


def give_back_memory() -> None:
    """Return to the system what loading has freed, which glibc would keep: 40 MB for opus-mt in 8 bits."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
