"""Words of texts: their differences, and when each word of a growing text was shown, committed and changed. Pure.

Words are compared without case and punctuation (``units``); in a language without spaces the unit is a character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from ..captions.states import common_length
from ..events import PipelineEvent, SourceText, TargetText
from ..languages import spaced
from ..languages.numbers import english
from ..latency.alignment import aligned


def units(text: str, language: str) -> list[str]:
    """Split a text into lower-case words without punctuation, or into characters in a language without spaces.

    Apostrophes are removed. English numbers below 10,000 are spelt out, because a recogniser may write digits where
    the reference has words.
    """
    plain = unicodedata.normalize("NFKC", text).lower().replace("'", "").replace("’", "")
    if language == "en":
        plain = re.sub(r"\d+", lambda match: f" {spelt(match.group())} ", re.sub(r"(?<=\d),(?=\d{3})", "", plain))
    kept = "".join(c if c.isalnum() or unicodedata.combining(c) else " " for c in plain)
    return kept.split() if spaced(language) else [c for c in kept if not c.isspace()]


def spelt(digits: str) -> str:
    """Spell a number in English words; digit by digit if it begins with 0 or has more than four digits."""
    if len(digits) > 4 or (digits[0] == "0" and len(digits) > 1):
        return " ".join(english(int(digit)) for digit in digits)
    return english(int(digits)).replace("-", " ")


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Levenshtein distance."""
    distance: int = Levenshtein.distance(reference, hypothesis)
    return distance


@dataclass(frozen=True)
class Received:
    """An event, and the seconds from the first sample of the stream until the reader received it, by the wall clock."""

    event: PipelineEvent
    elapsed_s: float


@dataclass(frozen=True)
class Newest:
    """The newest state of one text of the stream, as received."""

    state: SourceText | TargetText
    elapsed_s: float


def source_texts(received: Iterable[Received]) -> list[Newest]:
    """The states of the recognised text."""
    return [Newest(one.event, one.elapsed_s) for one in received if isinstance(one.event, SourceText)]


def target_texts(received: Iterable[Received], language: str) -> list[Newest]:
    """The states of the translation into ``language``."""
    return [
        Newest(one.event, one.elapsed_s)
        for one in received
        if isinstance(one.event, TargetText) and one.event.language == language
    ]


@dataclass(frozen=True)
class ShownUnit:
    """A word or character of the final text of a sentence."""

    text: str
    sentence: int
    shown_s: float
    """When it was first shown, wherever it stood and even if it changed afterwards: the first version of the sentence whose
    best alignment with the final text pairs an equal unit with it."""
    committed_s: float | None
    """When it became final; None if it did not."""
    changed: bool
    """Whether an earlier version had another unit in its place."""


def versions(texts: Iterable[Newest]) -> dict[int, list[Newest]]:
    """The states of each sentence, in the order of the sentences."""
    found: dict[int, list[Newest]] = {}
    for one in texts:
        found.setdefault(one.state.sentence, []).append(one)
    return dict(sorted(found.items()))


def shown_units(texts: Iterable[Newest], language: str) -> list[ShownUnit]:
    """The units of the final text of a stream, sentence by sentence."""
    return [
        unit
        for number, of_sentence in versions(texts).items()
        for unit in _units_of_sentence(number, of_sentence, language)
    ]


def _units_of_sentence(number: int, of_sentence: Sequence[Newest], language: str) -> list[ShownUnit]:
    final = units(of_sentence[-1].state.text, language)
    shown_s: list[float | None] = [None] * len(final)
    committed_s: list[float | None] = [None] * len(final)
    changed = [False] * len(final)
    for version in of_sentence:
        displayed = units(version.state.text, language)
        for i, j in aligned(displayed, final, open_end=True):
            if i is None or j is None:
                continue
            if displayed[i] != final[j]:
                changed[j] = True
            elif shown_s[j] is None:
                shown_s[j] = version.elapsed_s
        # The last unit may be committed in part, as "no" of "nobody". It counts when it is whole.
        committed = common_length(units(version.state.committed_text, language), displayed)
        for j in range(min(committed, common_length(displayed, final))):
            if committed_s[j] is None:
                committed_s[j] = version.elapsed_s
    last_s = of_sentence[-1].elapsed_s
    return [
        ShownUnit(text, number, last_s if first is None else first, last, differed)
        for text, first, last, differed in zip(final, shown_s, committed_s, changed, strict=True)
    ]
