"""Scores translations with BLEU and chrF."""

from __future__ import annotations

from typing import Any


def bleu_chrf(hypotheses: list[str], references: list[str], language: str) -> dict[str, Any]:
    """Corpus BLEU (sacrebleu's tokeniser zh for Chinese, otherwise 13a) and chrF, rounded, with their signatures."""
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(tokenize="zh" if language == "zh" else "13a"), CHRF()
    figures: dict[str, Any] = {"sentences": len(references)}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        figures[name] = round(metric.corpus_score(hypotheses, [references]).score, 1)
        figures[f"{name}_signature"] = str(metric.get_signature())
    return figures
