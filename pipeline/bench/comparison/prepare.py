"""Convert, export and compile one model for each engine. The files are kept for the next run."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.bench.comparison.engines import Candidate
from pipeline.bench.comparison.random_checkpoint import OPUS_MT, random_checkpoint, write_transformers
from pipeline.bench.comparison.results import REFERENCE
from pipeline.bench.comparison.sentences import ENGLISH, words_of
from pipeline.errors import ModelError, PipelineError, UsageError
from pipeline.nmt.compiler import VERSION
from pipeline.nmt.compiler.build import PRESETS, SHORTLIST_SIZE, compile_model
from pipeline.nmt.compiler.checkpoint import Architecture, Checkpoint
from pipeline.nmt.compiler.graph import Precision
from pipeline.nmt.compiler.quantize import block_size
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.layout import find_layout
from pipeline.nmt.model import MarianModel
from pipeline.nmt.onnx_header import read_precision
from pipeline.nmt.streaming import StreamingDecoder
from pipeline.nmt.tokenizer import MarianTokenizer
from pipeline.run.progress import Progress

_FP32 = (4.0, 4.0)
"""Bytes per weight of the layers and of the output projection."""
_NOTE = "bench.json"


@dataclass(frozen=True)
class Wanted:
    """What to compare."""

    model: Path | None
    """None: use a model with random weights."""
    weights: tuple[str, ...]
    """Precisions to compile to, by their names in ``compile_model``."""
    sentences: tuple[str, ...]
    """Sentences in the source language."""
    shortlist: int
    """Size of the shortlist, 16 or more; 0: no engines with a shortlist."""


@dataclass
class Prepared:
    candidates: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Engine → reason."""


def step_bytes(architecture: Architecture, layer_weight: float, row_weight: float, rows: int) -> int:
    """Return the bytes of weights that one further token reads.

    These are the decoder's layers, without the key and value projections of cross-attention (their results are cached),
    and ``rows`` rows of the output projection. Vectors and the embedding of one token are not counted.

    Args:
        layer_weight: bytes per weight of the layers.
        row_weight: bytes per weight of the output projection.
    """
    d, ffn = architecture.d_model, architecture.decoder_ffn
    return round(layer_weight * architecture.decoder_layers * (6 * d * d + 2 * d * ffn) + row_weight * rows * d)


class Preparation:
    """Makes the files of one model: ``source`` in the constructor, all others in ``prepare``."""

    def __init__(self, wanted: Wanted, work: Path, progress: Progress) -> None:
        """Claim ``work``, a new folder or one of an earlier run on this model, and read or make the model.

        Raises:
            ModelError: the model has neither readable weights nor graphs.
            UsageError: ``work`` contains files of another model, or other files.
            PipelineError: a file cannot be written.
        """
        self.wanted, self.work, self.progress = wanted, work, progress
        self.prepared = Prepared()
        with self._translate_os_errors():
            _claim_work_folder(work, wanted.model)
            self.source, self.checkpoint = self._source()

    def prepare(self) -> Prepared:
        """Make all files that do not exist yet.

        Raises:
            PipelineError: a file cannot be written.
        """
        with self._translate_os_errors():
            return self._prepare()

    @contextlib.contextmanager
    def _translate_os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PipelineError(
                f"cannot write {error.filename or self.work} ({error.strerror}); a model of opus-mt's size needs 4 GB "
                "of disk space: name another folder with --work"
            ) from error

    def _prepare(self) -> Prepared:
        if self.checkpoint is None:
            self.prepared.left_out["CTranslate2"] = f"the weights of {self.source} cannot be read: {self.unreadable}"
        else:
            with self._leave_out_on_error("CTranslate2"):
                self._add_ctranslate2(self.checkpoint)
        self._add_original_graphs()
        if self.checkpoint is not None:
            for weights in self.wanted.weights:
                with self._leave_out_on_error(f"this project {weights}"):
                    self._add_compiled(weights, 0)
            for weights in self._shortlist_precisions if self.wanted.shortlist else ():
                with self._leave_out_on_error(f"this project {weights}, shortlist"):
                    self._add_compiled(weights, self.wanted.shortlist)
        return self.prepared

    @property
    def _shortlist_precisions(self) -> tuple[str, ...]:
        """Precisions that are also compiled with a shortlist: int8 and int4, or else the first one."""
        return (
            tuple(weights for weights in self.wanted.weights if weights in ("int8", "int4")) or self.wanted.weights[:1]
        )

    def _source(self) -> tuple[Path, Checkpoint | None]:
        """Return the model's folder and weights. If these are unreadable (None), only its graphs are measured."""
        self.unreadable = ""
        if self.wanted.model is None:

            def make(folder: Path) -> None:
                write_transformers(random_checkpoint(OPUS_MT, words_of(ENGLISH)), folder)

            folder = self._make_once("transformers", make)
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

    def _make_once(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the folder ``name``; make it if no earlier run has. It gets its name only when it is complete."""
        folder = self.work / name
        if not folder.exists():
            self.progress(name, 0.0)
            unfinished = self.work / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
        return folder

    @contextlib.contextmanager
    def _leave_out_on_error(self, name: str) -> Iterator[None]:
        try:
            yield
        except PipelineError as error:
            self.prepared.left_out[name] = str(error)

    def _add(
        self,
        name: str,
        engine: str,
        directory: Path,
        weight_bytes: tuple[float, float],
        *,
        rows: int = 0,
        shortlist: int = 0,
        **settings: str | bool,
    ) -> None:
        """Add a candidate.

        Args:
            weight_bytes: bytes per weight of the layers and of the output projection.
            rows: rows of the output projection; 0: the whole target vocabulary.
            shortlist: rows that are read; 0: all.
        """
        read, lossless = 0, False  # unknown if the weights cannot be read
        if self.checkpoint is not None:
            architecture = self.checkpoint.architecture
            read = step_bytes(architecture, *weight_bytes, shortlist or rows or architecture.target_vocabulary)
            lossless = weight_bytes == _FP32 and not shortlist
        self.prepared.candidates.append(Candidate(name, engine, str(directory), read, settings, shortlist, lossless))

    def _add_ctranslate2(self, checkpoint: Checkpoint) -> None:
        from pipeline.bench.comparison.ctranslate2_files import write_ctranslate2

        def write(kind: str, folder: str, allowed: Sequence[int] = ()) -> Path:
            return self._make_once(folder, lambda to: write_ctranslate2(checkpoint, to, kind, allowed))

        self._add(REFERENCE, "ctranslate2", write("int8", "ctranslate2-int8"), (1, 1), compute_type="int8")
        if self.wanted.shortlist:
            _, note = self._compile(self._shortlist_precisions[0], self.wanted.shortlist)
            allowed = [index for index in note["ids"] if index < checkpoint.architecture.target_vocabulary - 1]
            folder = write("int8", f"ctranslate2-int8-vmap-{self.wanted.shortlist}", allowed)
            name, few = f"{REFERENCE}, {len(allowed):,} rows", len(allowed)
            self._add(name, "ctranslate2", folder, (1, 1), shortlist=few, compute_type="int8", vmap=True)
        self._add(
            "CTranslate2 float32", "ctranslate2", write("float32", "ctranslate2-float32"), _FP32, compute_type="float32"
        )

    def _add_compiled(self, weights: str, shortlist: int) -> None:
        folder, note = self._compile(weights, shortlist)
        precisions = PRESETS[note["weights"]]
        columns = self.checkpoint.architecture.d_model if self.checkpoint else 0
        size = _bytes_a_weight(precisions.decoder, columns), _bytes_a_weight(precisions.output, columns)
        name = f"this project {weights}" + (f" ({note['weights']})" if weights == "auto" else "")
        if shortlist:
            self._add(f"{name}, {note['rows']:,} rows", "pipeline", folder, size, shortlist=note["rows"])
        else:
            self._add(name, "pipeline", folder, size, rows=note["rows"])

    def _compile(self, weights: str, shortlist: int) -> tuple[Path, dict[str, Any]]:
        """Compile the model; return its folder and the stored note with weights, rows and output ids."""
        name = f"streaming-v{VERSION}-{weights}" + (f"-shortlist-{shortlist}" if shortlist else "")

        def make(folder: Path) -> None:
            text = self._write_lines("sentences.txt", self.wanted.sentences) if self.wanted.model is None else None
            report = compile_model(
                self.source,
                folder,
                weights=weights,
                # The sample does not matter for random weights. For a real model, use the compiler's own.
                sample=text,
                shortlist=self._write_lines("shortlist.txt", self._target_pieces()) if shortlist else None,
                shortlist_size=shortlist or SHORTLIST_SIZE,
                progress=lambda what, done: self.progress(f"{name}: {what}", done),
            )
            decoder = MarianModel.load(folder).decoder
            assert isinstance(decoder, StreamingDecoder)
            note = {"weights": report.weights, "rows": report.rows, "ids": decoder.output_ids.tolist()}
            (folder / _NOTE).write_text(json.dumps(note), "utf-8")

        folder = self._make_once(name, make)
        return folder, json.loads((folder / _NOTE).read_text("utf-8"))

    def _target_pieces(self) -> list[str]:
        """Return the text of every target piece. The choice of shortlist pieces does not affect the time."""
        tokenizer = MarianTokenizer.load(self.source)
        return [text for index in sorted(tokenizer.target_ids) if (text := tokenizer.decode([index]).strip())]

    def _write_lines(self, name: str, lines: Sequence[str]) -> Path:
        path = self.work / name
        path.write_text("\n".join(lines), "utf-8")
        return path

    def _add_original_graphs(self) -> None:
        """Add the model's own graphs, if it has any."""
        with contextlib.suppress(ModelError):
            layout = find_layout(self.source)
            size = _stored_bytes(layout.later.path)
            self._add(f"this project, {layout.kind.value} as it is", "pipeline", self.source, (size, size))


def _stored_bytes(graph: Path) -> float:
    """Return the bytes per weight in an ONNX file; 0 (unknown) if weights are quantised, because then they differ."""
    precision = read_precision(graph)
    if "int" in precision or "bit" in precision:
        return 0.0
    return 2.0 if precision.startswith("float16") else 4.0


def _bytes_a_weight(precision: Precision, columns: int) -> float:
    """Return the bytes per weight of a matrix with ``columns``; each quantised block has a scale of 4 bytes."""
    return precision.bits / 8 + (4 / block_size(columns) if precision.bits < 32 else 0)


def _claim_work_folder(work: Path, model: Path | None) -> None:
    """Write into ``work`` which model its files belong to, or check the note of an earlier run.

    Raises:
        UsageError: ``work`` contains files of another model, or other files.
    """
    note = work / "model.json"
    expected = (
        {"model": None} if model is None else {"model": str(model.resolve()), "changed": _last_change(model, work)}
    )
    if note.exists():
        try:
            found = json.loads(note.read_text("utf-8"))
        except ValueError:  # truncated
            found = None
        if found != expected:
            raise UsageError(f"{work} has files of another model, or of an older version of this one; empty it first")
        return
    work.mkdir(parents=True, exist_ok=True)
    if any(work.iterdir()):
        raise UsageError(f"{work} is not empty and was not made by this benchmark; name an empty folder with --work")
    note.write_text(json.dumps(expected), "utf-8")


def _last_change(model: Path, work: Path) -> float:
    """Return the latest modification time of the model's files, not counting those in ``work``."""
    files = (path for path in model.rglob("*") if path.is_file() and not path.is_relative_to(work))
    return max((path.stat().st_mtime for path in files), default=0.0)
