"""Compares compiled models with fp32 on sample text by chrF and time, to choose among precisions."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....errors import UsageError
from ..decode.generation import SearchRequest
from ..model import MarianModel
from ..search.beams import greedy
from .forced_decoding import AlignmentHead

# sacrebleu's defaults, which published figures use: n-grams of up to six characters, recall weighted by β = 2.
_ORDER = 6
_BETA_SQUARED = 4
SHIPPED = ("sample.tsv", "sample.txt")
"""File names of a sample in a model's directory; see ``read_sample``."""


@dataclass(frozen=True)
class Sample:
    """Sentences to translate."""

    sources: tuple[str, ...]
    references: tuple[str, ...] = ()
    """A translation of each sentence, or empty: then fp32's translations are the references."""
    made_up: bool = False
    """Drawn from the source vocabulary. Shows which tokens a model can produce, but says nothing about quality."""

    def halves(self) -> tuple[Sample, Sample]:
        """Split into alternating sentences: one half for calibration, the other for measuring."""
        first, second = (Sample(self.sources[begin::2], self.references[begin::2], self.made_up) for begin in (1, 0))
        return first, second


def read_sample(path: Path) -> Sample:
    """Read lines of source text, either all with a tab and their translation or all without."""
    lines = [line.split("\t") for line in read_lines(path, "sample")]
    other = next((line for line in lines if len(line) != min(len(lines[0]), 2)), None)
    if not lines or other:
        difference = f"; a line that differs from the first: {' '.join(other)[:60]!r}" if other else ""
        raise UsageError(
            f"the sample {path} has {len(lines)} lines of text; expected at least one, and either all "
            f"of them text only or all of them text, a tab and its translation{difference}"
        )
    return Sample(tuple(line[0] for line in lines), tuple(line[1] for line in lines if len(line) == 2))


def read_lines(path: Path, what: str) -> list[str]:
    """Read the non-blank lines of a UTF-8 file. ``what`` names the file's purpose in errors."""
    try:
        # str.splitlines would also split at form feeds and at Unicode separators.
        return [line for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"the {what} {path} cannot be read as UTF-8 text: {error}") from None


@dataclass(frozen=True)
class TranslatedSample:
    """A model's translation of a sample."""

    sources: tuple[tuple[int, ...], ...]
    """Source ids."""
    ids: tuple[tuple[int, ...], ...]
    """Target ids, without the start token."""
    texts: tuple[str, ...]
    token_ms: float
    """Processor time per token after the first: median over the sentences."""


@dataclass(frozen=True)
class Measurement:
    """One precision, compared with fp32."""

    weights: str
    chrf_loss: float
    """fp32's chrF minus this model's; negative if this model is better."""
    token_ms: float


@dataclass(frozen=True)
class CompileReport:
    """The result of ``compile_model``."""

    weights: str
    """The chosen precision."""
    rows: int
    """Rows of the output projection."""
    vocabulary: int
    """Size of the model's target vocabulary."""
    measurements: tuple[Measurement, ...]
    """All precisions that were measured, including the chosen one; none if there was no choice."""
    alignment: AlignmentHead | None = None
    """The best alignment head, if it was measured. It is part of the model if it agrees with ``LEAST_AGREEMENT``."""


def translate_sample(model: MarianModel, sample: Sample, progress: Callable[[float], None]) -> TranslatedSample:
    """Translate greedily, one sentence after another."""
    sources: list[tuple[int, ...]] = []
    ids: list[tuple[int, ...]] = []
    texts: list[str] = []
    times: list[float] = []
    codes = _target_codes(model, sample)
    for number, source in enumerate(sample.sources):
        # Take the languages of a multilingual model in turn.
        encoded = model.tokenizer.encode(source, codes[number % len(codes)])
        # Cut to the positions that the model has, but keep the end token.
        encoded = [*encoded[: model.max_source_tokens - 1], encoded[-1]]
        times_s: list[float] = []
        tokens: list[int] = []
        for token in greedy(SearchRequest(model.decoder, encoded, model.generation)):
            tokens.append(token.id)
            times_s.append(time.process_time())
        if len(times_s) > 1:
            times.append((times_s[-1] - times_s[0]) / (len(times_s) - 1))
        sources.append(tuple(encoded))
        ids.append(tuple(tokens))
        texts.append(model.tokenizer.decode(tokens))
        progress((number + 1) / len(sample.sources))
    return TranslatedSample(tuple(sources), tuple(ids), tuple(texts), 1000 * statistics.median(times) if times else 0.0)


def _target_codes(model: MarianModel, sample: Sample) -> Sequence[str | None]:
    """The target codes to translate into, in turn: that of the references if there are any, else all of the model's."""
    codes = model.tokenizer.target_codes
    if not codes or not sample.references:
        return codes or (None,)
    if (target := model.languages[1]) is None:
        raise UsageError(
            f"the model has several target languages ({', '.join(codes[:8])}, …) and its tokenizer_config.json does "
            "not say which one the sample's translations are in; give source sentences only"
        )
    return (model.target_code(target),)


def compare(weights: str, translated: TranslatedSample, fp32: TranslatedSample, sample: Sample) -> Measurement:
    """Compare with ``fp32``, whose translations are the references if ``sample`` has none."""
    references: Sequence[str] = sample.references or fp32.texts
    loss = chrf(fp32.texts, references) - chrf(translated.texts, references)
    return Measurement(weights=weights, chrf_loss=loss, token_ms=translated.token_ms)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2 from 0 to 100, ignoring spaces. Equals sacrebleu's ``CHRF().corpus_score``.

    It is the F-score of shared character n-grams (Popović 2015, https://aclanthology.org/W15-3049).
    """
    precisions: list[float] = []
    recalls: list[float] = []
    for order in range(1, _ORDER + 1):
        matched = guessed = expected = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = _ngrams(hypothesis, order), _ngrams(reference, order)
            matched += (ours & theirs).total()
            # Like sacrebleu, skip a hypothesis if its reference has no n-grams.
            guessed += ours.total() if theirs else 0
            expected += theirs.total()
        if guessed and expected:
            precisions.append(matched / guessed)
            recalls.append(matched / expected)
    if not any(precisions):
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return 100 * (1 + _BETA_SQUARED) * precision * recall / (_BETA_SQUARED * precision + recall)


def _ngrams(text: str, order: int) -> Counter[str]:
    without_spaces = "".join(text.split())
    return Counter(without_spaces[begin : begin + order] for begin in range(len(without_spaces) - order + 1))
