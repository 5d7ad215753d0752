"""Deltas with the times at which they were received → words or characters with their delays. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pipeline.events import Delta
from pipeline.languages import spaced

Unit = Literal["word", "char"]
"""What latency is counted in."""


def unit_of(language: str) -> Unit:
    """Words; characters where the language writes no spaces."""
    return "word" if spaced(language) else "char"


def units(text: str, unit: Unit) -> list[str]:
    """``text`` as words, or as characters without white space."""
    return text.split() if unit == "word" else list("".join(text.split()))


@dataclass(frozen=True)
class Emission:
    """A word or character of the output."""

    text: str
    delay_ms: float
    """Audio that had been heard when what it rests on was cut: does not depend on the machine."""
    elapsed_ms: float
    """Wall-clock time from the beginning of the stream until it was received, whole."""


@dataclass(frozen=True)
class Piece:
    """What one delta appended."""

    text: str
    delay_ms: float
    elapsed_ms: float


@dataclass(frozen=True)
class Change:
    """What one delta did to the text: some of the last pieces withdrawn (in their order), some appended."""

    withdrawn: tuple[Piece, ...] = ()
    appended: tuple[Piece, ...] = ()


class TextSoFar:
    """The text of a stream, with when each piece of it came. Segments of a spaced language are set apart by a space."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.pieces: list[Piece] = []
        self.withdrawn_units = 0
        self._segment: int | None = None

    def push(self, delta: Delta, elapsed_s: float) -> Change:
        """Take the next delta, received ``elapsed_s`` after the stream began."""
        gap = " " if self.unit == "word" and self.pieces and delta.segment_id != self._segment else ""
        if delta.text:  # a bare space comes as an empty first delta
            self._segment = delta.segment_id
        withdrawn, kept = self._withdraw(delta.withdrawn)
        appended = [kept] if kept else []
        if delta.text:
            appended.append(Piece(gap + delta.text, delta.heard_s * 1000, elapsed_s * 1000))
        self.pieces += appended
        return Change(tuple(withdrawn), tuple(appended))

    def _withdraw(self, characters: int) -> tuple[list[Piece], Piece | None]:
        """Take the pieces of the last ``characters`` away; returns them, and what stays of the first of them."""
        withdrawn: list[Piece] = []
        left = characters
        while left > 0 and self.pieces:
            withdrawn.insert(0, self.pieces.pop())
            left -= len(withdrawn[0].text)
        text = "".join(piece.text for piece in withdrawn)
        self.withdrawn_units += len(units(text[max(0, -left) :], self.unit))
        return withdrawn, replace(withdrawn[0], text=withdrawn[0].text[:-left]) if left < 0 else None

    def forget(self) -> None:
        """Drop all pieces but the last: for a log that needs no more than the segment in progress, once that ended."""
        del self.pieces[:-1]

    def emissions(self) -> list[Emission]:
        """The text, unit by unit. A word counts as emitted when the last of its letters was."""
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
