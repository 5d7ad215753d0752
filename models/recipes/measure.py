"""Scores: word error rate, and BLEU and chrF with their signatures."""

from __future__ import annotations

from typing import Any


def words(text: str) -> list[str]:
    """Words without case and marks; an apostrophe belongs to its word."""
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


def edits(reference: list[str], hypothesis: list[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, found in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != found))
    return row[-1]


def word_error_rate(references: list[str], hypotheses: list[str]) -> float:
    """Percent of the reference's words."""
    pairs = [(words(wanted), words(found)) for wanted, found in zip(references, hypotheses, strict=True)]
    return 100 * sum(edits(*pair) for pair in pairs) / sum(len(wanted) for wanted, _ in pairs)


def bleu_chrf(hypotheses: list[str], references: list[str], language: str) -> dict[str, Any]:
    """Corpus BLEU (sacrebleu's zh tokeniser for Chinese, 13a else) and chrF, rounded, with both signatures."""
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(tokenize="zh" if language == "zh" else "13a"), CHRF()
    figures: dict[str, Any] = {"sentences": len(references)}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        figures[name] = round(metric.corpus_score(hypotheses, [references]).score, 1)
        figures[f"{name}_signature"] = str(metric.get_signature())
    return figures
