"""How a compiled model compares with fp32 on sample text: tokens, chrF, time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.errors import UsageError
from pipeline.nmt.compiler.chrf import chrf
from pipeline.nmt.compiler.sample import Sample
from pipeline.nmt.model import MarianModel
from pipeline.nmt.search import greedy


@dataclass(frozen=True)
class Translated:
    """What a model made of a sample."""

    sources: tuple[tuple[int, ...], ...]
    """Source ids."""
    ids: tuple[tuple[int, ...], ...]
    """Target ids, without the start token."""
    texts: tuple[str, ...]
    token_ms: float
    """Median of each sentence's processor time a token after its first."""


@dataclass(frozen=True)
class Comparison:
    """A compiled model beside fp32."""

    same_tokens: float
    """Of fp32's tokens, how many of a hundred stand at the same place."""
    same_sentences: float
    """Likewise, whole sentences."""
    chrf_loss: float
    """fp32's chrF less this model's; below 0 where it is better."""
    token_ms: float


def translate_sample(model: MarianModel, sample: Sample, progress: Callable[[float], None]) -> Translated:
    """Translate greedily, one sentence after another."""
    sources: list[tuple[int, ...]] = []
    ids: list[tuple[int, ...]] = []
    texts: list[str] = []
    times: list[float] = []
    codes = _codes(model, sample)
    for number, source in enumerate(sample.sources):
        # A multilingual model's languages take turns.
        encoded = model.tokenizer.encode(source, codes[number % len(codes)])
        encoded = [*encoded[: model.max_source_tokens - 1], encoded[-1]]  # no more than the model has positions for
        marks: list[float] = []
        tokens: list[int] = []
        for token in greedy(model.decoder, encoded, model.generation):
            tokens.append(token.id)
            marks.append(time.process_time())
        if len(marks) > 1:
            times.append((marks[-1] - marks[0]) / (len(marks) - 1))
        sources.append(tuple(encoded))
        ids.append(tuple(tokens))
        texts.append(model.tokenizer.decode(tokens))
        progress((number + 1) / len(sample.sources))
    return Translated(tuple(sources), tuple(ids), tuple(texts), 1000 * statistics.median(times) if times else 0.0)


def _codes(model: MarianModel, sample: Sample) -> Sequence[str | None]:
    """The target codes that the sample's sentences take in turn: all that the model has, or that of the references."""
    codes = model.tokenizer.target_codes
    if not codes or not sample.references:
        return codes or (None,)
    if (target := model.languages[1]) is None:
        raise UsageError(
            f"the model has several targets ({', '.join(codes[:8])}, …) and its tokenizer_config.json does not say into "
            "which the sample is translated; give source sentences alone"
        )
    return (model.target_code(target),)


def compare(found: Translated, fp32: Translated, sample: Sample) -> Comparison:
    """``found`` beside ``fp32``, whose translations are the references where ``sample`` has none."""
    references: Sequence[str] = sample.references or fp32.texts
    pairs = list(zip(found.ids, fp32.ids, strict=True))
    tokens = sum(len(theirs) for _, theirs in pairs)
    same = sum(a == b for ours, theirs in pairs for a, b in zip(ours, theirs, strict=False))
    return Comparison(
        same_tokens=100 * same / max(1, tokens),
        same_sentences=100 * sum(a == b for a, b in pairs) / max(1, len(pairs)),
        chrf_loss=chrf(fp32.texts, references) - chrf(found.texts, references),
        token_ms=found.token_ms,
    )
