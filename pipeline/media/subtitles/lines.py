"""Lay out a text as subtitles of a few lines each, with the best line breaks. Pure.

Dynamic programming finds the layout with the lowest total cost: breaks after clauses cost little, breaks inside a
Chinese word much, and lines of unequal length a little.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from .breaks import phrase_starts
from .rules import SubtitleRules
from .text import atoms, break_cost, clusters, is_cjk, line_limit, widths

# A break between two subtitles disturbs more than one between two lines.
_CUE_BREAK_WEIGHT = 2.0
# Cost of one more subtitle, and of one more line.
_CUE_COST, _LINE_COST = 4.0, 0.3
# Cost per full line width by which a subtitle's lines differ.
_RAGGED_COST = 3.0
# Cost per ``widest`` by which a subtitle exceeds it; at 50 % too wide, another subtitle at a clause is cheaper.
_TOO_WIDE_COST = 8.0
_NEVER = float("inf")

Lines = tuple[str, ...]


@dataclass(frozen=True)
class _Piece:
    """Unbreakable text, and the cost of a break after it."""

    text: str
    columns: int
    trailing: int
    """Columns of the trailing space, which is not shown at the end of a line."""
    cost: float


def layout(
    text: str,
    rules: SubtitleRules,
    *,
    cues: int | None = None,
    widest: float | None = None,
    seams: Collection[int] = (),
) -> list[Lines]:
    """Lay out normalized ``text``: the lines of each subtitle, in order.

    The lines join to the text, except for spaces at breaks.

    Args:
        cues: number of subtitles, as far as the text has places to break; None chooses as few as read well.
        widest: columns that a subtitle should not exceed because of its display time.
        seams: see ``break_cost``.
    """
    if not text:
        return []
    limit = line_limit(text, rules)
    pieces = _pieces(text, limit, seams)
    if cues is not None:
        cues = min(cues, len(pieces))
    return _Breaker(pieces, limit, rules.max_lines, widest or _NEVER).cheapest(cues)


def _pieces(text: str, limit: int, seams: Collection[int]) -> list[_Piece]:
    pieces: list[_Piece] = []
    position, cjk, phrases = 0, is_cjk(text), phrase_starts(text)
    for atom in atoms(text):
        # Break inside a word only if it is wider than a line.
        for part in [atom] if _shown_columns(atom, cjk) <= limit else _split_word(atom, limit, cjk):
            position += len(part)
            cost = break_cost(text, position, seams, phrases) if position < len(text) else 0.0
            columns = sum(widths(part, cjk))
            pieces.append(_Piece(part, columns, columns - _shown_columns(part, cjk), cost))
    return pieces


def _shown_columns(text: str, cjk: bool) -> int:
    return sum(widths(text.rstrip(" "), cjk))


def _split_word(atom: str, limit: int, cjk: bool) -> list[str]:
    parts = [""]
    for cluster in clusters(atom):
        if _shown_columns(cluster, cjk) > limit:  # a cluster wider than a line
            parts += [*cluster, ""]
            continue
        if parts[-1] and _shown_columns(parts[-1] + cluster, cjk) > limit:
            parts.append("")
        parts[-1] += cluster
    return [part for part in parts if part]


class _Breaker:
    def __init__(self, pieces: list[_Piece], limit: int, max_lines: int, widest: float) -> None:
        self._pieces, self._limit, self._max_lines, self._widest = pieces, limit, max_lines, widest
        self._upto = [0]
        for piece in pieces:
            self._upto.append(self._upto[-1] + piece.columns)
        self._split = cache(self._split_lines)

    def cheapest(self, count: int | None) -> list[Lines]:
        """The cheapest subtitles for all pieces; exactly ``count`` if possible."""
        # best[n][j]: the lowest cost of the first j pieces in n subtitles (in any number if ``count`` is None), and
        # where the last one begins. A subtitle holds few pieces, so this is linear in the text's length.
        total = len(self._pieces)
        rows = count or 1
        best: list[list[tuple[float, int]]] = [[(_NEVER, 0)] * (total + 1) for _ in range(rows + 1)]
        best[0][0] = (0.0, 0)
        for n in range(1, rows + 1):
            before = best[n - 1] if count else best[n]
            if not count:
                best[n][0] = (0.0, 0)
            for j in range(1, total + 1):
                for i in range(j - 1, -1, -1):
                    cost = self._cue_cost(i, j)
                    if cost == _NEVER:
                        break
                    if before[i][0] + cost < best[n][j][0]:
                        best[n][j] = (before[i][0] + cost, i)
        if best[rows][total][0] == _NEVER:  # ``count`` subtitles are too few
            return self.cheapest(None)
        cues: list[Lines] = []
        j, n = total, rows
        while j > 0:
            i = best[n][j][1]
            cues.append(self._lines(i, j))
            j, n = i, n - 1 if count else n
        return cues[::-1]

    def _columns(self, i: int, j: int) -> int:
        return self._upto[j] - self._upto[i] - self._pieces[j - 1].trailing

    def _cue_cost(self, i: int, j: int) -> float:
        lines, _ = self._split(i, j, self._max_lines)
        if lines == _NEVER:
            return _NEVER
        too_wide = max(0.0, self._columns(i, j) / self._widest - 1) * _TOO_WIDE_COST if j - i > 1 else 0.0
        return _CUE_COST + lines + too_wide + _CUE_BREAK_WEIGHT * self._pieces[j - 1].cost

    def _split_lines(self, i: int, j: int, lines: int) -> tuple[float, int]:
        """The lowest cost of pieces i to j in at most ``lines`` lines, and where the last line begins."""
        if self._columns(i, j) <= self._limit:
            return 0.0, i
        if lines == 1 or self._columns(i, j) > self._limit * lines + 2 * lines:
            return _NEVER, i
        best = (_NEVER, i)
        share = self._columns(i, j) / lines
        for k in range(j - 1, i, -1):
            last = self._columns(k, j)
            if last > self._limit:
                break
            before, _ = self._split(i, k, lines - 1)
            ragged = abs(last - share) / self._limit * _RAGGED_COST
            cost = before + ragged + self._pieces[k - 1].cost + _LINE_COST
            if cost < best[0]:
                best = (cost, k)
        return best

    def _lines(self, i: int, j: int) -> Lines:
        lines: list[str] = []
        lines_left = self._max_lines
        while j > i:
            k = self._split(i, j, lines_left)[1]
            lines.append("".join(piece.text for piece in self._pieces[k:j]).rstrip(" "))
            j, lines_left = k, lines_left - 1
        return tuple(reversed(lines))
