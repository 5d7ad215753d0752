"""The rules that subtitles keep: widths, durations, reading speed, positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.bounds import one_of, within


@dataclass(frozen=True)
class SubtitleRules:
    """Defaults are those of Netflix's Timed Text Style Guides (general requirements; English; Simplified Chinese), the
    most used in the trade."""

    max_lines: int = within(2, 1, 4)
    # Columns of a line in alphabetic scripts.
    line_columns: int = within(42, 10, 200)
    # Full-width characters of a line in Chinese and Japanese; a Latin letter among them takes half of one.
    line_cjk_characters: int = within(16, 5, 100)
    # 5/6 of a second.
    min_duration_ms: int = within(833, 100, 10_000)
    max_duration_ms: int = within(7_000, 500, 60_000)
    # Between a subtitle's end and the next one's start: two frames of 24 a second.
    gap_ms: int = within(83, 0, 2_000)
    # What viewers read comfortably; all characters count, spaces and marks too.
    characters_per_second: float = within(17.0, 1, 100)
    cjk_characters_per_second: float = within(9.0, 1, 100)
    # How long a subtitle that takes longer to read than it took to say stays up after the speech, at most.
    linger_ms: int = within(2_000, 0, 60_000)
    # Show the source beside the translation, in the formats that have room for it.
    bilingual: bool = False
    # Where WebVTT and ASS place the translation and, where both are shown, the source.
    position: str = one_of("bottom", "bottom", "top")
    source_position: str = one_of("top", "bottom", "top")


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
