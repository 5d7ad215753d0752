"""Numbers in words, written as digits. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from text_to_num import find_numbers

from .rules import rules
from .rules.record import Rules

_TOKEN = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
# Kept after the digits (1.5 million), which is how they are printed.
_POWERS = re.compile(r"[mbt]r?il[hl]?(?:[iãõó]\w*|h\w+|ones)", re.IGNORECASE)
# Before a year. Of other numbers, those with a mark of thousands are translated best ("1,200 dollars").
_YEAR = re.compile(r"\b(?:in|since|until|year|em|desde|até|ano)\s$", re.IGNORECASE)
# A hundred is 100.
_ARTICLE = re.compile(r"(?<!\w)a $", re.IGNORECASE)
_AFTER_ARTICLE = ("hundred", "thousand", "million", "billion")
# What makes another number of the one before it: one million and a half.
_HALF = re.compile(r"\s+(?:and a half|e mei[ao]|y medi[ao]|et demie?)\b", re.IGNORECASE)


@dataclass
class _Word:
    """A word or a mark of a text, as ``find_numbers`` takes it."""

    value: str
    start: int
    end: int

    def text(self) -> str:
        return self.value

    def nt_separated(self, previous: _Word) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


@dataclass(frozen=True)
class _Number:
    words: Sequence[_Word]
    digits: str
    ordinal: bool

    @property
    def is_digit(self) -> bool:
        return len(self.digits) == 1


def in_digits(text: str, language: str, *, complete: bool = True) -> str:
    """Write the numbers that students translate badly in digits: "two hundred and fifty three" as 253, "one point five million" as 1.5 million.

    Years are told by their halves ("nineteen eighty four"), and digits that are said one by one are put together. What may
    be more than one number ("two thirty", "one two three"), ordinals, whole hundreds, and numbers below 100 ("thirty-two", "trinta e
    dois") stay in words. So does a number at the end of a text that is not ``complete``.
    """
    of_language = rules(language)
    if not of_language.digits:
        return text
    words = [_Word(token.group(), *token.span()) for token in _TOKEN.finditer(text)]
    for before, word in pairwise(words):
        if word.value.lower() in of_language.zero and _numbers([before], language):
            word.value = "zero"
    made, done = [], 0
    for group in _groups(_numbers(words, language)):
        start, end = group[0].words[0].start, group[-1].words[-1].end
        goes_on = _HALF.match(text, end) or (not complete and not text[end:].strip())
        if not goes_on and (digits := _one_number(group, language, of_language)):
            is_quantity = len(group) == 1 and not _YEAR.search(text, 0, start) and not "1500" < digits < "2100"
            if is_quantity and len(digits) == 4 and digits.isdigit():
                digits = f"{digits[0]}{of_language.digits[0]}{digits[1:]}"
            if group[0].words[0].value.lower() in _AFTER_ARTICLE and _ARTICLE.search(text, done, start):
                start -= 2
            made += [text[done:start], digits]
            done = end
    return "".join(made) + text[done:]


def _numbers(words: Sequence[_Word], language: str) -> list[_Number]:
    return [_Number(words[n.start : n.end], n.text, n.is_ordinal) for n in find_numbers(words, language, 0)]


def _groups(numbers: Sequence[_Number]) -> list[list[_Number]]:
    """The numbers that follow one another with nothing but a space between."""
    groups: list[list[_Number]] = []
    for number in numbers:
        if groups and number.words[0].start == groups[-1][-1].words[-1].end + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _one_number(group: Sequence[_Number], language: str, of_language: Rules) -> str | None:
    words = [word for number in group for word in number.words]
    if len(words) + sum("-" in word.value for word in words) < 2 or any(number.ordinal for number in group):
        return None
    if _POWERS.fullmatch(words[-1].value):
        head = _numbers(words[:-1], language)
        return (
            f"{head[0].digits} {words[-1].value}" if len(head) == 1 and len(head[0].words) == len(words) - 1 else None
        )
    if len(group) == 1:
        digits = group[0].digits
        # "forty-one" loses its one, "forty five" may be two numbers.
        is_below_100 = len(digits) == 2 and len(words) != 2 and digits[1] != "1"
        is_hundreds = len(digits) == 3 and digits.endswith("00")
        return None if is_below_100 or is_hundreds else _grouped(digits, *of_language.digits)
    values = [number.digits for number in group]
    if of_language.years_in_halves and values[0].isdigit() and 13 <= int(values[0]) <= 20:
        year = "".join(values)
        return year if len(year) == 4 and len(values) == 2 + ("0" in values) else None
    # "zero four" is one number.
    said = [number.digits for number in group if number.is_digit or number.digits.startswith("0")]
    alone = list(map(int, filter(str.isdigit, "".join(said))))
    counting = {two - one for one, two in pairwise(alone)} in ({1}, {-1})
    return "".join(values) if len(alone) >= 3 and not counting and all(len(one) <= 2 for one in values) else None


def _grouped(digits: str, thousands: str, decimal: str) -> str:
    """Digits with separators of thousands, from five digits on; shorter ones may be years."""
    whole, mark, decimals = digits.partition(decimal)
    if len(whole) > 4 and whole.isdigit():
        whole = f"{int(whole):,}".replace(",", thousands)
    return whole + mark + decimals
