"""Text direction of subtitles: right-to-left layout of Arabic, Hebrew and other scripts. Pure.

Players choose the direction of an unmarked line differently: browsers (WebVTT) and libass with ASS's Encoding -1 use
the first letter with a direction, libass for SubRip is always left to right. So a line whose first such letter does not
have the direction of its subtitle begins with a mark of that direction, and right-to-left lines are also embedded. The
characters are invisible: U+200E, U+200F, U+202B and U+202C (UAX #9). A text without right-to-left letters gets none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

LEFT_TO_RIGHT_MARK, RIGHT_TO_LEFT_MARK = "\u200e", "\u200f"
_EMBED, _POP = "\u202b", "\u202c"
_DROPPED = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_RIGHT_TO_LEFT = ("R", "AL")


def harmless(text: str) -> str:
    """``text`` without line breaks and other characters that affect surrounding text."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Zl", "Zp", "Cs") and c not in _DROPPED)


def directed(lines: Sequence[str]) -> list[str]:
    """Add the marks that give each line of a subtitle in one language the direction of the whole text.

    The lines must have no embeddings, overrides or isolates (see ``normalized``).
    """
    text = "".join(lines)
    if not any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text):
        return list(lines)
    if right_to_left(text):
        return [f"{_EMBED}{'' if _first_direction(line) == 'R' else RIGHT_TO_LEFT_MARK}{line}{_POP}" for line in lines]
    return [f"{'' if _first_direction(line) == 'L' else LEFT_TO_RIGHT_MARK}{line}" for line in lines]


def right_to_left(text: str) -> bool:
    """Whether ``text`` is read from right to left.

    True if at least a third of its letters are right-to-left, or an eighth if it begins with such a letter: Arabic may
    contain long English names, while English seldom quotes that much Arabic or begins with it.
    """
    directions = [unicodedata.bidirectional(c) for c in text]
    right = sum(direction in _RIGHT_TO_LEFT for direction in directions)
    left_to_right = directions.count("L")
    share = 8 if _first_direction(text) == "R" else 3
    return share * right >= left_to_right + right > 0


def _first_direction(text: str) -> str | None:
    """The direction of the first letter that has one, "L" or "R"; None if no letter has."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        if direction == "L":
            return "L"
        if direction in _RIGHT_TO_LEFT:
            return "R"
    return None
