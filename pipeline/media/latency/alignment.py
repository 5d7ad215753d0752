"""Align two sequences of words or characters by edit distance, or split one to match the other. Pure.

Time and memory are proportional to the product of both lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core import common_length

_PAIR, _SKIP_REFERENCE, _SKIP_HYPOTHESIS = range(3)


def aligned(
    reference: Sequence[str], hypothesis: Sequence[str], *, open_end: bool = False
) -> list[tuple[int | None, int | None]]:
    """The best alignment: (index in ``reference``, index in ``hypothesis``), in order; None on the side without a partner.

    Paired units may differ (a substitution). The entries that are not pairs of equal units are as many as the edit distance.

    Args:
        open_end: the end of ``hypothesis`` may be without partners at no cost, and is left out. Of several ends that cost
            the same, the last one is taken.
    """
    same = common_length(reference, hypothesis)
    last, ways = _edit_table(reference[same:], hypothesis[same:])
    i, j = len(ways) - 1, len(last) - 1
    if open_end:
        j = max(range(len(last)), key=lambda column: (-last[column], column))
    pairs: list[tuple[int | None, int | None]] = []
    while i or j:
        way = ways[i][j]
        i -= way != _SKIP_HYPOTHESIS
        j -= way != _SKIP_REFERENCE
        pairs.append((None if way == _SKIP_HYPOTHESIS else same + i, None if way == _SKIP_REFERENCE else same + j))
    return [(index, index) for index in range(same)] + pairs[::-1]


def resegment(references: Sequence[Sequence[str]], hypothesis: Sequence[str]) -> list[int]:
    """Split ``hypothesis`` to match ``references`` best; returns the end index of each part.

    The split has the minimum edit distance to the concatenated references (Matusov et al. 2005,
    https://aclanthology.org/2005.iwslt-1.19).
    """
    reference = [unit for sentence in references for unit in sentence]
    _, ways = _edit_table(reference, hypothesis)
    # Trace back; a part ends where the last reference unit of its sentence is consumed.
    ends: list[int] = []
    i, j = len(reference), len(hypothesis)
    for sentence in reversed(references):
        ends.append(j)
        first = i - len(sentence)
        while i > first:
            way = ways[i][j]
            i -= way != _SKIP_HYPOTHESIS
            j -= way != _SKIP_REFERENCE
    return ends[::-1]


def _edit_table(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[list[int], list[bytearray]]:
    """The edit distances of ``reference`` to each beginning of ``hypothesis``, and the best last step in each cell."""
    row = list(range(len(hypothesis) + 1))
    ways = [bytearray([_SKIP_HYPOTHESIS]) * (len(hypothesis) + 1)]
    for i, wanted in enumerate(reference, 1):
        above, row = row, [i]
        way = bytearray([_SKIP_REFERENCE]) * (len(hypothesis) + 1)
        for j, unit in enumerate(hypothesis, 1):
            costs = above[j - 1] + (wanted != unit), above[j] + 1, row[j - 1] + 1
            best = min(costs)
            row.append(best)
            way[j] = costs.index(best)
        ways.append(way)
    return row, ways
