"""The rules that subtitles keep: widths, durations, reading speed, positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class SubtitleRules:
    """Defaults are those of Netflix's Timed Text Style Guides (general requirements; English; Simplified Chinese), the
    most used in the trade."""

    max_lines: int = 2
    # Columns of a line in alphabetic scripts.
    line_columns: int = 42
    # Full-width characters of a line in Chinese and Japanese; a Latin letter among them takes half of one.
    line_cjk_characters: int = 16
    # 5/6 of a second.
    min_duration_ms: int = 833
    max_duration_ms: int = 7_000
    # Between a subtitle's end and the next one's start: two frames of 24 a second.
    gap_ms: int = 83
    # What viewers read comfortably; all characters count, spaces and marks too.
    characters_per_second: float = 17.0
    cjk_characters_per_second: float = 9.0
    # How long a subtitle that takes longer to read than it took to say stays up after the speech, at most.
    linger_ms: int = 2_000
    # Show the source beside the translation, in the formats that have room for it.
    bilingual: bool = False
    # Where WebVTT and ASS place the translation and, where both are shown, the source.
    position: str = "bottom"
    source_position: str = "top"


def conflicts(rules: SubtitleRules) -> Iterator[str]:
    """What no subtitle could keep, a sentence each, naming the keys."""
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
