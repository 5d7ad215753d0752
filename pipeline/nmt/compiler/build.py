"""From a checkpoint's directory to a directory in the streaming layout: built, measured, and only then given its name."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import ModelError, UsageError
from pipeline.nmt.compiler.calibrate import input_moments
from pipeline.nmt.compiler.checkpoint import Checkpoint
from pipeline.nmt.compiler.graph import Precision, save
from pipeline.nmt.compiler.measure import Comparison, Translated, compare, translate_sample
from pipeline.nmt.compiler.network import Precisions, Rows, build_encoder, build_step
from pipeline.nmt.compiler.quantize import Moment
from pipeline.nmt.compiler.sample import SHIPPED, Sample, read_lines, read_sample
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.model import MarianModel
from pipeline.nmt.settings import integer
from pipeline.nmt.tokenizer import MarianTokenizer
from pipeline.run.progress import Progress

logger = logging.getLogger(__name__)

_P = Precision
PRESETS = {
    "fp32": Precisions(encoder=_P.FP32, decoder=_P.FP32, output=_P.FP32, embedding=_P.FP32),
    "int8": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT8, output=_P.INT4, embedding=_P.INT8),
    "int4": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT4, output=_P.INT4, embedding=_P.INT8),
}
"""What ``weights`` may name, besides "auto". The output's best rows are computed again in the embedding's precision, so
that its 4 bits change no choice."""
SHORTLIST_SIZE = 8192
"""Output rows kept at most by a shortlist."""
# ``auto`` takes the fastest that loses at most so much chrF on the sample.
_MOST_CHRF_LOSS = 0.3
# Sentences of made-up text where no sample is given.
_PSEUDO_SENTENCES = 24
# Tokens of a sentence: of made-up text, its translation may never end.
_SAMPLE_TOKENS = 48


@dataclass(frozen=True)
class Candidate:
    """One precision, measured."""

    weights: str
    megabytes: float
    """Of the graphs, with their tables."""
    rows: int
    """Rows of the output projection."""
    comparison: Comparison


@dataclass(frozen=True)
class CompileReport:
    """What ``compile_model`` did."""

    origin: str
    """What was read; see ``Checkpoint``."""
    weights: str
    """The precision taken."""
    rows: int
    """Rows of the output projection."""
    vocabulary: int
    """Target tokens of the model."""
    candidates: tuple[Candidate, ...]
    """Each precision that was measured, the one taken among them."""
    sample_sentences: int
    """Sentences that were measured with."""
    sample_is_made_up: bool
    """True where no text was given, and lines were drawn from the source vocabulary."""


def compile_model(
    source: Path,
    destination: Path,
    *,
    weights: str = "auto",
    sample: Path | None = None,
    shortlist: Path | None = None,
    shortlist_size: int = SHORTLIST_SIZE,
    alignment: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> CompileReport:
    """Read the Marian model in ``source`` and write it to ``destination`` in the streaming layout.

    At 8 and 4 bits only the output rows that target.spm can spell are kept if, in fp32, no token of the sample changes by
    that. fp32 keeps all, and equals transformers: the others' share of the probability moves beam search's scores. (So does
    pad's, which no graph gives any; in transformers it has what the model gives it, next to nothing in a trained one.)

    Args:
        destination: a new or empty directory; it appears under this name when everything in it is done.
        weights: "fp32", "int8", "int4", or "auto": the fastest within 0.3 chrF of fp32 on the sample, or, where a shortlist
            costs more, the one that loses least; without a sample, int8.
        sample: lines of source text, each with its translation after a tab or none with one. Half of it is measured
            with; 4-bit rounding is fitted to the other half. Without it, ``sample.tsv`` or ``sample.txt`` of ``source``.
        shortlist: text in the target language. Of the output rows only the pieces that are most frequent in it are kept,
            and single characters while there is room, ``shortlist_size`` rows at most. Faster; what is left out can't come.
        alignment: (layer, head) of the decoder's cross-attention to give out with every step.

    Raises:
        UsageError: ``destination`` is not empty, or an argument cannot be meant.
        ModelError: the checkpoint cannot be read or built, or ``destination`` cannot be written.
    """
    _check_arguments(weights, shortlist_size)
    given = _given_text(source, sample)
    frequent = read_lines(shortlist, "shortlist") if shortlist else None
    with _new_directory(destination) as work:
        compiler = _Compiler(source, work, alignment, progress or (lambda _doing, _done: None))
        whole = compiler.write("fp32", compiler.everything, "whole", tapped=True)
        text = given or Sample(tuple(whole.tokenizer.pseudo_text(_PSEUDO_SENTENCES)), made_up=True)
        fitted, measured = (text, text) if text.made_up or len(text.sources) < 2 else text.halves()
        fp32 = compiler.translate(whole, measured, "fp32")
        tuned = fp32 if fitted is measured else compiler.translate(whole, fitted, "fp32")
        rows = _reachable(whole, compiler.everything, (*tuned.ids, *fp32.ids))
        if frequent is not None:
            rows = _shortlisted(whole, rows, frequent, shortlist_size)
        names = (weights,) if weights != "auto" else ("int8",) if text.made_up else tuple(PRESETS)
        if "int4" in names:
            compiler.calibrate(whole, tuned)
        del whole
        shutil.rmtree(work / "whole")
        kept = {"fp32": compiler.everything} if frequent is None else {}
        found = {name: compiler.measure(name, kept.get(name, rows), measured, fp32) for name in names}
        taken = _fastest(found)
        shutil.move(work / taken, work / "done")
    return CompileReport(
        origin=compiler.checkpoint.origin,
        weights=taken,
        rows=found[taken].rows,
        vocabulary=len(compiler.everything),
        candidates=tuple(found.values()),
        sample_sentences=len(measured.sources),
        sample_is_made_up=text.made_up,
    )


def _given_text(source: Path, sample: Path | None) -> Sample | None:
    """The user's text, else what ``source`` ships, if anything."""
    shipped = (source / name for name in SHIPPED)
    file = sample or next(
        (path for path in shipped if os.path.isfile(path)), None
    )  # Path.is_file raises for long names
    return read_sample(file) if file else None


def _check_arguments(weights: str, shortlist_size: int) -> None:
    if shortlist_size < 16:
        raise UsageError(f"a shortlist of {shortlist_size} rows holds no language; give at least 16")
    if weights not in (*PRESETS, "auto"):
        raise UsageError(f"weights are {', '.join(PRESETS)} or auto, not {weights!r}")


class _Compiler:
    """A checkpoint, and the directories made of it in a folder to work in."""

    def __init__(self, source: Path, work: Path, alignment: tuple[int, int] | None, say: Progress) -> None:
        self._work, self._say, self._alignment = work, say, alignment
        self._moments: Mapping[str, Moment] = {}
        say("reading the checkpoint", 0.0)
        self.checkpoint: Checkpoint = read_checkpoint(source)
        a = self.checkpoint.architecture
        if alignment and not (0 <= alignment[0] < a.decoder_layers and 0 <= alignment[1] < a.decoder_heads):
            raise UsageError(
                f"the alignment is layer {alignment[0]}, head {alignment[1]}; the decoder has {a.decoder_layers} layers of "
                f"{a.decoder_heads} heads, counted from 0"
            )
        self.everything: Rows = np.arange(a.target_vocabulary)

    def write(self, preset: str, rows: Rows, name: str, *, tapped: bool = False) -> MarianModel:
        """Build one precision in the folder ``name`` and load it."""
        folder, precisions, doing = self._work / name, PRESETS[preset], f"building {preset}"
        self._say(doing, 0.0)
        folder.mkdir()
        for file, content in self.checkpoint.files.items():
            (folder / file).write_bytes(content)
        config = dict(self.checkpoint.config)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
        said = {key: value for key, value in config.items() if value is not None}
        tokenizer = MarianTokenizer.load(folder)
        pad = integer(said, "pad_token_id", tokenizer.pad_token, folder)
        if said.get("eos_token_id", tokenizer.end_token) in (pad, [pad]):
            pad = tokenizer.pad_token  # which is never chosen; the end must be
        save(build_encoder(self.checkpoint, precisions), folder / "encoder.onnx")
        self._say(doing, 0.3)
        step = build_step(
            *(self.checkpoint, rows, precisions, pad, self._moments), alignment=self._alignment, tapped=tapped
        )
        save(step, folder / "step.onnx")
        self._say(doing, 1.0)
        return MarianModel.load(folder, max_tokens=_SAMPLE_TOKENS)

    def translate(self, model: MarianModel, sample: Sample, name: str) -> Translated:
        return translate_sample(model, sample, lambda done: self._say(f"translating the sample, {name}", done))

    def measure(self, preset: str, rows: Rows, sample: Sample, fp32: Translated) -> Candidate:
        """Build one precision in a folder of its name, and compare it with fp32."""
        model = self.write(preset, rows, preset)
        compared = compare(self.translate(model, sample, preset), fp32, sample)
        graphs = [path for kind in ("*.onnx", "*.data") for path in (self._work / preset).glob(kind)]
        return Candidate(preset, sum(path.stat().st_size for path in graphs) / 1e6, len(rows), compared)

    def calibrate(self, model: MarianModel, translated: Translated) -> None:
        """Learn from fp32 what the decoder's layers are fed; what is written from now on is fitted to it."""
        start = model.generation.start_token
        fed = [(source, (start, *ids[:-1])) for source, ids in zip(translated.sources, translated.ids, strict=True)]
        folder = self._work / "whole"
        self._moments = input_moments(
            folder / "encoder.onnx", folder / "step.onnx", fed, lambda done: self._say("calibrating", done)
        )


@contextlib.contextmanager
def _new_directory(destination: Path) -> Iterator[Path]:
    """A folder beside ``destination`` to work in, whose ``done`` takes its name at the end; nothing else is left."""
    try:
        destination = destination.resolve()  # "." has no name, and a link's own name is taken
        if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
            raise UsageError(f"{destination} is there already; give a new or an empty directory")
        parent = destination.parent
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".compiling.", dir=parent))
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"cannot write to {destination}: {reason}; choose another directory") from error
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


def _reachable(model: MarianModel, everything: Rows, translations: tuple[tuple[int, ...], ...]) -> Rows:
    """The ids that target sentences consist of; all where ``translations`` hold others."""
    target = model.tokenizer.target_ids | _special(model)
    if not {token for ids in translations for token in ids} <= target:
        return everything
    return np.array(sorted(target))


def _shortlisted(model: MarianModel, rows: Rows, lines: list[str], size: int) -> Rows:
    kept = _special(model)
    frequent = [token for token, _ in model.tokenizer.target_frequencies(lines).most_common()]
    if not frequent:
        raise UsageError("the shortlist's text has no word of the model's; expected text in the target language")
    for token in itertools.chain(frequent, sorted(model.tokenizer.target_characters)):
        if len(kept) >= size:
            break
        kept.add(token)
    return np.array(sorted(kept & set(rows.tolist())))


def _special(model: MarianModel) -> set[int]:
    """Ids that the search feeds or ends with."""
    g = model.generation
    found = (g.start_token, g.end_token, g.pad_token, g.forced_begin_token, g.forced_end_token)
    return {token for token in found if token is not None}


def _fastest(found: dict[str, Candidate]) -> str:
    """The fastest precision that loses no more chrF than ``auto`` allows; where a shortlist costs more, the best."""
    good = [each for each in found.values() if each.comparison.chrf_loss <= _MOST_CHRF_LOSS]
    if good:
        return min(good, key=lambda each: each.comparison.token_ms).weights
    best = min(found.values(), key=lambda each: each.comparison.chrf_loss)
    if len(found) > 1:
        logger.warning(
            "with this shortlist no precision stays within %g chrF of fp32 on the sample: taken is %s, which loses the least, "
            "%.1f; a larger shortlist, or one of text like the sample, loses less",
            _MOST_CHRF_LOSS,
            best.weights,
            best.comparison.chrf_loss,
        )
    return best.weights
