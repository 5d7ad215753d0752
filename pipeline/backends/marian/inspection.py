"""Report on a model directory: its graphs and files, and whether the model runs. Meant for bug reports."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime as ort

from ...errors import ModelError
from ...names import escaped
from ..nmt_options import NmtConfig
from ..onnx_header import Port, read_header
from .decode.exports import OPTIONAL_SETTINGS, SETTINGS
from .decode.graphs import Kind, Layout
from .decode.layout import Role, classify, find_files, find_layout
from .decode.students import find_student
from .model import MarianModel


@dataclass(frozen=True)
class GraphReport:
    """One ONNX file."""

    file: str
    role: str
    """Role of the graph, or the reason why it cannot be used."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class ModelReport:
    """One model directory."""

    directory: str
    runs: bool
    problem: str | None
    """Why the model does not run and how to fix it; None if it runs."""
    layout: str | None = None
    layers: int = 0
    heads: int = 0
    head_dim: int = 0
    vocabulary: int | None = None
    graphs: tuple[GraphReport, ...] = ()
    files: dict[str, bool] = dataclasses.field(default_factory=dict)
    """Tokenizer and settings file → whether it exists."""
    source: str | None = None
    target: str | None = None
    target_codes: tuple[str, ...] = ()
    generation: dict[str, Any] = dataclasses.field(default_factory=dict)
    onnxruntime: str = ort.__version__


def inspect_model(directory: Path, suffix: str = "") -> ModelReport:
    """Read a model directory, load the model and decode two tokens. A broken model is reported, not raised."""
    fields: dict[str, Any] = {"directory": str(directory)}
    try:
        student = find_student(directory)
        if student is not None:
            paths = dict.fromkeys(path for path in vars(student).values() if isinstance(path, Path))
            fields["files"] = {path.name: True for path in paths}
        else:
            _read_graphs(directory, suffix, fields)
        model = MarianModel.load(directory, NmtConfig(file_suffix=suffix))
    except ModelError as error:
        return ModelReport(runs=False, problem=str(error), **fields)
    fields |= _sizes(model.decoder.layout) | {"vocabulary": model.tokenizer.target_size}
    fields |= {"source": model.languages[0], "target": model.languages[1]}
    fields["target_codes"] = tuple(model.tokenizer.target_codes)
    fields["generation"] = dataclasses.asdict(model.generation)
    return ModelReport(runs=True, problem=None, **fields)


def _read_graphs(directory: Path, suffix: str, report: dict[str, Any]) -> None:
    """Add what the ONNX files show to ``found``, as far as they can be read."""
    paths = find_files(directory, suffix)
    report["files"] = {name: (directory / name).is_file() for name in (*SETTINGS, *OPTIONAL_SETTINGS)}
    graphs: list[GraphReport] = []
    unreadable: list[ModelError] = []
    for path in paths:
        try:
            header = read_header(path)
        except ModelError as error:
            unreadable.append(error)
            continue
        role = classify(header)
        said = role.value if isinstance(role, Role) else f"not usable: {role}"
        graphs.append(GraphReport(path.name, said, tuple(header.inputs.values()), tuple(header.outputs.values())))
    report["graphs"] = tuple(graphs)
    if unreadable:
        raise unreadable[0]
    report |= _sizes(find_layout(directory, suffix))


def _sizes(layout: Layout) -> dict[str, Any]:
    sizes = {name: getattr(layout, name) for name in ("layers", "heads", "head_dim", "vocabulary")}
    return sizes | {"layout": layout.kind.value}


def as_text(report: ModelReport) -> str:
    """Format the report for reading."""
    lines = [report.directory]
    if report.layout:
        sizes = f"{report.layers} layers, {report.heads} heads of {report.head_dim}, " if report.layers else ""
        lines.append(f"layout: {report.layout} ({sizes}{report.vocabulary or 'unnamed number of'} target pieces)")
    for graph in report.graphs:
        lines.append(f"{graph.file}: {graph.role}")
        for title, ports in (("inputs", graph.inputs), ("outputs", graph.outputs)):
            lines.append(f"  {len(ports)} {title}")
            lines += [f"    {port.name}: {port.dtype} [{', '.join(map(str, port.shape))}]" for port in ports]
    if report.files:
        there = [name for name, exists in report.files.items() if exists]
        missing = [name for name, exists in report.files.items() if not exists and name not in OPTIONAL_SETTINGS]
        lines.append("files: " + ", ".join(there) + (f"; missing: {', '.join(missing)}" if missing else ""))
    if report.runs:
        lines.append(f"languages: {report.source or 'unnamed'} → {report.target or 'unnamed'}")
        if report.target_codes:
            lines.append(f"target codes: {', '.join(report.target_codes)}")
        lines.append("generation: " + ", ".join(f"{key} {value}" for key, value in report.generation.items()))
    if report.runs and report.layout not in (Kind.STREAMING.value, Kind.RECURRENT.value):
        lines.append(
            "an fp32 or fp16 export decodes faster when it is compiled: python -m pipeline.models compile SRC DST"
        )
    verdict = "it runs" if report.runs else f"it does not run: {report.problem}"
    return "\n".join(escaped(line) for line in [*lines, f"with ONNX Runtime {report.onnxruntime}, {verdict}"])
