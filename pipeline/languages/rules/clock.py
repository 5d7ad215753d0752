"""How a language says and writes times of day. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

MORNING, AFTERNOON = range(12), range(12, 24)
NOT_IN_NUMBER = r"(?<![\w.,:/$€£-])"
"""Before a time in Latin script."""
HOUR = r"(?P<hour>[01]?\d|2[0-4])"


@dataclass(frozen=True)
class Clock:
    """How times of day are written. The defaults are for languages of which nothing else is known."""

    pattern: str = rf"{NOT_IN_NUMBER}{HOUR}:(?P<minute>[0-5]\d)"
    """A time in a text, with the groups hour, minute or clock, and, as they exist, part, sign (of the hour) and half."""
    parts: Mapping[str, Container[int]] = field(default_factory=dict)
    """Phrase for a part of the day → the hours that may be said with it."""
    forms: Sequence[str] = ("{}:{:02}", "{:02}:{:02}", "{}.{:02}", "{}h{:02}", "{} h {:02}")
    """Ways to write hour and minute, the preferred one first."""
    whole_hours: Sequence[str] = ()
    """Ways to write an hour alone."""
    alone: str = ""
    """Text after a whole hour, only if no part of the day is written."""
    half_hour: str = ""
    """Another way to write an hour and a half."""
    named: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Hour → its names."""
    written_parts: Sequence[tuple[str, int]] = ()
    """Parts of the day as they are usually written, and the hours at which they end."""
    parts_first: bool = False
    """Whether they stand before the time, without a blank."""
    marked: bool = False
    """Whether a time has signs of its own (点), and needs no word before it."""
    counts_to_24: bool = False
    """Whether hours are usually counted to 24."""
    lasting: re.Pattern[str] | None = None
    """The words before a duration that is written like a time (2h30). Without it, a time needs a word before it."""


@dataclass(frozen=True)
class SpokenTimes:
    """Times in words."""

    pattern: re.Pattern[str]
    """A time in words, with the groups hour and minute, or minute, the word for "to", and hour."""
    hours: Mapping[str, int]
    minutes: Mapping[str, int]
    """Words, with hyphens between them → minutes."""
    form: str = "{}:{:02}"
    """How hour and minute are written."""


def spoken_times(
    pattern: str, hours: Mapping[str, int], minutes: Mapping[str, int], form: str = SpokenTimes.form
) -> SpokenTimes:
    """``pattern``: {0} stands for the words of hours, {1} for those of minutes."""
    words = ("|".join(sorted(each, key=len, reverse=True)).replace("-", "[ -]") for each in (hours, minutes))
    return SpokenTimes(re.compile(pattern.format(*words), re.IGNORECASE), hours, minutes, form)
