"""Subtitle rules: widths, durations, reading speed, positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from ...core import CheckedOptions, one_of, within


@dataclass(frozen=True)
class SubtitleRules(CheckedOptions):
    """Layout of subtitles.

    The defaults follow Netflix's Timed Text Style Guides (general requirements; English; Simplified Chinese; Japanese), the
    most widely used in the trade. In a file, ``preset`` gives other values to the keys that are left out: "bbc" or
    "broadcast-zh"; the option ``--preset`` replaces those of the file, too.
    """

    # Maximum number of lines of one subtitle, in each language.
    max_lines: int = within(2, 1, 4)
    # Columns per line in alphabetic scripts.
    line_columns: int = within(42, 10, 200)
    # Full-width characters per line in Chinese; a Latin letter counts as half.
    line_cjk_characters: int = within(16, 5, 100)
    # The same in Japanese.
    line_japanese_characters: int = within(13, 5, 100)
    # Minimum duration: 5/6 of a second.
    min_duration_ms: int = within(833, 100, 10_000)
    # Maximum duration.
    max_duration_ms: int = within(7_000, 500, 60_000)
    # From a subtitle's end to the next one's start: two frames at 24 fps.
    gap_ms: int = within(83, 0, 2_000)
    # Comfortable reading speed; all characters count, including spaces and punctuation.
    characters_per_second: float = within(17.0, 1, 100)
    # The same for Chinese.
    cjk_characters_per_second: float = within(9.0, 1, 100)
    # The same for Japanese.
    japanese_characters_per_second: float = within(4.0, 1, 100)
    # Maximum time that a subtitle stays after its speech if reading it takes longer.
    linger_ms: int = within(2_000, 0, 60_000)
    # Show the source with the translation, in formats that support it.
    bilingual: bool = False
    # Put [?] after what may be misheard, and after its translation.
    mark_uncertain: bool = False
    # Position of the translation in WebVTT and ASS.
    position: str = one_of("bottom", "bottom", "top")
    # Position of the source in WebVTT and ASS, if it is shown.
    source_position: str = one_of("top", "bottom", "top")

    def conflicts(self) -> Iterator[str]:
        """Rules that contradict each other: one sentence per conflict, naming the keys."""
        low, high = self.min_duration_ms, self.max_duration_ms
        if low > high:
            yield f"min_duration_ms ({low}) must not exceed max_duration_ms ({high})"
        if self.gap_ms >= low:
            yield f"gap_ms ({self.gap_ms}) must be less than min_duration_ms ({low})"
        for line, speed in (
            ("line_columns", "characters_per_second"),
            ("line_cjk_characters", "cjk_characters_per_second"),
            ("line_japanese_characters", "japanese_characters_per_second"),
        ):
            width, pace = getattr(self, line), getattr(self, speed)
            full_ms = round(1000 * self.max_lines * width / pace)
            if full_ms > high:
                yield (
                    f"{self.max_lines} lines of {line} ({width}) take {full_ms} ms to read at {speed} ({pace:g}), "
                    f"longer than max_duration_ms ({high})"
                )


PRESETS: dict[str, dict[str, Any]] = {
    # https://partnerhelp.netflixstudios.com/hc/en-us/articles/215758617 and the guides of each language.
    "netflix": {option.name: option.default for option in fields(SubtitleRules)[:10]},
    # https://www.bbc.co.uk/accessibility/forproducts/guides/subtitles: two lines of 37 characters (3), 180 words a minute,
    # which is 15 characters a second (4), no gap unless nobody speaks (4.5), at most 1.5 s after the speech (5.2).
    "bbc": {"max_lines": 2, "line_columns": 37, "characters_per_second": 15.0, "gap_ms": 0, "linger_ms": 1_500},
    # What Chinese television asks of its subtitlers: one line of at most 14 characters. No speed is documented.
    "broadcast-zh": {"max_lines": 1, "line_cjk_characters": 14, "line_columns": 28},
}
"""Name → the values that differ from the defaults, and of "netflix" all that the guides give."""
