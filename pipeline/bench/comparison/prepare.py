"""One model's files in the form that each engine reads: converted, exported, compiled, kept for the next run."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.bench.comparison.engines import Candidate
from pipeline.bench.comparison.random_checkpoint import OPUS_MT, random_checkpoint
from pipeline.bench.comparison.results import REFERENCE
from pipeline.bench.comparison.sentences import ENGLISH, words_of
from pipeline.bench.comparison.transformers_files import write_transformers
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

_EXPORT = (
    "import sys; from optimum.exporters.onnx import main_export; "
    "main_export(sys.argv[1], output=sys.argv[2], task='text2text-generation-with-past', do_validation=False)"
)
_FP32 = (4.0, 4.0)
"""Bytes a weight of layers and rows."""
_NOTE = "bench.json"


@dataclass(frozen=True)
class Wanted:
    """What is to be compared."""

    model: Path | None
    """None: a model with random weights."""
    peers: tuple[str, ...]
    weights: tuple[str, ...]
    """Precisions to compile to, as ``compile_model`` names them."""
    sentences: tuple[str, ...]
    """Source text."""
    shortlist: int
    """Target tokens of the engines with a shortlist, 16 or more; 0 leaves them out."""


@dataclass
class Prepared:
    candidates: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Engine → why."""


def step_bytes(architecture: Architecture, layer_weight: float, row_weight: float, rows: int) -> int:
    """Bytes of weights that one further token reads.

    Of the decoder's layers all but cross-attention's keys and values, which the encoder's results replace, and ``rows``
    rows of the output projection. Vectors and one embedding are not counted.

    Args:
        layer_weight: bytes of a weight of the layers.
        row_weight: bytes of a weight of the output projection.
    """
    d, ffn = architecture.d_model, architecture.decoder_ffn
    return round(layer_weight * architecture.decoder_layers * (6 * d * d + 2 * d * ffn) + row_weight * rows * d)


class Workshop:
    """Where one model's files are made: ``source`` first, all others by ``prepare``."""

    def __init__(self, wanted: Wanted, work: Path, progress: Progress) -> None:
        """Take ``work``, which is new or an earlier run's on this model, and read the model, or make the random one.

        Raises:
            ModelError: the model can neither be read nor run.
            UsageError: ``work`` holds the files of another model.
            PipelineError: a file cannot be written.
        """
        self.wanted, self.work, self.progress = wanted, work, progress
        self.prepared = Prepared()
        with self._told():
            _claim(work, wanted.model)
            self.source, self.checkpoint = self._source()

    def prepare(self) -> Prepared:
        """Make what is not there yet.

        Raises:
            PipelineError: a file cannot be written.
        """
        with self._told():
            return self._prepare()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PipelineError(
                f"cannot write {error.filename or self.work} ({error.strerror}); a model of opus-mt's size needs 4 GB "
                "there: name another folder with --work"
            ) from error

    def _prepare(self) -> Prepared:
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
                    self._compiled(weights, 0)
            for weights in self._with_shortlist if self.wanted.shortlist else ():
                with self._or_left_out(f"this project {weights}, shortlist"):
                    self._compiled(weights, self.wanted.shortlist)
        self.prepared.candidates.sort(key=lambda candidate: candidate.engine == "pipeline")  # below their peers
        return self.prepared

    @property
    def _with_shortlist(self) -> tuple[str, ...]:
        """Precisions that are compiled with a shortlist too: the fast ones, where there are such."""
        return (
            tuple(weights for weights in self.wanted.weights if weights in ("int8", "int4")) or self.wanted.weights[:1]
        )

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
            self.progress(name, 0.0)
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
        weight_bytes: tuple[float, float],
        *,
        rows: int = 0,
        shortlist: int = 0,
        **settings: str | bool,
    ) -> None:
        """``weight_bytes`` of a weight of the layers and of the output projection; ``rows`` are the latter's, 0 for all;
        ``shortlist`` are those of them that are read."""
        read, lossless = 0, False  # of weights that nobody can read
        if self.checkpoint is not None:
            architecture = self.checkpoint.architecture
            read = step_bytes(architecture, *weight_bytes, shortlist or rows or architecture.target_vocabulary)
            lossless = weight_bytes == _FP32 and not shortlist
        self.prepared.candidates.append(Candidate(name, engine, str(directory), read, settings, shortlist, lossless))

    def _ctranslate2(self, checkpoint: Checkpoint) -> None:
        from pipeline.bench.comparison.ctranslate2_files import write_ctranslate2

        def write(kind: str, folder: str, allowed: Sequence[int] = ()) -> Path:
            return self._made(folder, lambda to: write_ctranslate2(checkpoint, to, kind, allowed))

        self._add(REFERENCE, "ctranslate2", write("int8", "ctranslate2-int8"), (1, 1), compute_type="int8")
        if self.wanted.shortlist:
            _, said = self._streaming(self._with_shortlist[0], self.wanted.shortlist)
            allowed = [index for index in said["ids"] if index < checkpoint.architecture.target_vocabulary - 1]
            folder = write("int8", f"ctranslate2-int8-vmap-{self.wanted.shortlist}", allowed)
            name, few = f"{REFERENCE}, {len(allowed):,} rows", len(allowed)
            self._add(name, "ctranslate2", folder, (1, 1), shortlist=few, compute_type="int8", vmap=True)
        self._add(
            "CTranslate2 float32", "ctranslate2", write("float32", "ctranslate2-float32"), _FP32, compute_type="float32"
        )

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

    def _compiled(self, weights: str, shortlist: int) -> None:
        folder, said = self._streaming(weights, shortlist)
        precisions = PRESETS[said["weights"]]
        columns = self.checkpoint.architecture.d_model if self.checkpoint else 0
        size = _bytes_a_weight(precisions.decoder, columns), _bytes_a_weight(precisions.output, columns)
        name = f"this project {weights}" + (f" ({said['weights']})" if weights == "auto" else "")
        if shortlist:
            self._add(f"{name}, {said['rows']:,} rows", "pipeline", folder, size, shortlist=said["rows"])
        else:
            self._add(name, "pipeline", folder, size, rows=said["rows"])

    def _streaming(self, weights: str, shortlist: int) -> tuple[Path, dict[str, Any]]:
        """The model in the streaming layout, and what the compiler said of it, which is kept for the next run."""
        name = f"streaming-v{VERSION}-{weights}" + (f"-shortlist-{shortlist}" if shortlist else "")

        def make(folder: Path) -> None:
            text = self._text("sentences.txt", self.wanted.sentences) if self.wanted.model is None else None
            report = compile_model(
                self.source,
                folder,
                weights=weights,
                # What is fitted to random weights does not matter; for others, the compiler's own way.
                sample=text,
                shortlist=self._text("shortlist.txt", self._target_pieces()) if shortlist else None,
                shortlist_size=shortlist or SHORTLIST_SIZE,
                progress=lambda what, done: self.progress(f"{name}: {what}", done),
            )
            decoder = MarianModel.load(folder).decoder
            assert isinstance(decoder, StreamingDecoder)
            said = {"weights": report.weights, "rows": report.rows, "ids": decoder.output_ids.tolist()}
            (folder / _NOTE).write_text(json.dumps(said), "utf-8")

        folder = self._made(name, make)
        return folder, json.loads((folder / _NOTE).read_text("utf-8"))

    def _target_pieces(self) -> list[str]:
        """Text of every target piece, one a line: which of them a shortlist has does not matter for the time."""
        tokenizer = MarianTokenizer.load(self.source)
        return [text for index in sorted(tokenizer.target_ids) if (text := tokenizer.decode([index]).strip())]

    def _text(self, name: str, lines: Sequence[str]) -> Path:
        path = self.work / name
        path.write_text("\n".join(lines), "utf-8")
        return path

    def _as_it_is(self) -> None:
        """The model's own graphs, where it has some."""
        with contextlib.suppress(ModelError):
            layout = find_layout(self.source)
            size = _stored_bytes(layout.later.path)
            self._add(f"this project, {layout.kind.value} as it is", "pipeline", self.source, (size, size))


def _stored_bytes(graph: Path) -> float:
    """Of a weight in an ONNX file; 0 where some are quantised, for then they differ."""
    precision = read_precision(graph)
    if "int" in precision or "bit" in precision:
        return 0.0
    return 2.0 if precision.startswith("float16") else 4.0


def _bytes_a_weight(precision: Precision, columns: int) -> float:
    """Of a matrix with so many columns: blocks share a scale of 4 bytes, where weights are few bits."""
    return precision.bits / 8 + (4 / block_size(columns) if precision.bits < 32 else 0)


def _claim(work: Path, model: Path | None) -> None:
    """Note in ``work`` whose files it holds."""
    note = work / "model.json"
    holds = {"model": None} if model is None else {"model": str(model.resolve()), "changed": _last_change(model, work)}
    if note.exists():
        try:
            held = json.loads(note.read_text("utf-8"))
        except ValueError:  # cut off
            held = None
        if held != holds:
            raise UsageError(f"{work} holds the files of another model, or of an older state of it; empty it first")
        return
    work.mkdir(parents=True, exist_ok=True)
    if any(work.iterdir()):
        raise UsageError(f"{work} is not empty and no folder of this benchmark's; name an empty one with --work")
    note.write_text(json.dumps(holds), "utf-8")


def _last_change(model: Path, work: Path) -> float:
    """When a file of the model, and not of ``work``, was last written."""
    files = (path for path in model.rglob("*") if path.is_file() and not path.is_relative_to(work))
    return max((path.stat().st_mtime for path in files), default=0.0)
