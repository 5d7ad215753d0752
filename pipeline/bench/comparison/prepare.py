"""One model's files in the form that each engine reads: converted, exported, compiled, kept for the next run."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.bench.comparison.engines import Candidate
from pipeline.bench.comparison.random_checkpoint import OPUS_MT, random_checkpoint
from pipeline.bench.comparison.results import REFERENCE
from pipeline.bench.comparison.sentences import ENGLISH, words_of
from pipeline.bench.comparison.transformers_files import write_transformers
from pipeline.errors import ModelError, PipelineError, UsageError
from pipeline.nmt.compiler.build import compile_model
from pipeline.nmt.compiler.checkpoint import Architecture, Checkpoint
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.layout import find_layout

_EXPORT = (
    "import sys; from optimum.exporters.onnx import main_export; "
    "main_export(sys.argv[1], output=sys.argv[2], task='text2text-generation-with-past', do_validation=False)"
)
_FP32 = 4.0
"""Bytes a weight."""
# Of the compiled layout: blocks of 128 weights (8 bit) or 32 (4 bit) share a scale of 4 bytes.
_COMPILED = {"fp32": _FP32, "int8": 1 + 4 / 128, "int4": 0.5 + 4 / 32}
_NOTE = "bench.json"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be compared."""

    model: Path | None
    """None: a model with random weights."""
    peers: tuple[str, ...]
    weights: tuple[str, ...]
    """Precisions to compile to, as ``compile_model`` names them."""
    sentences: tuple[str, ...]
    """Source text that the compiler may try its graphs on."""
    shortlist: int
    """Target tokens of the engines with a shortlist; 0 leaves them out."""


@dataclass
class Prepared:
    tokenizer: Path
    """A directory with the tokenizer's files."""
    candidates: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Engine → why."""


def prepare(wanted: Wanted, work: Path, progress: Progress) -> Prepared:
    """Make under ``work`` what is not there yet, the peers first; ``progress`` hears what is being made.

    Raises:
        ModelError: the model can neither be read nor run.
        UsageError: ``work`` holds the files of another model.
        PipelineError: a file cannot be written.
    """
    try:
        _claim(work, wanted.model)
        return _Workshop(wanted, work, progress).run()
    except OSError as error:
        raise PipelineError(
            f"cannot write {error.filename or work} ({error.strerror}); a model of opus-mt's size needs 3 GB there: "
            "name another folder with --work"
        ) from error


def step_bytes(architecture: Architecture, bytes_a_weight: float, rows: int) -> int:
    """Weights that one further token reads: of the decoder's layers all but cross-attention's keys and values, which the
    encoder's results replace, and ``rows`` rows of the output projection. Vectors and one embedding are not counted."""
    d, ffn = architecture.d_model, architecture.decoder_ffn
    return round(bytes_a_weight * (architecture.decoder_layers * (6 * d * d + 2 * d * ffn) + rows * d))


class _Workshop:
    def __init__(self, wanted: Wanted, work: Path, progress: Progress) -> None:
        self.wanted, self.work, self.progress = wanted, work, progress
        self.source, self.checkpoint = self._source()
        self.prepared = Prepared(self.source)

    def run(self) -> Prepared:
        peers = {"ctranslate2": self._ctranslate2, "optimum": self._optimum, "transformers": self._transformers}
        for peer in self.wanted.peers:
            if self.checkpoint is None:
                self.prepared.left_out[peer] = f"the weights of {self.source} cannot be read: {self.unreadable}"
                continue
            with self._or_left_out(peer):
                peers[peer](self.checkpoint)
        self._as_it_is()
        if self.checkpoint is not None:
            for weights in self.wanted.weights:
                with self._or_left_out(f"this project {weights}"):
                    self._compiled(weights)
        self.prepared.candidates.sort(key=lambda candidate: candidate.engine == "pipeline")  # below their peers
        return self.prepared

    def _source(self) -> tuple[Path, Checkpoint | None]:
        """Where the model is, and its weights; None where they cannot be read: it is measured as it is, without peers."""
        self.unreadable = ""
        if self.wanted.model is None:

            def make(folder: Path) -> None:
                write_transformers(random_checkpoint(OPUS_MT, words_of(ENGLISH)), folder)

            folder = self._made("transformers", make)
            return folder, read_checkpoint(folder)
        try:
            return self.wanted.model, read_checkpoint(self.wanted.model)
        except ModelError as error:
            self.unreadable = str(error)
            try:
                find_layout(self.wanted.model)
            except ModelError:
                raise error from None
            return self.wanted.model, None

    def _made(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder ``name``: there from an earlier run, or made now and named so when it is whole."""
        folder = self.work / name
        if not folder.exists():
            self.progress(name)
            unfinished = self.work / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
        return folder

    @contextlib.contextmanager
    def _or_left_out(self, name: str) -> Iterator[None]:
        try:
            yield
        except PipelineError as error:
            self.prepared.left_out[name] = str(error)

    def _add(
        self,
        name: str,
        engine: str,
        directory: Path,
        bytes_a_weight: float,
        *,
        rows: int = 0,
        shortlist: int = 0,
        **settings: str | bool,
    ) -> None:
        """``rows`` are those of the output projection; 0 where it has them all. ``shortlist`` are those of them used."""
        read, lossless = 0, False  # of weights that nobody can read
        if self.checkpoint is not None:
            architecture = self.checkpoint.architecture
            read = step_bytes(architecture, bytes_a_weight, shortlist or rows or architecture.target_vocabulary)
            lossless = bytes_a_weight == _FP32 and not shortlist
        self.prepared.candidates.append(Candidate(name, engine, str(directory), read, settings, shortlist, lossless))

    def _ctranslate2(self, checkpoint: Checkpoint) -> None:
        from pipeline.bench.comparison.ctranslate2_files import write_ctranslate2

        a = checkpoint.architecture
        few = min(self.wanted.shortlist, a.target_vocabulary - 1)
        # Which tokens they are does not matter for the time.
        shortlist = np.unique(np.linspace(0, a.target_vocabulary - 2, few).astype(int)).tolist()
        variants: list[tuple[str, str, float, list[int]]] = [
            (REFERENCE, "int8", 1, []),
            (f"CTranslate2 int8, vmap of {few:,}", "int8", 1, shortlist),
            ("CTranslate2 float32", "float32", _FP32, []),
        ]
        for name, kind, size, allowed in variants:
            if "vmap" in name and not few:
                continue

            def make(folder: Path, kind: str = kind, allowed: list[int] = allowed) -> None:
                write_ctranslate2(checkpoint, folder, kind, allowed)

            folder = self._made(f"ctranslate2-{kind}" + (f"-vmap-{few}" if allowed else ""), make)
            self._add(name, "ctranslate2", folder, size, shortlist=len(allowed), compute_type=kind, vmap=bool(allowed))

    def _transformers(self, checkpoint: Checkpoint) -> None:
        self._add("transformers fp32", "transformers", self._for_transformers(checkpoint), _FP32)

    def _for_transformers(self, checkpoint: Checkpoint) -> Path:
        return self._made("transformers", lambda folder: write_transformers(checkpoint, folder))

    def _optimum(self, checkpoint: Checkpoint) -> None:
        source = self._for_transformers(checkpoint)

        def make(folder: Path) -> None:
            done = subprocess.run(
                [sys.executable, "-c", _EXPORT, str(source), str(folder)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ModelError(f"the export failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
            for name, content in checkpoint.files.items():
                (folder / name).write_bytes(content)

        folder = self._made("optimum", make)
        self._add("optimum fp32", "optimum", folder, _FP32)
        if self.wanted.model is None:
            self._add("this project, merged export", "pipeline", folder, _FP32)

    def _compiled(self, weights: str) -> None:
        """The streaming layout. What the compiler said of it is kept beside it, for the next run."""

        def make(folder: Path) -> None:
            text = self.work / "sentences.txt"
            text.write_text("\n".join(self.wanted.sentences), "utf-8")
            report = compile_model(self.source, folder, weights=weights, sample=text)
            (folder / _NOTE).write_text(json.dumps({"weights": report.weights, "rows": report.rows}), "utf-8")

        folder = self._made(f"streaming-{weights}", make)
        said = json.loads((folder / _NOTE).read_text("utf-8"))
        name = f"this project {weights}" + (f" ({said['weights']})" if weights == "auto" else "")
        self._add(name, "pipeline", folder, _COMPILED[said["weights"]], rows=said["rows"])

    def _as_it_is(self) -> None:
        """The model's own graphs, where it has some."""
        with contextlib.suppress(ModelError):
            kind = find_layout(self.source).kind.value
            self._add(f"this project, {kind} as it is", "pipeline", self.source, _FP32)


def _claim(work: Path, model: Path | None) -> None:
    """Note in ``work`` whose files it holds."""
    note = work / "model.json"
    holds = {"model": None} if model is None else {"model": str(model.resolve()), "changed": _last_change(model)}
    if note.exists():
        if json.loads(note.read_text("utf-8")) != holds:
            raise UsageError(f"{work} holds the files of another model, or of an older state of it; empty it first")
        return
    work.mkdir(parents=True, exist_ok=True)
    if any(work.iterdir()):
        raise UsageError(f"{work} is not empty and no folder of this benchmark's; name an empty one with --work")
    note.write_text(json.dumps(holds), "utf-8")


def _last_change(model: Path) -> float:
    """When a file of the model was last written."""
    return max((path.stat().st_mtime for path in model.rglob("*") if path.is_file()), default=0.0)
