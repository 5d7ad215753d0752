"""Open and run ONNX Runtime sessions, with its exceptions translated to ours."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

import onnxruntime as ort

from ..errors import DecodingStoppedError, ModelError, first_line


def quiet_options() -> ort.RunOptions:
    options = ort.RunOptions()
    options.log_severity_level = 4  # errors are raised as exceptions; log lines would disturb subtitles on the terminal
    # The default. ONNX Runtime 1.32 asks for it in each run, and takes 26 µs to find that it is not set.
    options.add_run_config_entry("gpu_graph_id", "0")
    return options


@contextlib.contextmanager
def translate_ort_errors(path: Path, steps: int, options: ort.RunOptions) -> Iterator[None]:
    """Translate exceptions of a run of the graph in ``path`` after ``steps`` tokens."""
    try:
        yield
    except Exception as error:
        if options.terminate:
            raise DecodingStoppedError("the translation was stopped") from error
        reason = first_line(error)
        raise ModelError(
            f"{path} failed at step {steps}: {reason}; "
            "check the model with python -m pipeline.models inspect, or export it again"
        ) from error


def open_session(path: Path, threads: int, content: bytes | None = None) -> ort.InferenceSession:
    """Open a session on the CPU. ``threads`` is the number of threads per run; 0 lets ONNX Runtime decide.

    ``content``: a graph that is in no file; ``path`` only names it in messages.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Spinning idle threads would take CPU time from the recogniser.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if content is not None:  # fused as is fastest; further optimisation would fuse LayerNormalization to what is slower
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    if not _has_vnni():
        # Exact 8-bit products on CPUs with AVX2 but without VNNI, where the default ones saturate. They take 1.7 times as long.
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = ort.InferenceSession(content or str(path), options, providers=["CPUExecutionProvider"])
        session._model_bytes = None  # kept to open the graph again with other providers: 9 MB of a student
        return session
    except Exception as error:  # ONNX Runtime's exception classes have no common base class
        reason = first_line(error)
        raise ModelError(
            f"ONNX Runtime {ort.__version__} cannot load {path}: {reason}; fetch or export it again"
        ) from error


@functools.cache
def _has_vnni() -> bool:
    """Whether the CPU is known to have instructions for 8-bit products that do not saturate."""
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return False
