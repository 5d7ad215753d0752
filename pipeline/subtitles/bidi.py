"""The direction of subtitles: Arabic, Hebrew and the like are laid out from right to left. Pure.

Players differ in what a line's direction is without a mark: browsers (WebVTT) and libass with ASS's Encoding -1 go by
the first letter with a direction, libass for SubRip is always left to right. So a line whose first such letter is not
of its subtitle's direction begins with a mark that is, and a line from right to left is embedded as such besides.
These characters are invisible: U+200E, U+200F, U+202B and U+202C (UAX #9). Lines of a text without right-to-left
letters have none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

LEFT_TO_RIGHT_MARK, RIGHT_TO_LEFT_MARK = "\u200e", "\u200f"
_EMBED, _POP = "\u202b", "\u202c"
_RIGHT = ("R", "AL")


def directed(lines: Sequence[str]) -> list[str]:
    """The lines of one subtitle in one language, with the marks that give each the direction of the whole. The lines
    hold no embeddings, overrides or isolates (see ``normalized``)."""
    text = "".join(lines)
    if not any(unicodedata.bidirectional(c) in _RIGHT for c in text):
        return list(lines)
    if right_to_left(text):
        return [f"{_EMBED}{'' if _first(line) == 'R' else RIGHT_TO_LEFT_MARK}{line}{_POP}" for line in lines]
    return [f"{'' if _first(line) == 'L' else LEFT_TO_RIGHT_MARK}{line}" for line in lines]


def right_to_left(text: str) -> bool:
    """Whether ``text`` is to be read from right to left.

    It is if a third of its letters are; where it begins with one of them, an eighth. Arabic may hold long English
    names; English seldom quotes that much Arabic, or begins with it.
    """
    directions = [unicodedata.bidirectional(c) for c in text]
    right = sum(direction in _RIGHT for direction in directions)
    left = directions.count("L")
    share = 8 if _first(text) == "R" else 3
    return share * right >= left + right > 0


def _first(text: str) -> str | None:
    """The direction of the first letter that has one, "L" or "R"."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        if direction == "L":
            return "L"
        if direction in _RIGHT:
            return "R"
    return None
