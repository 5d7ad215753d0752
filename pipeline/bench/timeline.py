"""Draw the timeline of a run as SVG, one lane per stage."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pipeline.bench.stopwatch import SegmentTimes, Span

_LEFT, _TOP, _LANE, _BAR, _BOTTOM = 90, 34, 34, 20, 30
# Wide enough to tell single tokens apart; a minute is about two screens wide.
_PIXELS_PER_S = 36
# The Okabe-Ito palette, which colour-blind people can tell apart. "endpoint" is the wait for the end of speech.
_COLOURS = {"speech": "#999999", "endpoint": "#e69f00", "ASR": "#0072b2", "NMT": "#009e73", "text": "#d55e00"}


def timeline(
    title: str, segments: Sequence[SegmentTimes], busy: dict[str, list[Span]], shown_s: Sequence[float], end_s: float
) -> str:
    """Return the SVG of a run of ``end_s`` seconds.

    Args:
        busy: spans of "asr" and "nmt".
        shown_s: times at which text arrived.
    """
    width = _LEFT + round(end_s * _PIXELS_PER_S) + 20
    height = _TOP + _LANE * len(_COLOURS) + _BOTTOM
    spans = {
        "speech": [Span(segment.start_s, segment.speech_end_s) for segment in segments],
        "endpoint": [Span(segment.speech_end_s, segment.closed_s) for segment in segments],
        "ASR": busy.get("asr", []),
        "NMT": busy.get("nmt", []),
        "text": [Span(second, second) for second in shown_s],
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    bottom = _TOP + _LANE * len(_COLOURS)
    for second in range(int(end_s) + 1):
        x = _x(second)
        parts.append(f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}" stroke="#dddddd"/>')
        if second % 5 == 0:
            parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{second} s</text>')
    for lane, (name, colour) in enumerate(_COLOURS.items()):
        y = _TOP + lane * _LANE + (_LANE - _BAR) // 2
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 15}" text-anchor="end">{name}</text>')
        for span in spans[name]:
            # At least one pixel, because a token takes less.
            length = max(1.0, (span.end_s - span.begin_s) * _PIXELS_PER_S)
            parts.append(
                f'<rect x="{_x(span.begin_s)}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}" opacity="0.8"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _x(second: float) -> float:
    return round(_LEFT + second * _PIXELS_PER_S, 1)
