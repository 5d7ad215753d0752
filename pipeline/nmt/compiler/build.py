"""From a checkpoint's directory to a directory in the streaming layout: built, measured, and only then given its name."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from pipeline.errors import ModelError, UsageError
from pipeline.nmt.compiler.checkpoint import Checkpoint
from pipeline.nmt.compiler.graph import Precision
from pipeline.nmt.compiler.measure import Comparison, Sample, Translated, compare, translate_sample
from pipeline.nmt.compiler.network import Precisions, Vocabulary, build_encoder, build_step
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.model import MarianModel
from pipeline.nmt.settings import integer
from pipeline.nmt.tokenizer import MarianTokenizer
from pipeline.progress import Progress

_P = Precision
PRESETS = {
    "fp32": Precisions(encoder=_P.FP32, decoder=_P.FP32, output=_P.FP32, embedding=_P.FP32),
    "int8": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT8, output=_P.INT8, embedding=_P.INT8),
    "int4": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT4, output=_P.INT4, embedding=_P.INT8),
}
"""What ``--weights`` may name, besides ``auto``."""
SAMPLES = ("sample.tsv", "sample.txt")
"""Names under which a directory may ship text to measure with; see ``read_sample``."""
# ``auto`` takes the fastest that loses at most so much chrF on the sample.
_MOST_CHRF_LOSS = 0.3
# Sentences of made-up text where no sample is given.
_PSEUDO_SENTENCES = 40
# A sentence of made-up text may never end.
_SAMPLE_TOKENS = 64


@dataclass(frozen=True)
class Candidate:
    """One precision, measured."""

    weights: str
    megabytes: float
    """Of the graphs."""
    comparison: Comparison


@dataclass(frozen=True)
class CompileReport:
    """What ``compile_model`` did."""

    origin: str
    weights: str
    """The precision taken."""
    rows: int
    """Rows of the output projection."""
    vocabulary: int
    """Target tokens of the model."""
    candidates: tuple[Candidate, ...]
    """Each precision that was measured, the one taken among them."""
    sample_sentences: int
    sample_is_made_up: bool
    """True where no text was given, and lines were drawn from the source vocabulary."""


def compile_model(
    source: Path,
    destination: Path,
    *,
    weights: str = "auto",
    sample: Path | None = None,
    progress: Progress | None = None,
) -> CompileReport:
    """Read the Marian model in ``source`` and write it to ``destination`` in the streaming layout.

    The output projection is cut to what target.spm can spell if, in fp32, not one token of the sample changes.

    Args:
        destination: a new or empty directory; it appears under this name when everything in it is done.
        weights: "fp32", "int8", "int4", or "auto": the fastest that stays within 0.3 chrF of fp32 on the sample, and int8
            where there is no sample: made-up text tells nothing of quality.
        sample: lines of source text, each with its translation after a tab or none with one. Without it, ``sample.tsv``
            or ``sample.txt`` of the source directory.

    Raises:
        UsageError: ``destination`` is not empty, ``weights`` is unknown, or ``sample`` has no such lines.
        ModelError: the checkpoint cannot be read or built, or ``destination`` cannot be written.
    """
    say: Progress = progress or (lambda _doing, _done: None)
    if weights not in (*PRESETS, "auto"):
        raise UsageError(f"weights are {', '.join(PRESETS)} or auto, not {weights!r}")
    shipped = (source / name for name in SAMPLES)
    file = sample or next((path for path in shipped if path.is_file()), None)
    given = read_sample(file) if file else None
    with _new_directory(destination) as work:
        say("reading the checkpoint", 0.0)
        checkpoint = read_checkpoint(source)
        everything = Vocabulary(
            np.arange(checkpoint.architecture.source_vocabulary), np.arange(checkpoint.architecture.target_vocabulary)
        )
        whole = _write(checkpoint, everything, "fp32", work / "whole", say)
        text = given or Sample(tuple(whole.tokenizer.pseudo_text(_PSEUDO_SENTENCES)), ())
        fp32 = _translate(whole, text, "fp32, whole vocabulary", say)
        vocabulary = _reachable(whole, everything, fp32)
        del whole
        shutil.rmtree(work / "whole")
        found: dict[str, Candidate] = {}
        names = (weights,) if weights != "auto" else tuple(PRESETS) if given else ("int8",)
        for name in names:
            model = _write(checkpoint, vocabulary, name, work / name, say)
            compared = compare(_translate(model, text, name, say), fp32, text)
            size = sum(path.stat().st_size for path in (work / name).glob("*.onnx")) / 1e6
            found[name] = Candidate(name, size, compared)
        taken = _fastest(found)
        shutil.move(work / taken, work / "done")
    return CompileReport(
        origin=checkpoint.origin,
        weights=taken,
        rows=len(vocabulary.target),
        vocabulary=checkpoint.architecture.target_vocabulary,
        candidates=tuple(found.values()),
        sample_sentences=len(text.sources),
        sample_is_made_up=given is None,
    )


def read_sample(path: Path) -> Sample:
    """Read lines of source text, each with its translation after a tab or none with one.

    Raises:
        UsageError: no such file, no text, or translations for some lines only.
    """
    try:
        lines = [line.split("\t") for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"the sample {path} cannot be read as UTF-8 text: {error}") from None
    widths = {len(line) for line in lines}
    if widths not in ({1}, {2}):
        raise UsageError(
            f"the sample {path} has {len(lines)} lines; expected at least one, and either all of them text alone or all "
            "of them text, a tab and its translation"
        )
    return Sample(tuple(line[0] for line in lines), tuple(line[1] for line in lines if len(line) == 2))


@contextlib.contextmanager
def _new_directory(destination: Path) -> Iterator[Path]:
    """A folder beside ``destination`` to work in, whose ``done`` takes its name at the end; nothing else is left."""
    if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
        raise UsageError(f"{destination} is there already; give a new or an empty directory")
    parent = destination.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=parent))
    except OSError as error:
        raise ModelError(f"cannot write to {parent}: {error.strerror}; choose another directory") from None
    try:
        yield work
        if destination.is_dir():
            destination.rmdir()
        (work / "done").rename(destination)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(f"{destination} could not be written: {reason}; nothing was left there") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(checkpoint: Checkpoint, vocabulary: Vocabulary, name: str, folder: Path, say: Progress) -> MarianModel:
    """Build one precision in ``folder`` and load it."""
    folder.mkdir()
    for file, content in checkpoint.files.items():
        (folder / file).write_bytes(content)
    (folder / "config.json").write_text(json.dumps(dict(checkpoint.config), indent=2) + "\n", "utf-8")
    precisions = PRESETS[name]
    say(f"building {name}", 0.0)
    _save(build_encoder(checkpoint, vocabulary, precisions), folder / "encoder.onnx")
    say(f"building {name}", 0.5)
    pad = integer(dict(checkpoint.config), "pad_token_id", MarianTokenizer.load(folder).pad_token, folder)
    _save(build_step(checkpoint, vocabulary, precisions, pad), folder / "step.onnx")
    say(f"building {name}", 1.0)
    return MarianModel.load(folder, max_tokens=_SAMPLE_TOKENS)


def _save(model: onnx.ModelProto, path: Path) -> None:
    path.write_bytes(model.SerializeToString())


def _translate(model: MarianModel, sample: Sample, name: str, say: Progress) -> Translated:
    return translate_sample(model, sample, lambda done: say(f"translating the sample: {name}", done))


def _reachable(model: MarianModel, everything: Vocabulary, fp32: Translated) -> Vocabulary:
    """The ids that this model's tokenizer and its target sentences consist of; all target ids where the sample has
    others."""
    generation = model.generation
    settings = {generation.start_token, generation.end_token, generation.pad_token, generation.forced_begin_token}
    target = model.tokenizer.target_ids | {token for token in settings if token is not None}
    if not {token for ids in fp32.ids for token in ids} <= target:
        target = set(everything.target.tolist())
    return Vocabulary(np.array(sorted(model.tokenizer.source_ids)), np.array(sorted(target)))


def _fastest(found: dict[str, Candidate]) -> str:
    """The fastest precision that loses no more chrF than ``auto`` allows; fp32 loses none."""
    good = [each for each in found.values() if each.comparison.chrf_loss <= _MOST_CHRF_LOSS]
    return min(good or found.values(), key=lambda each: each.comparison.token_ms).weights
