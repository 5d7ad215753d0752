"""Times of day in a text, and how other languages write them. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....languages.rules import rules
from ....languages.rules.clock import Clock

# Before "9 in the morning", "9h" and "9h30", which may also be a number or a duration.
_LEAD = re.compile(
    r"\b(?:at|by|before|after|from|until|till|to|around|about|since|às|as|à|das|até|pelas|entre|são|ser|\d\d?h(?:\d\d)? (?:e|a|ou))\s$",
    re.IGNORECASE,
)
_LATE = re.compile(r"\b(?:1[3-9]|2[0-3])(?:h|:\d\d)")
_AFTER = r"(?![\d/:%°]|[.,-]\d|[A-Za-z])"


@dataclass(frozen=True)
class Time:
    """A time of day."""

    start: int
    end: int
    hour: int  # 0 to 23 if the half of the day is known, else 1 to 12
    minute: int
    known: bool  # whether the half of the day is known
    said: bool  # whether it was said, in words or as a.m. or p.m.; otherwise the hour tells it

    @property
    def short(self) -> int:
        """The hour, 1 to 12."""
        return self.hour % 12 or 12


def times(text: str, language: str) -> Iterator[Time]:
    """The times in a text of a language: of four digits, with a letter (9h), or with a part of the day (6 in the morning)."""
    clock = rules(language).clock or Clock()
    for match in re.finditer(clock.pattern + _AFTER, text, re.IGNORECASE):
        groups = match.groupdict()
        minute = "30" if groups.get("half") else groups.get("minute") or groups.get("clock")
        part = None if not groups.get("part") else groups["part"].lower().rstrip(".")
        sure = part is not None and part.endswith("m") if minute is None else "h" not in match.group().lower()
        if (
            not clock.marked
            and not sure
            and not ((minute or part or groups.get("sign")) and _LEAD.search(text, 0, match.start()))
            and not (minute and clock.lasting and not clock.lasting.search(text, 0, match.start()))
        ):
            continue
        if clock.marked and minute is None and part is None:
            continue
        hour = int(groups["hour"])
        if part is not None and 1 <= hour <= 12:
            hours = clock.parts[re.sub(r"\s", " ", part)]
            hour = next((candidate for candidate in (hour % 12, hour % 12 + 12) if candidate in hours), hour % 12 + 12)
            yield Time(*match.span(), hour, int(minute or 0), known=True, said=True)
        else:
            in_24 = clock.counts_to_24 and hour <= 12 and _LATE.search(text) is not None  # das 9h às 18h
            yield Time(*match.span(), hour % 24, int(minute or 0), known=hour > 12 or hour == 0 or in_24, said=in_24)


@functools.cache
def like_times(source: str, target: str) -> re.Pattern[str]:
    """What a model may write for a time: a clock, and parts of the day, also those of the source and of English, which are copied."""
    clocks = [clock for code in dict.fromkeys(("en", source, target)) if (clock := rules(code).clock) is not None]
    parts = "|".join(
        part.replace(".", r"\.?") + r"\b\.?" for clock in clocks if not clock.parts_first for part in clock.parts
    )
    native = rules(target).clock
    before = f"(?:{'|'.join(native.parts)})*" if native is not None and native.parts_first else ""
    return re.compile(
        rf"{before}\d+(?:(?:[:.h点點]|\sh\s)\d+分?)?(?:[点點]|h\b|\so'clock|\shoras?\b)?(?:\s?(?:{parts}))*",
        re.IGNORECASE,
    )


def time_forms(time: Time, language: str) -> tuple[list[str], list[str]]:
    """The accepted ways to write a time, the preferred one first, and those that are wrong though they begin or end like one."""
    clock, english = rules(language).clock, rules("en").clock
    if clock is None or english is None:
        hours = dict.fromkeys((time.hour, time.short) if time.known else (time.hour,))
        return [form.format(hour, time.minute) for hour in hours for form in Clock.forms], []
    short = _written(time.short, time.minute, clock)
    ours: list[str] = []
    others: list[str] = []
    for name, hours_of_it in [*clock.parts.items(), *(english.parts.items() if clock is not english else ())]:
        right = time.known and time.hour in hours_of_it and name in clock.parts
        first = clock.parts_first and name in clock.parts
        forms = [name + form if first else f"{form} {name}" for form in short]
        if name.endswith("m"):  # 6pm
            forms += [form.replace(f" {name}", name) for form in forms]
        (ours if right else others).extend(forms)
    # An hour of the 24-hour clock tells the half of the day.
    plain = _written(time.hour, time.minute, clock) if clock.counts_to_24 or time.hour > 12 or not time.hour else []
    if not time.said and 0 < time.hour <= 12:
        plain = short
    if time.known and not time.minute:
        ours += clock.named.get(time.hour, ())
    return list(dict.fromkeys([_preferred(time, clock), *plain, *ours])), others


def _written(hour: int, minute: int, clock: Clock) -> list[str]:
    forms = [form.format(hour, minute) for form in clock.forms]
    if not minute:
        return [*(form.format(hour) for form in clock.whole_hours), *forms]
    return [*forms, clock.half_hour.format(hour)] if clock.half_hour and minute == 30 else forms


def _preferred(time: Time, clock: Clock) -> str:
    if clock.counts_to_24:
        return _written(time.hour, time.minute, clock)[0]
    plain = _written(time.short, time.minute, clock)[0]
    if not (time.known and (time.said or time.hour == 0 or time.hour > 12)):
        return plain
    part = next(part for part, end in clock.written_parts if time.hour < end)
    return part + plain if clock.parts_first else f"{plain.removesuffix(clock.alone)} {part}"
