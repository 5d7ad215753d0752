"""When each word of a growing text was first shown, when it was committed, and whether it changed in between. Pure.

Words are compared without case and punctuation (``pipeline.bench.errors.units``); in a language without spaces the
unit is a character.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.bench.errors import units
from pipeline.captions.states import common_length
from pipeline.events import PipelineEvent, SourceText, TargetText
from pipeline.latency.alignment import aligned


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
