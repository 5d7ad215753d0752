"""Times of day in a text, and how other languages write them. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

_MORNING, _AFTERNOON = range(12), range(12, 24)
# What is said with a time → the hours that it may be said with.
_PARTS: dict[str, dict[str, Container[int]]] = {
    "en": {
        "a.m": _MORNING, "am": _MORNING, "in the morning": _MORNING, "p.m": _AFTERNOON, "pm": _AFTERNOON,
        "in the afternoon": range(12, 20), "in the evening": range(16, 24), "at night": {*range(18, 24), *range(6)},
    },
    "pt": {
        "da manhã": _MORNING, "da madrugada": range(7), "da tarde": range(12, 20), "da noite": {0, *range(18, 24)},
    },
    "zh": {
        "上午": _MORNING, "早上": _MORNING, "早晨": _MORNING, "清晨": _MORNING, "凌晨": range(7), "中午": range(11, 14),
        "下午": range(12, 20), "傍晚": range(16, 20), "晚上": {0, *range(17, 24)},
    },
}  # fmt: skip
_LATIN_TIME = r"(?P<hour>[01]?\d|2[0-4])"
_PATTERNS = {
    "en": rf"(?<![\w.,:/$€£-]){_LATIN_TIME}(?:(?::|(?:(?<=\bat \d)|(?<=\bat \d\d))\.)(?P<minute>[0-5]\d))?"
    r"(?:\s?(?P<part>[ap]\.?m\b\.?|in\ the\ (?:morning|afternoon|evening)|at\ night))?",
    "pt": rf"(?<![\w.,:/$€£-]){_LATIN_TIME}(?:\s?(?P<sign>h(?:oras?)?\b)|[:h](?P<minute>[0-5]\d)(?:min)?)?"
    r"(?:\s(?P<part>da\s(?:manhã|tarde|noite|madrugada)))?",
    "zh": rf"(?P<part>{'|'.join(_PARTS['zh'])})?(?<![\d.,:/$€£-])"
    rf"{_LATIN_TIME}(?:[点點](?P<half>半)?(?:(?P<minute>[0-5]\d)分?)?(?:钟|整)?|:(?P<clock>[0-5]\d))",
}
_OTHER_PATTERN = rf"(?<![\w.,:/$€£-]){_LATIN_TIME}:(?P<minute>[0-5]\d)"
# Before "9 in the morning", "9h" and "9h30", which may also be a number or a duration.
_LEAD = re.compile(
    r"\b(?:at|by|before|after|from|until|till|to|around|about|since|às|as|à|das|até|pelas|entre|são|ser|\d\d?h(?:\d\d)? (?:e|a|ou))\s$",
    re.IGNORECASE,
)
# Before 2h30 that is a duration.
_LASTING = re.compile(r"\b(?:dur\w+|demor\w+|lev\w+|falt\w+|de|por|há|em|mais|menos|quase|só|apenas)\s$", re.IGNORECASE)
_AFTER = r"(?![\d/:%°]|[.,-]\d|[A-Za-z])"


@dataclass(frozen=True)
class Time:
    """A time of day."""

    start: int
    end: int
    hour: int
    """0 to 23 if the half of the day is known, else 1 to 12."""
    minute: int
    known: bool
    """Whether the half of the day is known."""
    said: bool
    """Whether it was said, in words or as a.m. or p.m. Otherwise the hour tells it."""

    @property
    def short(self) -> int:
        """The hour, 1 to 12."""
        return self.hour % 12 or 12


def times(text: str, language: str) -> Iterator[Time]:
    """The times in a text of a language: of four digits, with a letter (9h), or with a part of the day (6 in the morning)."""
    for match in re.finditer(_PATTERNS.get(language, _OTHER_PATTERN) + _AFTER, text, re.IGNORECASE):
        found = match.groupdict()
        minute = "30" if found.get("half") else found.get("minute") or found.get("clock")
        part = None if not found.get("part") else found["part"].lower().rstrip(".")
        sure = part is not None and part.endswith("m") if minute is None else "h" not in match.group().lower()
        if (
            language != "zh"
            and not sure
            and not ((minute or part or found.get("sign")) and _LEAD.search(text, 0, match.start()))
            and not (language == "pt" and minute and not _LASTING.search(text, 0, match.start()))
        ):
            continue
        if language == "zh" and minute is None and part is None:
            continue
        hour = int(found["hour"])
        if part is not None and 1 <= hour <= 12:
            hours = _PARTS[language][re.sub(r"\s", " ", part).replace("pm", "p.m").replace("am", "a.m")]
            hour = next((one for one in (hour % 12, hour % 12 + 12) if one in hours), hour % 12 + 12)
            yield Time(*match.span(), hour, int(minute or 0), known=True, said=True)
        else:
            yield Time(*match.span(), hour % 24, int(minute or 0), known=hour > 12 or hour == 0, said=False)


@functools.cache
def like_times(language: str) -> re.Pattern[str]:
    """What a model may write for a time: a clock with any parts of the day after it, or in Chinese before it."""
    parts = "|".join(part.replace(".", r"\.?") + r"\b\.?" for part in (*_PARTS["en"], *_PARTS["pt"]))
    before = f"(?:{'|'.join(_PARTS['zh'])})*" if language == "zh" else ""
    return re.compile(
        rf"{before}\d+(?:(?:[:.h点點]|\sh\s)\d+分?)?(?:[点點]|h\b|\so'clock|\shoras?\b)?(?:\s?(?:{parts}))*",
        re.IGNORECASE,
    )


def time_forms(time: Time, language: str) -> tuple[list[str], list[str]]:
    """The accepted ways to write a time, the preferred one first, and those that are wrong though they begin or end like one."""
    if language not in _PARTS:
        hours = dict.fromkeys((time.hour, time.short) if time.known else (time.hour,))
        return [form.format(hour, time.minute) for hour in hours for form in _FORMS["other"]], []
    clocks = _clocks(time.short, time.minute, language)
    ours: list[str] = []
    others: list[str] = []
    for name, hours in [*_PARTS[language].items(), *(_PARTS["en"].items() if language != "en" else ())]:
        right = time.known and time.hour in hours and name in _PARTS[language]
        found = [name + clock if language == "zh" and name in _PARTS["zh"] else f"{clock} {name}" for clock in clocks]
        if name.endswith("m"):  # 6pm
            found += [form.replace(f" {name}", name) for form in found]
        (ours if right else others).extend(found)
    # An hour of the 24-hour clock tells the half of the day.
    plain = _clocks(time.hour, time.minute, language) if language == "pt" or time.hour > 12 or not time.hour else []
    if not time.said and 0 < time.hour <= 12:
        plain = clocks
    if time.known and not time.minute:
        ours += _NAMED.get((language, time.hour), ())
    return list(dict.fromkeys([_preferred(time, language), *plain, *ours])), others


_NAMED = {
    ("en", 0): ("midnight",), ("en", 12): ("noon",), ("pt", 0): ("meia-noite",), ("pt", 12): ("meio-dia",), ("zh", 12): ("中午",),
}  # fmt: skip
_FORMS = {
    "other": ("{}:{:02}", "{:02}:{:02}", "{}.{:02}", "{}h{:02}", "{} h {:02}"),
    "en": ("{}:{:02}", "{:02}:{:02}"),
    "pt": ("{}h{:02}", "{}:{:02}", "{:02}:{:02}", "{:02}h{:02}"),
    "zh": ("{}点{:02}分", "{}点{:02}", "{}:{:02}", "{:02}:{:02}", "{}：{:02}"),
}
_WHOLE_HOURS = {
    "en": ("{} o'clock", "{}"),
    "pt": ("{}h", "{} horas", "{} hora", "{}"),
    "zh": ("{}点", "{}点钟", "{}点整"),
}


def _clocks(hour: int, minute: int, language: str) -> list[str]:
    forms = [form.format(hour, minute) for form in _FORMS[language]]
    if not minute:
        return [*(form.format(hour) for form in _WHOLE_HOURS[language]), *forms]
    return [*forms, f"{hour}点半"] if language == "zh" and minute == 30 else forms


def _preferred(time: Time, language: str) -> str:
    told = time.known and (time.said or time.hour == 0 or time.hour > 12)
    if language == "pt":
        return _clocks(time.hour, time.minute, language)[0]
    clock = _clocks(time.short, time.minute, language)[0]
    if language == "zh":
        parts = (("凌晨", 6), ("上午", 12), ("中午", 13), ("下午", 18), ("晚上", 24))
        return (next(part for part, end in parts if time.hour < end) if told else "") + clock
    half = "a.m." if time.hour < 12 else "p.m."
    return clock.removesuffix(" o'clock") + f" {half}" if told else clock
