"""Convert deltas and their arrival times to words or characters with delays. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from pipeline.events import Delta, SourceDelta
from pipeline.languages import spaced
from pipeline.sentences.growing import Applied, GrowingText

Unit = Literal["word", "char"]
"""The unit of latency."""

_Change = TypeVar("_Change", bound=SourceDelta | Delta)


def unit_of(language: str) -> Unit:
    """The unit of a language: words, or characters if it writes no spaces."""
    return "word" if spaced(language) else "char"


def units(text: str, unit: Unit) -> list[str]:
    """Split ``text`` into words, or into characters without white space."""
    return text.split() if unit == "word" else list("".join(text.split()))


@dataclass(frozen=True)
class Emission:
    """A word or character of the output, with its delays."""

    text: str
    delay_ms: float
    """Audio heard when the unit's segment was cut; independent of the machine."""
    elapsed_ms: float
    """Wall-clock time from the start of the stream until the whole unit was received."""


@dataclass(frozen=True)
class Times:
    """When a piece of text came, and the separator before it if it begins a sentence."""

    delay_ms: float
    elapsed_ms: float
    gap: str = ""


class CommittedOnly:
    """Reduces the changes of a stream, source or one translation, to committed text: nothing is ever withdrawn.

    Text has the times of the change that committed it, which may be later than those of the change that appended it.
    """

    def __init__(self) -> None:
        self._sentences: dict[int, GrowingText] = {}

    def push(self, change: _Change) -> _Change:
        """The same change with only the text that it commits, which may be empty."""
        text = self._sentences.setdefault(change.sentence, GrowingText())
        before = text.committed
        text.apply(change)
        no_token: dict[str, Any] = {"token": None} if isinstance(change, Delta) else {}
        return replace(change, text=text.text[before : text.committed], withdrawn=0, **no_token)

    def forget(self, sentence: int) -> None:
        """Drop a finished sentence."""
        self._sentences.pop(sentence, None)


class TextSoFar:
    """A text of a stream as timed pieces: the source, or the translation into one language.

    In a spaced language a space separates sentences.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.withdrawn_units = 0
        self._sentences: dict[int, GrowingText] = {}
        self._begun = False
        self._first = -1  # the first sentence with text

    def push(self, delta: SourceDelta | Delta, elapsed_s: float) -> Applied:
        """Apply the next change, received ``elapsed_s`` after the start of the stream."""
        text = self._sentences.setdefault(delta.sentence, GrowingText())
        begins = self._begun and delta.sentence != self._first and len(text) == delta.withdrawn
        if delta.text and not self._begun:
            self._begun, self._first = True, delta.sentence
        gap = " " if self.unit == "word" and begins else ""
        applied = text.apply(delta, Times(delta.heard_s * 1000, elapsed_s * 1000, gap))
        self.withdrawn_units += len(units(applied.withdrawn_text, self.unit))
        return applied

    @property
    def empty(self) -> bool:
        return not any(len(text) for text in self._sentences.values())

    def has(self, sentence: int) -> bool:
        """Whether the sentence has text."""
        text = self._sentences.get(sentence)
        return text is not None and len(text) > 0

    def forget(self, sentence: int) -> None:
        """Drop a finished sentence, for logs that need only those in progress."""
        self._sentences.pop(sentence, None)

    def emissions(self) -> list[Emission]:
        """The text as units. A word is emitted with its last letter."""
        found: list[Emission] = []
        for _, text in sorted(self._sentences.items()):
            whole = ""
            for piece in text.pieces:
                for character in piece.text:
                    if character.isspace():
                        whole = ""
                        continue
                    if whole and self.unit == "word":
                        found.pop()
                        whole += character
                    else:
                        whole = character
                    found.append(Emission(whole, piece.mark.delay_ms, piece.mark.elapsed_ms))
        return found
