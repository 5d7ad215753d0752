"""Numbers below 10,000 in English words, hours in Portuguese ones, and where a number may go on. Pure."""

from __future__ import annotations

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
PORTUGUESE_HOURS = ("uma", "duas", "três", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze")
"""1 to 12 in feminine words."""
# fmt: on
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {*_ONES, *_TENS, "hundred", "thousand", "million", "billion", "point", "oh"}


def ends_in_number(text: str) -> bool:
    """Whether a number may go on after ``text``: its last two words have a digit, or the last one is an English number word."""
    last = text.split()[-2:]
    word = last[-1].rpartition("-")[2].strip(".,;:!?\"'").lower() if last else ""
    return any(map(str.isdigit, "".join(last))) or word in _NUMBER_WORDS


def english(value: int, joint: str = " ") -> str:
    """A number from 0 to 9,999, such as "one hundred twenty-five". ``joint`` stands before tens and ones: " and " in Britain."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if value >= size:
            count, rest = divmod(value, size)
            before = joint if rest < 100 else " "
            return f"{_ONES[count]} {name}" + (before + english(rest, joint) if rest else "")
    if value < 20:
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
