"""Subtitle rules: widths, durations, reading speed, positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.bounds import Checked, one_of, within


@dataclass(frozen=True)
class SubtitleRules(Checked):
    """Layout of subtitles.

    The defaults follow Netflix's Timed Text Style Guides (general requirements; English; Simplified Chinese), the most
    widely used in the trade.
    """

    # Maximum number of lines of one subtitle, in each language.
    max_lines: int = within(2, 1, 4)
    # Columns per line in alphabetic scripts.
    line_columns: int = within(42, 10, 200)
    # Full-width characters per line in Chinese and Japanese; a Latin letter counts as half.
    line_cjk_characters: int = within(16, 5, 100)
    # Minimum duration: 5/6 of a second.
    min_duration_ms: int = within(833, 100, 10_000)
    # Maximum duration. A sentence that is spoken for longer is shown again.
    max_duration_ms: int = within(7_000, 500, 60_000)
    # From a subtitle's end to the next one's start: two frames at 24 fps.
    gap_ms: int = within(83, 0, 2_000)
    # Comfortable reading speed; all characters count, including spaces and punctuation.
    characters_per_second: float = within(17.0, 1, 100)
    # The same for Chinese and Japanese.
    cjk_characters_per_second: float = within(9.0, 1, 100)
    # Maximum time that a subtitle stays after its speech if reading it takes longer.
    linger_ms: int = within(2_000, 0, 60_000)
    # Show the source with the translation, in formats that support it.
    bilingual: bool = False
    # Position of the translation in WebVTT and ASS.
    position: str = one_of("bottom", "bottom", "top")
    # Position of the source in WebVTT and ASS, if it is shown.
    source_position: str = one_of("top", "bottom", "top")


def conflicts(rules: SubtitleRules) -> Iterator[str]:
    """Rules that contradict each other: one sentence per conflict, naming the keys."""
    low, high = rules.min_duration_ms, rules.max_duration_ms
    if low > high:
        yield f"min_duration_ms ({low}) must not exceed max_duration_ms ({high})"
    if rules.gap_ms >= low:
        yield f"gap_ms ({rules.gap_ms}) must be less than min_duration_ms ({low})"
    for line, speed, width, pace in (
        ("line_columns", "characters_per_second", rules.line_columns, rules.characters_per_second),
        (
            "line_cjk_characters",
            "cjk_characters_per_second",
            rules.line_cjk_characters,
            rules.cjk_characters_per_second,
        ),
    ):
        full_ms = round(1000 * rules.max_lines * width / pace)
        if full_ms > high:
            yield (
                f"{rules.max_lines} lines of {line} ({width}) take {full_ms} ms to read at {speed} ({pace:g}), "
                f"longer than max_duration_ms ({high})"
            )
