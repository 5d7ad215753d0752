"""Latency measures of simultaneous translation. Pure arithmetic; all times in milliseconds.

A delay is the source time consumed when a target unit (a word, or a character of unspaced text) was emitted. With
wall-clock delays instead of source time, each measure becomes computation-aware.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

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


def long_yaal(
    delays: Sequence[float], source_ms: float, reference_units: int, end_ms: float = math.inf
) -> float | None:
    """LongYAAL of one sentence of a stream: like LAAL, but of all units, however long after the sentence they came.

    (1/τ) Σ_{i ≤ τ} [d_i - (i - 1)·S/max(|reference|, |output|)], where τ is the last i before the first with d_i ≥ ``end_ms``, the end
    of the recording from the sentence's start on; None if there is none (Polák et al. 2025, https://arxiv.org/abs/2509.17349).
    """
    ideal = source_ms / max(len(delays), reference_units)
    lags = [delay - i * ideal for i, delay in enumerate(takewhile(lambda delay: delay < end_ms, delays))]
    return statistics.fmean(lags) if lags else None


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

    laal_ms: float
    yaal_ms: float | None
    """LongYAAL; None if all text came after the end of the recording."""
    computation_aware_laal_ms: float
    computation_aware_yaal_ms: float | None
    sentences: int
    empty: int
    """Sentences without output; they have no delay and are excluded."""


def stream_scores(
    emissions: Sequence[Emission], references: Sequence[Reference], recording_ms: float = math.inf
) -> Scores | None:
    """LAAL and LongYAAL of a long stream, resegmented to the reference sentences; see ``mean_scores``.

    With LAAL this is StreamLAAL (Papi et al. 2024, https://aclanthology.org/2024.acl-long.202).
    """
    cuts = resegment([reference.units for reference in references], [emission.text for emission in emissions])
    parts = (emissions[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False))
    return mean_scores(list(zip(references, parts, strict=True)), recording_ms)


def mean_scores(
    sentences: Sequence[tuple[Reference, Sequence[Emission]]], recording_ms: float = math.inf
) -> Scores | None:
    """Mean scores over sentences, each given with its emissions; delays count from the sentence's start.

    None if no sentence has emissions.
    """
    laal: tuple[list[float], list[float]] = ([], [])
    yaal: tuple[list[float], list[float]] = ([], [])
    for reference, emissions in sentences:
        if not emissions:
            continue
        source_ms, length, start_ms = reference.duration_ms, len(reference.units), reference.start_ms
        for kind, at_ms in enumerate(
            ([emission.delay_ms for emission in emissions], [emission.elapsed_ms for emission in emissions])
        ):
            delays = [emitted_ms - start_ms for emitted_ms in at_ms]
            laal[kind].append(length_adaptive_average_lagging(delays, source_ms, length))
            if (lag_ms := long_yaal(delays, source_ms, length, recording_ms - start_ms)) is not None:
                yaal[kind].append(lag_ms)
    if not laal[0]:
        return None
    count = len(laal[0])
    (heard, elapsed), (long_heard, long_elapsed) = laal, yaal
    return Scores(
        statistics.fmean(heard),
        statistics.fmean(long_heard) if long_heard else None,
        statistics.fmean(elapsed),
        statistics.fmean(long_elapsed) if long_elapsed else None,
        sentences=count,
        empty=len(sentences) - count,
    )
