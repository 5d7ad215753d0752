"""Line breaking by display width: at spaces in spaced scripts, between characters in unspaced ones. Pure."""

from __future__ import annotations

import unicodedata

# 42 columns hold 42 Latin letters or 21 full-width characters.
MAX_WIDTH = 42
# No line begins with these (kinsoku shori, JIS X 4051) …
_NOT_FIRST = set("，。、；：？！）》」』”’…,.;:?!)%")
# … and none ends with these.
_NOT_LAST = set("（《「『“‘(")


def width(text: str) -> int:
    """Columns that ``text`` takes: two for wide characters, one for others."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def break_lines(text: str, limit: int = MAX_WIDTH) -> list[str]:
    """Lines of at most ``limit`` columns where a break is possible, balanced in length; joined they are ``text`` again
    but for the spaces at the breaks."""
    count = max(1, -(-width(text) // limit))
    # Aim at lines of equal width; where that needs a line too many, fill them up.
    balanced = _fill(text, min(limit, -(-width(text) // count) + 2))
    return balanced if len(balanced) <= count else _fill(text, limit)


def _fill(text: str, limit: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for unit in _units(text):
        if line.strip() and width((line + unit).rstrip()) > limit:
            lines.append(line.strip())
            line = ""
        line += unit
    return [*lines, line.strip()] if line.strip() else lines


def _units(text: str) -> list[str]:
    """Pieces between which a line may break."""
    units: list[str] = []
    for character in text:
        wide = unicodedata.east_asian_width(character) in "WF"
        previous = units[-1][-1] if units else " "
        previous_wide = unicodedata.east_asian_width(previous) in "WF"
        breakable = previous == " " or wide or previous_wide
        if units and (not breakable or character in _NOT_FIRST or character == " " or previous in _NOT_LAST):
            units[-1] += character
        else:
            units.append(character)
    return units
