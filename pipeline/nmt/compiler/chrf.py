"""chrF, the F-score of shared character n-grams (Popović 2015, https://aclanthology.org/W15-3049)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# sacrebleu's defaults, which published figures use: n-grams of up to six characters, recall weighted by β = 2.
_ORDER = 6
_BETA_SQUARED = 4


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2 from 0 to 100, ignoring spaces. Equals sacrebleu's ``CHRF().corpus_score``."""
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
    return Counter(without_spaces[at : at + order] for at in range(len(without_spaces) - order + 1))
