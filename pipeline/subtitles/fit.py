"""The font size at which an ASS subtitle stays inside the picture, whatever its letters are. Pure.

A line's width is known to the renderer alone, which has the fonts. libass wraps a line that is too wide at its spaces
(WrapStyle 0); what has no spaces it draws out of the picture. So the widths here are those of fonts with wide
letters, as shares of ASS's font size, which is a font's ascent and descent (measured with DejaVu Sans and Noto): text
that may be too wide for want of a space is drawn smaller, and all other text at the size of its style.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Lines that the lines of one language may become: so many of each of two languages stand one above the other in the
# picture. A wrapped line is not always full.
_LINES_IN_ALL, _FULL = 8, 0.7
_NARROW, _SPACE, _LOWER, _UPPER, _WIDEST, _OTHER = 0.4, 0.3, 0.6, 0.75, 0.92, 1.5
# First and last character, and the width of the wider ones among them.
_BLOCKS = (
    ("\u01c4", "\u01cc", 1.25),
    ("\u01f1", "\u01f3", 1.25),
    ("\u0100", "\u02ff", 0.92),
    ("\u0370", "\u06ff", 1.05),
    ("\u0e33", "\u0e33", 0.9),
    ("\u0eb3", "\u0eb3", 0.9),
    ("\u0eab", "\u0eab", 0.75),
    ("\u0edc", "\u0edd", 0.9),
    ("\u0e00", "\u0eff", 0.65),
    ("\u0bf0", "\u0bfa", 1.8),
    ("\u1000", "\u109f", 0.65),
    ("\u1780", "\u17ff", 0.7),
    ("\u2e3a", "\u2e3a", 2.0),
    ("\u2e3b", "\u2e3b", 3.0),
    ("\ufdf0", "\ufdfc", 2.5),
    ("\ufdfd", "\ufdfd", 12.0),
    ("\U00012000", "\U0001254f", 4.0),
)
_BESIDE = 0.45
"""A vowel sign that stands beside its letter, in Khmer and Burmese."""
_MARKS_STACKED = 2
# Of one mark above or below others.
_MARK_HEIGHT = 0.22


def font_size(lines: Sequence[str], size: int, room: float, margin: float) -> int:
    """``size``, or the largest at which no line reaches out of the picture.

    Args:
        size: in the script's pixels, as ``room`` and ``margin`` are.
        room: width between the margins.
        margin: between text and the picture's lower or upper edge.
    """
    wrapped = max(1, _LINES_IN_ALL // max(1, len(lines))) * _FULL
    widest = max((_least_room(line, wrapped) for line in lines), default=0.0)
    tallest = _MARK_HEIGHT * max((len(marks) for line in lines for marks in _stacks(line)), default=0)
    fitting = [int(room_for / needed) for needed, room_for in ((widest, room), (tallest, margin)) if needed]
    return max(1, min(size, *fitting)) if fitting else size


def _stacks(line: str) -> list[str]:
    """The marks on each letter that are stacked, above or below."""
    return "".join("^" if unicodedata.combining(c) else " " for c in line).split()


def _least_room(line: str, wrapped: float) -> float:
    """The room that ``line`` needs, in font sizes: for its longest part without a space, and for all of it where it
    takes so many lines."""
    return max(*(_width(word) for word in line.split(" ")), _width(line) / wrapped)


def _width(text: str) -> float:
    total, marks = 0.0, 0
    for at, character in enumerate(text):
        if at and text[at - 1] == "\u17d2":  # Khmer letters below others
            continue
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks > _MARKS_STACKED:  # what no font stacks stands beside
            total += _LOWER
        elif not marks:
            total += _letter(character, kind)
    return total


def _letter(character: str, kind: str) -> float:
    if kind == "Cf":  # the marks of Arabic numbers are seen, all others are not
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
        return _BESIDE
    for first, last, width in _BLOCKS:
        if first <= character <= last:
            return width
    if character < "\u0370":
        return _LOWER if kind in ("Ll", "Lo") and character != "æ" else _WIDEST
    return _OTHER
