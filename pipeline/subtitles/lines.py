"""A text → subtitles of a few lines each, broken where it reads best. Pure.

The cheapest of all ways to break, by dynamic programming: breaks at clauses cost little, breaks inside a Chinese word
much, and lines of unequal length a little more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from pipeline.subtitles.breaks import phrase_starts
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.text import atoms, break_cost, clusters, is_cjk, line_limit, widths

# A break between two subtitles is felt more than one between two lines.
_CUE_BREAK_WEIGHT = 2.0
# One subtitle more, and one line more, must be worth it.
_CUE_COST, _LINE_COST = 4.0, 0.3
# Lines of a subtitle that differ by a whole line's width.
_RAGGED_COST = 3.0
# A subtitle wider than asked for, for each time that width: at half as much again, one more at a clause is better.
_TOO_WIDE_COST = 8.0
_NEVER = float("inf")

Lines = tuple[str, ...]


@dataclass(frozen=True)
class _Piece:
    """What may not be broken, and what it costs to break after it."""

    text: str
    columns: int
    trailing: int
    """Columns of the space at its end, which a line that ends here does not show."""
    cost: float


def layout(
    text: str,
    rules: SubtitleRules,
    *,
    cues: int | None = None,
    widest: float | None = None,
    seams: Collection[int] = (),
) -> list[Lines]:
    """The lines of each subtitle that normalized ``text`` is shown in, in order. Joined they are the text but for the
    spaces at the breaks.

    Args:
        cues: make so many subtitles, as far as there are places to break; None makes as few as read well.
        widest: columns of a subtitle that should not be exceeded, where its time on the screen asks for that.
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
    at, cjk, phrases = 0, is_cjk(text), phrase_starts(text)
    for atom in atoms(text):
        # Only a word that is wider than a line is broken inside.
        for part in [atom] if _shown(atom, cjk) <= limit else _forced(atom, limit, cjk):
            at += len(part)
            cost = break_cost(text, at, seams, phrases) if at < len(text) else 0.0
            columns = sum(widths(part, cjk))
            pieces.append(_Piece(part, columns, columns - _shown(part, cjk), cost))
    return pieces


def _shown(text: str, cjk: bool) -> int:
    return sum(widths(text.rstrip(" "), cjk))


def _forced(atom: str, limit: int, cjk: bool) -> list[str]:
    parts = [""]
    for cluster in clusters(atom):
        if _shown(cluster, cjk) > limit:  # joined without end
            parts += [*cluster, ""]
            continue
        if parts[-1] and _shown(parts[-1] + cluster, cjk) > limit:
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
        """The subtitles of all pieces; exactly ``count`` of them if that can be."""
        # best[n][j]: the least cost of the first j pieces in n subtitles (in any number, where none is asked for), with
        # where the last of them begins. A subtitle holds few pieces, so this is linear in the text's length.
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
        if best[rows][total][0] == _NEVER:  # so few subtitles do not hold it
            return self.cheapest(None)
        found: list[Lines] = []
        j, n = total, rows
        while j > 0:
            i = best[n][j][1]
            found.append(self._lines(i, j))
            j, n = i, n - 1 if count else n
        return found[::-1]

    def _columns(self, i: int, j: int) -> int:
        return self._upto[j] - self._upto[i] - self._pieces[j - 1].trailing

    def _cue_cost(self, i: int, j: int) -> float:
        lines, _ = self._split(i, j, self._max_lines)
        if lines == _NEVER:
            return _NEVER
        too_wide = max(0.0, self._columns(i, j) / self._widest - 1) * _TOO_WIDE_COST if j - i > 1 else 0.0
        return _CUE_COST + lines + too_wide + _CUE_BREAK_WEIGHT * self._pieces[j - 1].cost

    def _split_lines(self, i: int, j: int, lines: int) -> tuple[float, int]:
        """The least cost of pieces i to j in so many lines at most, and where the last line begins."""
        if self._columns(i, j) <= self._limit:
            return 0.0, i
        if lines == 1 or self._columns(i, j) > self._limit * lines + 2 * lines:
            return _NEVER, i
        found = (_NEVER, i)
        share = self._columns(i, j) / lines
        for k in range(j - 1, i, -1):
            last = self._columns(k, j)
            if last > self._limit:
                break
            rest, _ = self._split(i, k, lines - 1)
            ragged = abs(last - share) / self._limit * _RAGGED_COST
            cost = rest + ragged + self._pieces[k - 1].cost + _LINE_COST
            if cost < found[0]:
                found = (cost, k)
        return found

    def _lines(self, i: int, j: int) -> Lines:
        lines: list[str] = []
        left = self._max_lines
        while j > i:
            k = self._split(i, j, left)[1]
            lines.append("".join(piece.text for piece in self._pieces[k:j]).rstrip(" "))
            j, left = k, left - 1
        return tuple(reversed(lines))
