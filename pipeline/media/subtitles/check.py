"""Check a SubRip or WebVTT file against subtitle rules. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ...errors import UsageError
from .escapes import JOINER
from .rules import SubtitleRules
from .text import is_cjk, line_limit, reading_ms, width

_TIME = r"(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})"
_TIMING = re.compile(rf"\s*{_TIME}\s+-->\s+{_TIME}(?:\s.*)?")
_TAG = re.compile(r"<(?:/?[a-zA-Z]|\d\d:)[^<>]*>|\{\\[^{}]*\}")
_INVISIBLE = re.compile(f"[{JOINER}\u200e\u200f\u202a-\u202e\ufeff]")
# The same text again after so short a blank looks like one subtitle that flickers.
_REPEATED_MS = 1_000


@dataclass(frozen=True)
class ReadCue:
    """A subtitle of a file."""

    line: int
    """Number of the line with the times in the file, from 1."""
    start_ms: int
    end_ms: int
    lines: tuple[str, ...]
    """The lines of text without markup."""
    second_at: int | None = None
    """Index of the first line of the second language; None if the file does not say."""


@dataclass(frozen=True)
class Violation:
    """A rule that a subtitle breaks."""

    cue: ReadCue
    what: str
    """The value that was found and the one that is allowed."""


def read_cues(text: str) -> list[ReadCue]:
    """The subtitles of a file, in its order."""
    cues: list[ReadCue] = []
    vtt = text.lstrip("\ufeff").startswith("WEBVTT")
    lines: list[str] | None = None
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if (timing := _TIMING.fullmatch(line)) is not None:
            start_ms, end_ms = (_ms(timing.groups()[group : group + 4]) for group in (0, 4))
            lines = []
            cues.append(ReadCue(number, start_ms, end_ms, ()))
        elif lines is None:
            if "-->" in line:
                raise UsageError(
                    f"line {number} is {line[:80]!r}; expected times such as 00:00:01,000 --> 00:00:02,500"
                )
        elif line.strip():
            shown = _INVISIBLE.sub("", _TAG.sub("", line)).strip()
            lines.append(html.unescape(shown) if vtt else shown)
        else:
            last = cues.pop()
            cues.append(ReadCue(last.line, last.start_ms, last.end_ms, tuple(filter(None, lines))))
            lines = None
    if not cues:
        raise UsageError("it has no subtitles; expected SubRip or WebVTT")
    return cues


def both_languages(cues: list[ReadCue]) -> list[ReadCue]:
    """The subtitles of a bilingual file: two in a row with the same times are one, with a language each."""
    merged: list[ReadCue] = []
    for cue in cues:
        first = merged[-1] if merged else None
        if first is None or first.second_at is not None or (first.start_ms, first.end_ms) != (cue.start_ms, cue.end_ms):
            merged.append(cue)
        else:
            merged[-1] = replace(first, lines=first.lines + cue.lines, second_at=len(first.lines))
    return merged


def _ms(parts: tuple[str | None, ...]) -> int:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


def violations(cues: list[ReadCue], rules: SubtitleRules) -> Iterator[Violation]:
    """The violations of the rules, in order. In bilingual files each language has its own lines and its own speed."""
    for cue in cues:
        yield from (Violation(cue, what) for what in _alone(cue, rules))
    for before, cue in pairwise(cues):
        gap_ms = cue.start_ms - before.end_ms
        if gap_ms < 0:
            yield Violation(cue, f"begins {-gap_ms} ms before the one before it ends")
        elif gap_ms < rules.gap_ms:
            yield Violation(cue, f"{gap_ms} ms after the one before; at least {rules.gap_ms} ms are asked")
        if cue.lines == before.lines and gap_ms < _REPEATED_MS:
            yield Violation(cue, "repeats the one before")


def _alone(cue: ReadCue, rules: SubtitleRules) -> Iterator[str]:
    """The violations within one subtitle, without regard to its neighbours."""
    duration_ms = cue.end_ms - cue.start_ms
    if not rules.min_duration_ms <= duration_ms <= rules.max_duration_ms:
        allowed = f"{rules.min_duration_ms} to {rules.max_duration_ms} ms are allowed"
        yield f"lasts {duration_ms} ms; {allowed}"
    languages = _languages(cue, rules) if rules.bilingual else [cue.lines]
    for lines in languages:
        if not lines:
            continue
        text = "".join(lines)
        if len(lines) > rules.max_lines:
            yield f"{len(lines)} lines; {rules.max_lines} are allowed"
        for line in lines:
            half = 2 if is_cjk(line) else 1
            if width(line) > (limit := line_limit(text, rules)):
                yield f"a line of {width(line) / half:g} characters; {limit // half} are allowed"
        if duration_ms > 0 and (needed_ms := reading_ms(text, rules)) > duration_ms:
            fast = len(text) * 1000 / duration_ms
            yield f"{fast:.1f} characters a second; {len(text) * 1000 / needed_ms:.1f} are allowed"


def _languages(cue: ReadCue, rules: SubtitleRules) -> list[tuple[str, ...]]:
    """The lines of the first language, which is above, and of the second.

    If the file does not say, they are divided where the script changes, else where both take the least time to read.
    """
    lines, begin = cue.lines, cue.second_at

    def longer_ms(begin: int) -> int:
        return max(reading_ms("".join(part), rules) for part in (lines[:begin], lines[begin:]))

    if begin is None:
        changes = (begin for begin in range(1, len(lines)) if is_cjk(lines[begin - 1]) != is_cjk(lines[begin]))
        begin = next(changes, min(range(1, len(lines) + 1), key=longer_ms, default=0))
    return [lines[:begin], lines[begin:]]
