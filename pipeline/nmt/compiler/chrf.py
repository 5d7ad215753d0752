"""chrF: how far two texts share character n-grams (Popović 2015, https://aclanthology.org/W15-3049)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# sacrebleu's defaults, which published figures use: n-grams of up to six characters, recall counts twice (squared: 4).
_ORDER = 6
_BETA_SQUARED = 4


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2 from 0 to 100, spaces not counted; equals sacrebleu's ``CHRF().corpus_score``."""
    precisions: list[float] = []
    recalls: list[float] = []
    for order in range(1, _ORDER + 1):
        matched = guessed = expected = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = _ngrams(hypothesis, order), _ngrams(reference, order)
            matched += (ours & theirs).total()
            guessed += ours.total() if theirs else 0  # as sacrebleu counts
            expected += theirs.total()
        if guessed and expected:
            precisions.append(matched / guessed)
            recalls.append(matched / expected)
    if not any(precisions):
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return 100 * (1 + _BETA_SQUARED) * precision * recall / (_BETA_SQUARED * precision + recall)


def _ngrams(text: str, order: int) -> Counter[str]:
    dense = "".join(text.split())
    return Counter(dense[at : at + order] for at in range(len(dense) - order + 1))
