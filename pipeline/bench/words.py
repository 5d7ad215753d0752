"""Words of texts: their differences, and when each word of a growing text was shown, settled and final. Pure.

Words are compared without case and punctuation (``scored_units``); in a language without spaces the unit is a character.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rapidfuzz.distance import LCSseq, Levenshtein

from ..core import PipelineEvent, SourceSentence, SourceText, State, TargetText, Translation
from ..languages import spaced
from ..languages.rules.en import in_words
from ..media import Unit, aligned
from ..media import units as text_units

FRAME_S = 1 / 60
"""Duration of one picture on a screen: what comes within it is seen at once."""
LATE_S = 3.0
"""A word that changes later than this after it was shown has probably been read."""
# Units of the final text with which what is shown is compared beyond its own length.
_AHEAD = 20


def scored_units(text: str, language: str) -> list[str]:
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
        return " ".join(in_words(int(digit)) for digit in digits)
    return in_words(int(digits)).replace("-", " ")


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Levenshtein distance."""
    distance: int = Levenshtein.distance(reference, hypothesis)
    return distance


@dataclass(frozen=True)
class ReceivedEvent:
    """An event, and the seconds from the first sample of the stream until the reader received it, by the wall clock."""

    event: PipelineEvent
    elapsed_s: float


@dataclass(frozen=True)
class Newest:
    """The newest state of one text of the stream, as received."""

    state: State
    elapsed_s: float


def source_texts(received: Iterable[ReceivedEvent]) -> list[Newest]:
    """The states of the recognised text."""
    return [Newest(one.event, one.elapsed_s) for one in received if isinstance(one.event, SourceText | SourceSentence)]


def target_texts(received: Iterable[ReceivedEvent], language: str) -> list[Newest]:
    """The states of the translation into ``language``."""
    return [
        Newest(one.event, one.elapsed_s)
        for one in received
        if isinstance(one.event, TargetText | Translation) and one.event.language == language
    ]


@dataclass
class ShownUnit:
    """A word or character of the final text of a stream."""

    text: str
    sentence: int
    placed_s: float = math.inf
    """When any unit was first shown in this place."""
    shown_s: float = math.inf
    """When it was first shown."""
    settled_s: float = math.inf
    """Since when it has stood unchanged to the end."""
    final_s: float = math.inf
    """When it was declared final."""

    @property
    def changed(self) -> bool:
        """Whether another unit, or none, was in its place after something had been shown there."""
        return self.settled_s > self.placed_s

    @property
    def changed_late(self) -> bool:
        """Whether that was so for long."""
        return self.settled_s - self.placed_s > LATE_S


def is_final(state: State) -> bool:
    return isinstance(state, SourceSentence | Translation)


def shown_units(texts: Sequence[Newest], language: str) -> list[ShownUnit]:
    """The units of the final text of a stream, in order. What is shown at any time is aligned to them as a whole, so it does
    not matter in which sentence a unit stood.
    """
    finals = {newest.state.sentence: newest.state.text for newest in texts if is_final(newest.state)}
    units = [ShownUnit(unit, number) for number in sorted(finals) for unit in scored_units(finals[number], language)]
    shown: dict[int, list[str]] = {}
    before, begin = list[str](), 0
    for index, newest in enumerate(texts):
        number = newest.state.sentence
        shown = {each: text for each, text in shown.items() if each != number or not is_final(newest.state)}
        if is_final(newest.state):
            end = sum(unit.sentence <= number for unit in units)
            for unit in units[begin:end]:
                unit.final_s = newest.elapsed_s
                _see(unit, newest.elapsed_s, there=True)
            begin = end
        else:
            shown[number] = scored_units(newest.state.text, language)
        displayed = [unit for each in sorted(shown) for unit in shown[each]]
        if displayed == before or not ends_frame(texts, index):
            continue
        before = displayed
        ahead = units[begin : begin + len(displayed) + _AHEAD]
        pairs = aligned(displayed, [unit.text for unit in ahead], open_end=True)
        places = {j: i for i, j in pairs if j is not None}
        for j, unit in enumerate(ahead):
            i = places.get(j)
            if i is not None:
                unit.placed_s = min(unit.placed_s, newest.elapsed_s)
            _see(unit, newest.elapsed_s, there=i is not None and displayed[i] == unit.text)
    return units


@dataclass(frozen=True)
class SteadyUnit:
    """A word or character that was called steady."""

    called_s: float
    """When it was called so first."""
    place: int | None
    """Its place in the final text; None if that does not have it, in order."""


def steady_units(texts: Sequence[Newest], language: str) -> list[SteadyUnit]:
    """The units that were called steady, in order, over the whole stream, since words move from one sentence to its neighbour."""
    steady: dict[int, tuple[list[str], bool]] = {}
    promised, called_s, final = list[str](), list[float](), dict[int, list[str]]()
    for newest in texts:
        number, text = newest.state.sentence, newest.state.text
        if is_final(newest.state):
            final[number] = scored_units(text, language)
        length = len(text) if is_final(newest.state) else newest.state.steady
        steady[number] = scored_units(text[:length], language), length == len(text)
        ahead = list[str]()
        for sentence in sorted(steady):
            units, whole = steady[sentence]
            ahead += units
            if not whole:
                break
        promised += ahead[len(promised) :]
        called_s += [newest.elapsed_s] * (len(promised) - len(called_s))
    stands = [unit for number in sorted(final) for unit in final[number]]
    places: dict[int, int] = {}
    for block in LCSseq.opcodes(promised, stands):
        if block.tag == "equal":
            places.update(
                zip(range(block.src_start, block.src_end), range(block.dest_start, block.dest_end), strict=True)
            )
    return [SteadyUnit(each_s, places.get(index)) for index, each_s in enumerate(called_s)]


def ends_frame(texts: Sequence[Newest], index: int) -> bool:
    """Whether the state at ``index`` is the last that comes in the time of one picture: sentences are joined in several states."""
    return index + 1 == len(texts) or texts[index + 1].elapsed_s - texts[index].elapsed_s > FRAME_S


def erased_units(texts: Sequence[Newest], unit: Unit) -> int:
    """The units that were taken back from what is displayed, wherever its sentences begin."""
    shown, before, erased = dict[int, list[str]](), list[str](), 0
    for index, newest in enumerate(texts):
        shown[newest.state.sentence] = text_units(newest.state.text, unit)
        if not ends_frame(texts, index):
            continue
        displayed = [shown_unit for number in sorted(shown) for shown_unit in shown[number]]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, displayed, strict=False)))
        erased += len(before) - same
        before = displayed
    return erased


def _see(unit: ShownUnit, at_s: float, *, there: bool) -> None:
    if there:
        unit.placed_s, unit.shown_s = min(unit.placed_s, at_s), min(unit.shown_s, at_s)
        unit.settled_s = min(unit.settled_s, at_s)
    else:
        unit.settled_s = math.inf
