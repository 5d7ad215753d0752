"""The font size at which an ASS subtitle stays inside the picture, whatever its characters are. Pure.

Only the renderer knows the width of a line, because it has the fonts. libass wraps a line that is too wide at its
spaces (WrapStyle 0); text without spaces runs out of the picture. So this module assumes the widths of fonts with wide
letters, as fractions of the ASS font size, which is a font's ascent plus descent (measured with DejaVu Sans and Noto).
Text that may be too wide for lack of spaces gets a smaller font; all other text keeps the size of its style.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Maximum number of wrapped lines per language: two languages with this many each fit one above the other. A wrapped
# line is assumed to be 70 % full.
_MAX_WRAPPED_LINES, _FILL = 8, 0.7
_NARROW, _SPACE, _LOWER, _UPPER, _WIDEST, _OTHER = 0.4, 0.3, 0.6, 0.75, 0.92, 1.5
# First and last character of a range, and the width of its wider characters.
_BLOCKS = (
    ("\u01c4", "\u01cc", 1.25), ("\u01f1", "\u01f3", 1.25), ("\u0100", "\u02ff", 0.92), ("\u0370", "\u06ff", 1.05),
    ("\u0e33", "\u0e33", 0.9), ("\u0eb3", "\u0eb3", 0.9), ("\u0eab", "\u0eab", 0.75), ("\u0edc", "\u0edd", 0.9),
    ("\u0e00", "\u0eff", 0.65), ("\u0bf0", "\u0bfa", 1.8), ("\u1000", "\u109f", 0.65), ("\u1780", "\u17ff", 0.7),
    ("\u2e3a", "\u2e3a", 2.0), ("\u2e3b", "\u2e3b", 3.0), ("\ufdf0", "\ufdfc", 2.5), ("\ufdfd", "\ufdfd", 12.0),
    ("\U00012000", "\U0001254f", 4.0),
)  # fmt: skip
_SPACING_VOWEL = 0.45
"""Width of a spacing vowel sign in Khmer and Burmese."""
_MAX_STACKED_MARKS = 2
# Height of one stacked mark.
_MARK_HEIGHT = 0.22


def font_size(lines: Sequence[str], size: int, room: float, margin: float) -> int:
    """``size``, or the largest smaller size at which no line leaves the picture.

    Args:
        size: in the ASS script's pixels, like ``room`` and ``margin``.
        room: width between the margins.
        margin: distance of the text to the picture's lower or upper edge.
    """
    wrapped = max(1, _MAX_WRAPPED_LINES // max(1, len(lines))) * _FILL
    widest = max((_needed_width(line, wrapped) for line in lines), default=0.0)
    # Runs of combining marks, one for each letter that has any.
    stacks = "".join("^" if unicodedata.combining(c) else " " for c in " ".join(lines)).split()
    tallest = _MARK_HEIGHT * max(map(len, stacks), default=0)
    fitting = [int(room_for / needed) for needed, room_for in ((widest, room), (tallest, margin)) if needed]
    return max(1, min(size, *fitting)) if fitting else size


def _needed_width(line: str, wrapped: float) -> float:
    """The width that ``line`` needs, in font sizes.

    This is the width of its longest word, or of the whole line divided by ``wrapped`` lines.
    """
    return max(*(_width(word) for word in line.split(" ")), _width(line) / wrapped)


def _width(text: str) -> float:
    total, marks = 0.0, 0
    for index, character in enumerate(text):
        if index and text[index - 1] == "\u17d2":  # Khmer consonants stacked below another
            continue
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks > _MAX_STACKED_MARKS:  # fonts draw further marks beside the letter
            total += _LOWER
        elif not marks:
            total += _character_width(character, kind)
    return total


def _character_width(character: str, kind: str) -> float:
    if kind == "Cf":  # only the signs of Arabic numbers are visible
        return _OTHER if unicodedata.bidirectional(character) == "AN" else 0.0
    if character == " ":
        return _SPACE
    if character.isascii():
        if character in "MWm@%":
            return _WIDEST
        if character in "fijltrI.,:;'!|()[]/\\-":
            return _NARROW
        return _UPPER if character.isupper() or character in "w&+<=>~#^" else _LOWER
    if kind == "Mc" and "\u1000" <= character <= "\u17ff":
        return _SPACING_VOWEL
    for first, last, width in _BLOCKS:
        if first <= character <= last:
            return width
    if character < "\u0370":
        return _LOWER if kind in ("Ll", "Lo") and character != "æ" else _WIDEST
    return _OTHER
