"""Where the marks of a text, such as tags, stand in its translation. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....languages import spaced

Alignment = NDArray[np.float32]
"""[units of the translation, units of the source]: how much of each is the translation of each; see ``unit_spans``."""
MOST_ALIGNED = 1 << 16
"""The most numbers of an alignment. Longer sentences are taken to be translated in order."""

_WORDS, _CHARACTERS = re.compile(r"\S+"), re.compile(r"\S")


@dataclass(frozen=True)
class Mark:
    """What is put between the words of a translation."""

    text: str
    at: int  # characters of the text before it
    after: bool = False  # whether it belongs to the word before it, as a closing tag does, not to the word after it
    line: bool = False  # whether it breaks a line, in the place of a blank
    pair: int | None = None  # the number of a pair of tags, which both have


def unit_spans(text: str, language: str) -> list[tuple[int, int]]:
    """Begin and end of each word; in languages without blanks, of each character."""
    pattern = _WORDS if spaced(language) else _CHARACTERS
    return [match.span() for match in pattern.finditer(text)]


class Places:
    """Where the marks of a text stand in its translation."""

    def __init__(self, text: str, source: str, translation: str, target: str, alignment: Alignment | None) -> None:
        self._text, self._translation = text, translation
        self._said, self._found = unit_spans(text, source), unit_spans(translation, target)
        self._starts, self._ends = [start for start, _ in self._said], [end for _, end in self._said]
        fits = alignment is not None and alignment.shape == (len(self._found), len(self._said))
        self._alignment = alignment if fits else None

    def of(self, marks: Sequence[Mark]) -> list[tuple[int, Mark]]:
        """Each mark with the number of characters before it."""
        pairs: dict[int, list[int]] = {}
        for number, mark in enumerate(marks):
            if mark.pair is not None:
                pairs.setdefault(mark.pair, []).append(number)
        at = {number: self._single(mark) for number, mark in enumerate(marks)}
        lines = [number for number, mark in enumerate(marks) if mark.line and at[number] > 0]
        for line_number, number in enumerate(lines):  # a word at least is between two breaks
            low = at[lines[line_number - 1]] + 1 if line_number else 1
            at[number] = max(low, min(at[number], len(self._found) - len(lines) + line_number))
        # What is between two line breaks stays there: in the text from, in the translation from, and until.
        ends = [
            (0, 0),
            *((self._unit(marks[number]), at[number]) for number in lines),
            (len(self._said), len(self._found)),
        ]
        for number, mark in enumerate(marks):
            if not mark.line:
                line = bisect_left(lines, number)
                (first, low), (last, high) = ends[line], ends[line + 1]
                unit = self._unit(mark)
                at[number] = low if unit == first and not mark.after else high if unit == last else at[number]
                at[number] = min(max(at[number], low), high)
        outer = [(len(marks), 0, len(self._found))]
        for opening, closing in (numbers for numbers in pairs.values() if len(numbers) == 2):
            while outer[-1][0] < opening:
                outer.pop()
            (first, low), (last, high) = ends[bisect_left(lines, opening)], ends[bisect_left(lines, closing) + 1]
            low, high = max(low, outer[-1][1]), min(high, outer[-1][2])
            begin, end = self._unit(marks[opening]), self._unit(marks[closing])
            at[opening], at[closing] = (
                (low, high) if (begin, end) == (first, last) else self._span(begin, end, low, high)
            )
            outer.append((closing, at[opening], at[closing]))
        return [(self._character(mark, at[number]), mark) for number, mark in enumerate(marks)]

    def _unit(self, mark: Mark) -> int:
        """Units of the text before a mark."""
        return bisect_left(self._starts, mark.at) if mark.after else bisect_right(self._ends, mark.at)

    def _single(self, mark: Mark) -> int:
        """Units of the translation before a mark."""
        units, source_units, target_units = self._unit(mark), len(self._said), len(self._found)
        if units in (0, source_units):
            return target_units if units and mark.at else 0
        low, high = (1, max(1, target_units - 1)) if mark.line else (0, target_units)
        if self._alignment is None:
            return min(max(round(units / source_units * target_units), low), high)
        before = self._alignment[:, :units].sum(axis=1)
        gains = np.concatenate([[0], np.cumsum(2 * before - self._alignment.sum(axis=1))])
        return low + int(np.argmax(gains[low : high + 1]))

    def _span(self, begin: int, end: int, low: int, high: int) -> tuple[int, int]:
        """The units of the translation, of those from ``low`` to ``high``, that translate those of the text."""
        source_units, target_units = len(self._said), len(self._found)
        if end <= begin or low >= high:
            return low, low
        if self._alignment is None:
            first = min(max(round(begin / source_units * target_units), low), high - 1)
            return first, min(max(round(end / source_units * target_units), first + 1), high)
        inside = self._alignment[low:high, begin:end].sum(axis=1)
        sums = np.concatenate([[0], np.cumsum(inside - 0.5 * self._alignment[low:high].sum(axis=1))])
        gains = sums[1:] - np.minimum.accumulate(sums[:-1])
        last = int(np.argmax(gains))
        return low + int(np.argmin(sums[: last + 1])), low + last + 1

    def _character(self, mark: Mark, units: int) -> int:
        """Characters of the translation before a mark that ``units`` of it are before: next to a letter if it is in the text."""
        if not self._found or (mark.after and not units):
            return 0
        if not mark.after and units >= len(self._found):
            return len(self._translation)
        start, end = self._found[units - mark.after]
        side = -1 if mark.after else 1
        signs = _signs(self._translation[start:end][::side])
        before, after = self._text[: mark.at][::-1], self._text[mark.at :]
        inside, outside = (before, after) if mark.after else (after, before)
        beyond = _signs(outside.partition(" ")[0])
        if not outside or signs == end - start or (not beyond and not inside[:1].isalnum()):
            signs = 0
        elif beyond:
            signs = min(signs, beyond)
        return end - signs if mark.after else start + signs


def _signs(text: str) -> int:
    """How many characters at the beginning are neither letters nor digits."""
    return next((index for index, character in enumerate(text) if character.isalnum()), len(text))
