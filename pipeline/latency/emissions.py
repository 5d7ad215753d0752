"""Convert deltas and their arrival times to words or characters with delays. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pipeline.events import Delta
from pipeline.languages import spaced

Unit = Literal["word", "char"]
"""The unit of latency."""


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
class Piece:
    """The text appended by one delta, with its delays."""

    text: str
    delay_ms: float
    elapsed_ms: float


@dataclass(frozen=True)
class Change:
    """The effect of one delta: pieces withdrawn from the end (in text order) and pieces appended."""

    withdrawn: tuple[Piece, ...] = ()
    appended: tuple[Piece, ...] = ()


class TextSoFar:
    """The text of a stream as timed pieces. In a spaced language a space separates segments."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.pieces: list[Piece] = []
        self.withdrawn_units = 0
        self._segment: int | None = None

    def push(self, delta: Delta, elapsed_s: float) -> Change:
        """Apply the next delta, received ``elapsed_s`` after the start of the stream."""
        gap = " " if self.unit == "word" and self.pieces and delta.segment_id != self._segment else ""
        if delta.text:  # the first delta may be empty, for a bare space
            self._segment = delta.segment_id
        withdrawn, kept = self._withdraw(delta.withdrawn)
        appended = [kept] if kept else []
        if delta.text:
            appended.append(Piece(gap + delta.text, delta.heard_s * 1000, elapsed_s * 1000))
        self.pieces += appended
        return Change(tuple(withdrawn), tuple(appended))

    def _withdraw(self, characters: int) -> tuple[list[Piece], Piece | None]:
        """Remove the pieces of the last ``characters``; return them, and the kept part of the first one."""
        withdrawn: list[Piece] = []
        left = characters
        while left > 0 and self.pieces:
            withdrawn.insert(0, self.pieces.pop())
            left -= len(withdrawn[0].text)
        text = "".join(piece.text for piece in withdrawn)
        self.withdrawn_units += len(units(text[max(0, -left) :], self.unit))
        return withdrawn, replace(withdrawn[0], text=withdrawn[0].text[:-left]) if left < 0 else None

    def forget(self) -> None:
        """Drop all pieces but the last, for logs that need only the segment in progress."""
        del self.pieces[:-1]

    def emissions(self) -> list[Emission]:
        """The text as units. A word is emitted with its last letter."""
        found: list[Emission] = []
        whole = ""
        for piece in self.pieces:
            for character in piece.text:
                if character.isspace():
                    whole = ""
                    continue
                if whole and self.unit == "word":
                    found.pop()
                    whole += character
                else:
                    whole = character
                found.append(Emission(whole, piece.delay_ms, piece.elapsed_ms))
        return found
