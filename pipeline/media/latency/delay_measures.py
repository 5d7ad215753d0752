"""Latency measures of simultaneous translation. Pure arithmetic; all times in milliseconds.

A delay is the source time consumed when a target unit (a word, or a character of unspaced text) was emitted. With
wall-clock delays instead of source time, each measure becomes computation-aware.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .alignment import resegment
from .emissions import Emission


def average_lagging(delays: Sequence[float], source_ms: float, reference_units: int) -> float:
    """AL: the mean lag behind an ideal policy that spreads the reference evenly over the source.

    (1/τ) Σ_{i ≤ τ} [d_i - (i - 1)·S/|reference|], where τ is the first i with d_i ≥ S, or the last i
    (Ma et al. 2019, https://arxiv.org/abs/1810.08398; for speech Ren et al. 2020).

    Raises:
        ValueError: there are no delays, or the source or reference is empty.
    """
    if not delays or source_ms <= 0 or reference_units <= 0:
        raise ValueError(
            f"{len(delays)} delays, a source of {source_ms} ms and {reference_units} reference units: all must be more than 0"
        )
    last = next((i for i, delay in enumerate(delays) if delay >= source_ms), len(delays) - 1)
    ideal = source_ms / reference_units
    return sum(delay - i * ideal for i, delay in enumerate(delays[: last + 1])) / (last + 1)


def length_adaptive_average_lagging(delays: Sequence[float], source_ms: float, reference_units: int) -> float:
    """LAAL: AL divided by the longer of reference and output, so that too much text is not rewarded.

    Papi et al. 2022, https://arxiv.org/abs/2206.05807; Polák et al. 2022, https://arxiv.org/abs/2204.06028.

    Raises:
        ValueError: see ``average_lagging``.
    """
    return average_lagging(delays, source_ms, max(len(delays), reference_units))


def normalized_erasure(withdrawn_units: int, final_units: int) -> float:
    """Withdrawn units per unit of the final text; 0 for append-only output.

    Arivazhagan et al. 2020, https://aclanthology.org/2020.iwslt-1.27.
    """
    return withdrawn_units / final_units if final_units else 0.0


@dataclass(frozen=True)
class Reference:
    """A reference sentence split into units, with its time in the source."""

    units: tuple[str, ...]
    start_ms: float
    duration_ms: float


@dataclass(frozen=True)
class Scores:
    """Means over the sentences with output."""

    al_ms: float
    laal_ms: float
    computation_aware_al_ms: float
    computation_aware_laal_ms: float
    sentences: int
    empty: int
    """Sentences without output; they have no delay and are excluded."""


def stream_scores(emissions: Sequence[Emission], references: Sequence[Reference]) -> Scores | None:
    """AL and LAAL of a long stream, resegmented to the reference sentences; see ``mean_scores``.

    With LAAL this is StreamLAAL (Papi et al. 2024, https://aclanthology.org/2024.acl-long.202).
    """
    cuts = resegment([reference.units for reference in references], [emission.text for emission in emissions])
    parts = (emissions[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False))
    return mean_scores(list(zip(references, parts, strict=True)))


def mean_scores(sentences: Sequence[tuple[Reference, Sequence[Emission]]]) -> Scores | None:
    """Mean scores over sentences, each given with its emissions; delays count from the sentence's start.

    None if no sentence has emissions.
    """
    rows: list[tuple[float, float, float, float]] = []
    for reference, emissions in sentences:
        if not emissions:
            continue
        source_ms, length = reference.duration_ms, len(reference.units)
        heard = [emission.delay_ms - reference.start_ms for emission in emissions]
        elapsed = [emission.elapsed_ms - reference.start_ms for emission in emissions]
        rows.append(
            (
                average_lagging(heard, source_ms, length),
                length_adaptive_average_lagging(heard, source_ms, length),
                average_lagging(elapsed, source_ms, length),
                length_adaptive_average_lagging(elapsed, source_ms, length),
            )
        )
    if not rows:
        return None
    al, laal, aware_al, aware_laal = (statistics.fmean(column) for column in zip(*rows, strict=True))
    return Scores(al, laal, aware_al, aware_laal, sentences=len(rows), empty=len(sentences) - len(rows))
