"""Draw text over time as SVG: how many words had been said, were shown, and were committed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .measures import Curves

_LEFT, _TOP, _RIGHT, _GAP, _WIDTH, _HEIGHT = 60, 60, 20, 46, 860, 200
_TICKS = 10  # at most, on each axis
# (name, colour of the Okabe-Ito palette, which colour-blind people can tell apart, dashes, width)
_LINES = (("spoken", "#999999", "", 2.5), ("first shown", "#e69f00", "", 2.5), ("committed", "#0072b2", "5 2", 1.5))


@dataclass(frozen=True)
class Panel:
    """One text of one run."""

    title: str
    curves: Curves


def text_plot(title: str, panels: Sequence[Panel], end_s: float) -> str:
    """Return the SVG of texts over ``end_s`` seconds, one panel below the other; the horizontal distance between two lines
    is a delay."""
    width = _LEFT + _WIDTH + _RIGHT
    height = _TOP + len(panels) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, colour, dashes, thickness) in enumerate(_LINES):
        x = _LEFT + _WIDTH - 110 * (len(_LINES) - number)
        parts.append(_stroke(f"M{x} 14H{x + 24}", colour, dashes, thickness))
        parts.append(f'<text x="{x + 30}" y="18">{name}</text>')
    for number, panel in enumerate(panels):
        parts += _panel(panel, _TOP + number * (_HEIGHT + _GAP), max(end_s, 0.1))
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: int, end_s: float) -> list[str]:
    curves = panel.curves
    series = (curves.spoken_s, curves.first_shown_s, curves.committed_s)
    most = max(1, *map(len, series))
    bottom = top + _HEIGHT
    unit = "words" if curves.unit == "word" else "characters"
    parts = [f'<text x="{_LEFT}" y="{top - 8}">{escape(panel.title)}: {unit}</text>']
    for second in _ticks(end_s):
        x = _x(second, end_s)
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x}" y="{bottom + 15}" text-anchor="middle">{second} s</text>')
    for count in _ticks(most):
        y = round(bottom - count / most * _HEIGHT, 1)
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{count}</text>')
    for times_s, (_, colour, dashes, thickness) in zip(series, _LINES, strict=True):
        if times_s:
            parts.append(_stroke(_steps(times_s, most, bottom, end_s), colour, dashes, thickness))
    return parts


def _steps(times_s: Sequence[float], most: int, bottom: int, end_s: float) -> str:
    """The path of a count that rises by one at each time."""
    path = [f"M{_x(0.0, end_s)} {bottom}"]
    for time_s in sorted(set(times_s)):
        path.append(f"H{_x(time_s, end_s)}V{round(bottom - bisect_right(times_s, time_s) / most * _HEIGHT, 1)}")
    return "".join(path)


def _stroke(path: str, colour: str, dashes: str, thickness: float) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{thickness}"{dashed}/>'


def _ticks(most: float) -> range:
    """Round numbers from 0 to ``most``, at most ``_TICKS`` after 0."""
    step = next(base * 10**power for power in range(12) for base in (1, 2, 5) if most / (base * 10**power) <= _TICKS)
    return range(0, int(most) + 1, step)


def _x(second: float, end_s: float) -> float:
    return round(_LEFT + min(max(second, 0.0), end_s) / end_s * _WIDTH, 1)
