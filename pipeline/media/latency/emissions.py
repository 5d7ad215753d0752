"""Convert texts and their arrival times to words or characters with delays. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from ...core import SourceText, TargetText, edit
from ...languages import spaced

Unit = Literal["word", "char"]
"""The unit of latency."""

_State = TypeVar("_State", bound=SourceText | TargetText)


def unit_of(language: str) -> Unit:
    """The unit of a language: words, or characters if it writes no spaces."""
    return "word" if spaced(language) else "char"


def units(text: str, unit: Unit) -> list[str]:
    """Split ``text`` into words, or into characters without white space."""
    return text.split() if unit == "word" else list("".join(text.split()))


@dataclass(frozen=True)
class Emission:
    """A piece of the output that came at once, or a word or character of it; with its delays."""

    text: str
    delay_ms: float
    """Audio heard when the unit's segment was cut; independent of the machine."""
    elapsed_ms: float
    """Wall-clock time from the start of the stream until the whole unit was received."""
    gap: str = ""
    """The separator before a piece that begins a sentence."""


@dataclass(frozen=True)
class AppliedState:
    """The differences between a state and a newer one."""

    withdrawn: tuple[Emission, ...] = ()
    """The pieces removed, in text order, the first one perhaps only in part."""
    appended: tuple[Emission, ...] = ()
    """The kept part of a piece removed in part, then the new piece."""


class TextSoFar:
    """A text of a stream as timed pieces: the source, or the translation into one language.

    In a spaced language a space separates sentences.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.withdrawn_units = 0
        self._sentences: dict[int, list[Emission]] = {}
        self._begun = False
        self._first = -1  # the first sentence with text

    def push(self, state: SourceText | TargetText, elapsed_s: float) -> AppliedState:
        """Take the newest state of a sentence, received ``elapsed_s`` after the start of the stream."""
        pieces = self._sentences.setdefault(state.sentence, [])
        old = "".join(piece.text for piece in pieces)
        withdrawn_length, appended = edit(old, state.text)
        self.withdrawn_units += len(units(old[len(old) - withdrawn_length :], self.unit))
        begins = self._begun and state.sentence != self._first and withdrawn_length == len(old)
        if appended and not self._begun:
            self._begun, self._first = True, state.sentence
        withdrawn: list[Emission] = []
        while withdrawn_length > 0:
            withdrawn.insert(0, pieces.pop())
            withdrawn_length -= len(withdrawn[0].text)
        new = [replace(withdrawn[0], text=withdrawn[0].text[:-withdrawn_length])] if withdrawn_length < 0 else []
        gap = " " if self.unit == "word" and begins else ""
        new.append(Emission(appended, state.heard_s * 1000, elapsed_s * 1000, gap))
        pieces += new
        return AppliedState(tuple(withdrawn), tuple(new))

    @property
    def empty(self) -> bool:
        return not any(map(self.has, self._sentences))

    def has(self, sentence: int) -> bool:
        """Whether the sentence has text."""
        return any(piece.text for piece in self._sentences.get(sentence, ()))

    def forget(self, sentence: int) -> None:
        """Drop a finished sentence, for logs that need only those in progress."""
        self._sentences.pop(sentence, None)

    def emissions(self) -> list[Emission]:
        """The text as units. A word is emitted with its last letter."""
        emissions: list[Emission] = []
        for _, pieces in sorted(self._sentences.items()):
            whole = ""
            for piece in pieces:
                for character in piece.text:
                    if character.isspace():
                        whole = ""
                        continue
                    if whole and self.unit == "word":
                        emissions.pop()
                        whole += character
                    else:
                        whole = character
                    emissions.append(replace(piece, text=whole, gap=""))
        return emissions
