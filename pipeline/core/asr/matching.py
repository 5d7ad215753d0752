"""Which of the words that were heard are known already, and where new ones begin. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...languages import letters
from ..events import Word

# Characters of difference in the text that outweigh one second of difference in time. A word is rarely aligned more than
# half a second off, and speech has about 15 characters a second.
_CHARACTERS_PER_S = 4.0
# Share of the known text that may differ when it is heard again. More means that some of it was left out, and then
# nothing tells the rest of it from new words.
_MOST_DIFFERENCE = 0.25
# Of a short text, so many letters: a word that was cut off at its beginning, and is heard no longer.
_FEW_LETTERS = 5
# A word that goes on for longer than this after the boundary was not said before it.
_OVER_S = 0.2
# Characters of difference for each letter of a number that was written in figures before: "11" and "eleven".
_SPELT_OUT = 0.25
# The edit distance of a text from a part of another, for its length, up to which they may be the same words.
_MOST_UNLIKE = 0.5


def first_new_word(
    known: str, words: Sequence[Word], boundary_s: float, per_s: float = _CHARACTERS_PER_S
) -> int | None:
    """The index of the first of ``words`` that is not in ``known``; their number if all are; None if it is unclear.

    ``words`` were heard in a window in which ``known`` had been heard before, up to about ``boundary_s``. Their beginning is
    the part that differs least from ``known``, in letters and digits; times decide among similar ones. A word at the
    boundary may have been cut off before, and its time may be a little wrong, so neither text nor time decides alone.
    ``per_s``: characters of difference in the text that outweigh one second of difference in time.
    """
    old = letters(known)
    costs = [float(length) for length in range(len(old) + 1)]  # of turning nothing into each beginning of ``old``
    best, first_new, difference = math.inf, 0, 0.0
    for index in range(len(words) + 1):
        at_s = words[index].start_s if index < len(words) else words[-1].end_s if words else boundary_s
        cost = costs[-1] + per_s * abs(at_s - boundary_s)
        if cost < best:
            best, first_new, difference = cost, index, costs[-1]
        for character in letters(words[index].text) if index < len(words) else "":
            costs = _next_costs(costs, old, character)
    last = words[max(0, first_new - 1)] if words else Word("", 0.0, 0.0)
    if last.start_s < boundary_s < last.end_s - _OVER_S and _digits(last.text) not in _digits(known):
        return None  # a number that goes on: "65,000", now "65,300"
    return first_new if difference <= max(_MOST_DIFFERENCE * len(old), _FEW_LETTERS) else None


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def resembles_part(text: str, whole: str) -> bool:
    """Whether half of the letters of ``text``, or more, are in this order in a part of ``whole`` of about its length."""
    there, expected = letters(whole), letters(text)
    costs = [0.0] * (len(there) + 1)  # the part may begin anywhere
    for character in expected:
        costs = _next_costs(costs, there, character)
    return bool(expected) and min(costs) <= _MOST_UNLIKE * len(expected)


def _next_costs(costs: Sequence[float], old: str, character: str) -> list[float]:
    """The next row of the edit distance (Wagner and Fischer, 1974): one more character of the new text."""
    row = [costs[0] + 1.0]
    for position, same in enumerate(old):
        added = _SPELT_OUT if same.isdigit() and character.isalpha() else 1.0
        row.append(min(costs[position] + added * (character != same), costs[position + 1] + added, row[position] + 1))
    return row
