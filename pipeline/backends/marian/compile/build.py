"""Compiles a checkpoint's directory to the streaming layout. The directory appears once it is built and measured."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ....errors import ModelError, UsageError
from ....store import Progress
from ...nmt_options import NmtConfig
from ..decode.settings import integer
from ..decode.tokenizer import MarianTokenizer
from ..model import MarianModel
from .checkpoint import Checkpoint
from .checkpoint_files import read_checkpoint
from .forced_decoding import AlignmentHead, TappedModel
from .graph import Precision, save
from .measure import (
    SHIPPED,
    CompileReport,
    Measurement,
    Sample,
    TranslatedSample,
    compare,
    read_lines,
    read_sample,
    translate_sample,
)
from .model_graphs import Precisions, Rows, build_encoder, build_step
from .quantize import Moment

logger = logging.getLogger(__name__)

_P = Precision
PRESETS = {
    "fp32": Precisions(encoder=_P.FP32, decoder=_P.FP32, output=_P.FP32, embedding=_P.FP32),
    "int8": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT8, output=_P.INT4, embedding=_P.INT8),
    "int4": Precisions(encoder=_P.INT8_ROWS, decoder=_P.INT4, output=_P.INT4, embedding=_P.INT8),
}
"""The values of ``weights`` other than "auto". The output's best rows are recomputed in the embedding's precision, so
that the output's 4 bits do not change the chosen token."""
SHORTLIST_SIZE = 8192
"""Maximum number of output rows that a shortlist keeps."""
# ``auto`` takes the fastest precision that loses at most this much chrF on the sample.
_MAX_CHRF_LOSS = 0.3
# Number of made-up sentences if no sample is given.
_PSEUDO_SENTENCES = 24
# Maximum length of a translation in tokens: the translation of made-up text may never end.
_SAMPLE_TOKENS = 48
LEAST_AGREEMENT = 0.5
"""A model gives out its best head if it agrees with at least this share of a sample's tokens; see ``AlignmentHead``. Heads that
are trained to align agree with more, also on made-up text (docs/benchmarks.md)."""


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

    At 8 and 4 bits, the graphs keep only the output rows that target.spm can produce, provided that the fp32
    translations of the sample use no others. fp32 keeps all rows and equals transformers: the removed rows' share of the
    probability would change the scores of beam search. (So does the pad token's share, which is 0 in every graph. In
    transformers it comes from the model and is close to 0 if the model is trained.)

    Args:
        destination: a new or empty directory. It appears under this name when it is complete.
        weights: "fp32", "int8", "int4" or "auto". "auto" takes the fastest precision within 0.3 chrF of fp32 on the
            sample; if a shortlist costs more, the one with the least loss; without a sample, int8.
        sample: lines of source text, either all with a tab and their translation or all without. One half is used for
            measuring, the other for calibrating 4-bit rounding. Default:
            ``sample.tsv`` or ``sample.txt`` in ``source``.
        shortlist: text in the target language. The graphs keep the output rows of its most frequent pieces, then of
            single characters, up to ``shortlist_size`` rows. This is faster, but other pieces can't be produced.
        alignment: (layer, head) of the decoder's cross-attention to output at every step, if it is known that the model was
            trained to align with it. Default: the head that aligns best on the sample, unless all are bad at it.
    """
    _check_arguments(weights, shortlist_size)
    user_sample = _find_sample(source, sample)
    frequent = read_lines(shortlist, "shortlist") if shortlist else None
    with _new_directory(destination) as work:
        compiler = _Compiler(source, work, alignment, progress or (lambda _doing, _done: None))
        report = _compiled(compiler, weights, user_sample, frequent, shortlist_size)
        shutil.move(work / report.weights, work / "done")
    return report


def _compiled(
    compiler: _Compiler, weights: str, sample: Sample | None, frequent: list[str] | None, shortlist_size: int
) -> CompileReport:
    """Build the precision, or measure several; the chosen one is in the directory of its name. See ``compile_model``."""
    whole = compiler.write("fp32", compiler.all_rows, "whole", tapped=True)
    text = sample or Sample(tuple(whole.tokenizer.pseudo_text(_PSEUDO_SENTENCES)), made_up=True)
    calibration, evaluation = (text, text) if text.made_up or len(text.sources) < 2 else text.halves()
    fp32 = compiler.translate(whole, evaluation, "fp32")
    fp32_calibration = fp32 if calibration is evaluation else compiler.translate(whole, calibration, "fp32")
    head = None if compiler.alignment is not None else compiler.choose_head(whole, (fp32_calibration, fp32))
    rows = _producible_rows(whole, compiler.all_rows, (*fp32_calibration.ids, *fp32.ids))
    if frequent is not None:
        rows = _shortlisted_rows(whole, rows, frequent, shortlist_size)
    names = (weights,) if weights != "auto" else ("int8",) if text.made_up else tuple(PRESETS)
    if "int4" in names:
        compiler.calibrate(whole, fp32_calibration)
    del whole
    compiler.remove("whole")
    rows_of = dict.fromkeys(names, rows)
    if frequent is None and "fp32" in names:
        rows_of["fp32"] = compiler.all_rows
    measurements: list[Measurement] = []
    for name in names:
        model = compiler.write(name, rows_of[name], name)
        if len(names) > 1:
            measurements.append(compare(name, compiler.translate(model, evaluation, name), fp32, evaluation))
        del model
    chosen = _fastest(measurements) if measurements else names[0]
    return CompileReport(
        weights=chosen,
        rows=len(rows_of[chosen]),
        vocabulary=len(compiler.all_rows),
        measurements=tuple(measurements),
        alignment=head,
    )


def _find_sample(source: Path, sample: Path | None) -> Sample | None:
    """The user's sample, or the one that ``source`` ships, if any."""
    shipped = (source / name for name in SHIPPED)
    # Path.is_file raises for long names.
    file = sample or next((path for path in shipped if os.path.isfile(path)), None)
    return read_sample(file) if file else None


def _check_arguments(weights: str, shortlist_size: int) -> None:
    if shortlist_size < 16:
        raise UsageError(f"a shortlist of {shortlist_size} rows is too small; give at least 16")
    if weights not in (*PRESETS, "auto"):
        raise UsageError(f"weights must be {', '.join(PRESETS)} or auto, not {weights!r}")


class _Compiler:
    """Builds models of one checkpoint in directories below ``work``."""

    def __init__(self, source: Path, work: Path, alignment: tuple[int, int] | None, progress: Progress) -> None:
        self._work, self._progress = work, progress
        self.alignment = alignment
        """(layer, head) whose attention the models give out, if it is known."""
        self._moments: Mapping[str, Moment] = {}
        progress("reading the checkpoint", 0.0)
        self.checkpoint: Checkpoint = read_checkpoint(source)
        a = self.checkpoint.architecture
        if alignment and not (0 <= alignment[0] < a.decoder_layers and 0 <= alignment[1] < a.decoder_heads):
            raise UsageError(
                f"the alignment is layer {alignment[0]}, head {alignment[1]}; the decoder has {a.decoder_layers} layers of "
                f"{a.decoder_heads} heads, counted from 0"
            )
        self.all_rows: Rows = np.arange(a.target_vocabulary)

    def write(self, preset: str, rows: Rows, name: str, *, tapped: bool = False) -> MarianModel:
        """Build one precision in the directory ``name`` and load it."""
        folder, precisions, stage = self._work / name, PRESETS[preset], f"building {preset}"
        self._progress(stage, 0.0)
        folder.mkdir()
        for file, content in self.checkpoint.files.items():
            (folder / file).write_bytes(content)
        config = dict(self.checkpoint.config)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
        settings = {key: value for key, value in config.items() if value is not None}
        tokenizer = MarianTokenizer.load(folder)
        pad = integer(settings, "pad_token_id", tokenizer.pad_token, folder)
        if settings.get("eos_token_id", tokenizer.end_token) in (pad, [pad]):
            pad = tokenizer.pad_token  # pad is masked, so it must differ from the end token
        save(build_encoder(self.checkpoint, precisions), folder / "encoder.onnx")
        self._progress(stage, 0.3)
        step = build_step(
            checkpoint=self.checkpoint,
            rows=rows,
            precisions=precisions,
            pad=pad,
            moments=self._moments,
            alignment=self.alignment,
            tapped=tapped,
        )
        save(step, folder / "step.onnx")
        self._progress(stage, 1.0)
        return MarianModel.load(folder, NmtConfig(max_tokens=_SAMPLE_TOKENS))

    def translate(self, model: MarianModel, sample: Sample, name: str) -> TranslatedSample:
        return translate_sample(model, sample, lambda done: self._progress(f"translating the sample, {name}", done))

    def calibrate(self, model: MarianModel, translated: TranslatedSample) -> None:
        """Collect the input moments of the decoder's layers in fp32. Models written afterwards are fitted to them."""
        sentences = [(source, ids[:-1]) for source, ids in _forced(model, translated)]
        self._moments = self._tapped.input_moments(sentences, lambda done: self._progress("calibrating", done))

    def choose_head(self, model: MarianModel, translated: Sequence[TranslatedSample]) -> AlignmentHead | None:
        """Find the best alignment head in fp32. Models written afterwards give it out if it is good enough."""
        sentences = list(dict.fromkeys(pair for half in translated for pair in _forced(model, half)))
        head = self._tapped.best_head(sentences, lambda done: self._progress("choosing the alignment head", done))
        if head is not None and head.agreement >= LEAST_AGREEMENT:
            self.alignment = head.layer, head.head
        return head

    def remove(self, name: str) -> None:
        """Remove the model in a directory."""
        shutil.rmtree(self._work / name)

    @property
    def _tapped(self) -> TappedModel:
        """The fp32 model that was written with ``tapped``."""
        return TappedModel(self._work / "whole" / "encoder.onnx", self._work / "whole" / "step.onnx")


def _forced(model: MarianModel, translated: TranslatedSample) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The source ids of each sentence, and the start token with its translation."""
    start = model.generation.start_token
    return [(source, (start, *ids)) for source, ids in zip(translated.sources, translated.ids, strict=True)]


@contextlib.contextmanager
def _new_directory(destination: Path) -> Iterator[Path]:
    """Yield a work directory beside ``destination``. Finally its ``done`` becomes ``destination``."""
    try:
        destination = destination.resolve()  # "." has no name, and a link cannot be replaced
        if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
            raise UsageError(f"{destination} exists already; give a new or an empty directory")
        parent = destination.parent
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".compiling.", dir=parent))
    except (OSError, RuntimeError) as error:  # RuntimeError: a symlink loop
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


def _producible_rows(model: MarianModel, all_rows: Rows, translations: tuple[tuple[int, ...], ...]) -> Rows:
    """The ids that target.spm can produce, or all ids if ``translations`` contain others."""
    target = model.tokenizer.target_ids | _special_tokens(model)
    if not {token for ids in translations for token in ids} <= target:
        return all_rows
    return np.array(sorted(target))


def _shortlisted_rows(model: MarianModel, rows: Rows, lines: list[str], size: int) -> Rows:
    kept = _special_tokens(model)
    frequent = [token for token, _ in model.tokenizer.target_frequencies(lines).most_common()]
    if not frequent:
        raise UsageError("the shortlist has none of the model's pieces; expected text in the target language")
    for token in itertools.chain(frequent, sorted(model.tokenizer.target_characters)):
        if len(kept) >= size:
            break
        kept.add(token)
    return np.array(sorted(kept & set(rows.tolist())))


def _special_tokens(model: MarianModel) -> set[int]:
    """Ids that the search feeds to the decoder or stops at."""
    g = model.generation
    special = (g.start_token, g.end_token, g.pad_token, g.forced_begin_token, g.forced_end_token)
    return {token for token in special if token is not None}


def _fastest(measurements: Sequence[Measurement]) -> str:
    """The fastest precision within ``auto``'s limit of chrF loss; if there is none, the one with the least loss."""
    good = [measured for measured in measurements if measured.chrf_loss <= _MAX_CHRF_LOSS]
    if good:
        return min(good, key=lambda measured: measured.token_ms).weights
    best = min(measurements, key=lambda measured: measured.chrf_loss)
    logger.warning(
        "with this shortlist no precision stays within %g chrF of fp32 on the sample; using %s, which loses the "
        "least, %.1f. A larger shortlist, or one made from text like the sample, loses less",
        _MAX_CHRF_LOSS,
        best.weights,
        best.chrf_loss,
    )
    return best.weights
