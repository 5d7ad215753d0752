"""Text for readers that take nothing back, such as a protocol of deltas or a caption that was sent: steady words, appended. Pure.

It is made where such a reader is; what others see does not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from ...languages import Convert, letters, sets_sentences_apart, settled, spaced
from ..events import SourceText, TargetText
from .states import State

_WORD = re.compile(r"\S+")
_CHARACTER = re.compile(r"\S")


@dataclass(frozen=True)
class Piece:
    """Text that is appended to a sentence."""

    sentence: int
    text: str
    """The text, with the space before it."""


def joined_text(pieces: Iterable[Piece]) -> str:
    """The text of pieces."""
    return "".join(piece.text for piece in pieces)


class AppendOnlyText:
    """The source, or one translation. Sentences are set apart as their language does.

    What was appended stays, also where the text turns out otherwise: what follows goes on after the words that correspond to it.
    """

    def __init__(self) -> None:
        self._texts: dict[int, State] = {}
        """The sentences in progress, and the finished one in front of them."""
        self._said = ""
        """The text that was appended of these sentences."""
        self._begun = False
        self.differing = 0
        """Units (words, or characters of a language without spaces) of finished text that were appended otherwise, or not."""

    def push(self, state: State, convert: Convert | None = None) -> list[Piece]:
        """The pieces that the newest state of a sentence appends, often none.

        ``convert``: into other Chinese characters. Those that later text may change are not steady.
        """
        if convert is not None:
            state = _converted(state, convert)
        if isinstance(state, SourceText | TargetText) and not state.text:
            self._texts.pop(state.sentence, None)
            return []
        final = not isinstance(state, SourceText | TargetText)
        if final:  # what comes before it was dropped
            self._texts = {number: one for number, one in self._texts.items() if number > state.sentence}
        self._texts[state.sentence] = state
        pieces = self._appended(state.language)
        if final:
            self._finish(state)
        return pieces

    def _appended(self, language: str) -> list[Piece]:
        """Append the steady text that is not said yet."""
        space = " " if sets_sentences_apart(language) else ""
        whole, begins = "", list[tuple[int, int]]()
        for number, state in sorted(self._texts.items()):
            whole += space if whole else ""
            begins.append((len(whole), number))
            whole += state.text[: state.steady].rstrip() if state.steady < len(state.text) else state.text.strip()
            if state.steady < len(state.text.rstrip()):
                break
        position = len(self._said) if whole.startswith(self._said) else _continuation(self._said, whole, language)
        pieces: list[Piece] = []
        for (begin, number), (end, _) in zip(begins, [*begins[1:], (len(whole), -1)], strict=True):
            text = whole[max(position, begin) : end].rstrip() if end > position else ""
            if text:
                apart = space if self._begun and max(position, begin) == begin else ""
                pieces.append(Piece(number, apart + text))
                self._begun = True
        if pieces:
            self._said = whole if whole.startswith(self._said) else self._said + "".join(p.text for p in pieces)
        return pieces

    def _finish(self, state: State) -> None:
        """Forget a finished sentence, and what was said of it."""
        text = state.text.strip()
        cut = len(text) if self._said.startswith(text) else _continuation(text, self._said, state.language)
        said, final = _units(self._said[:cut], state.language), _units(text, state.language)
        self.differing += _distance(said, final)[-1]
        self._said = self._said[cut:].lstrip()
        del self._texts[state.sentence]


class AppendOnlySentences:
    """Append-only text in whole sentences: each as soon as it is steady and more follows, at the latest when it is final.

    What is left of a sentence that turns out otherwise comes as one more piece.
    """

    def __init__(self) -> None:
        self._text = AppendOnlyText()
        self._waiting: list[Piece] = []

    @property
    def differing(self) -> int:
        """Units of finished text that were appended otherwise, or not; see ``AppendOnlyText``."""
        return self._text.differing

    def push(self, state: State) -> list[Piece]:
        """The sentences that the newest state completes, in order and without space around them."""
        self._waiting += self._text.push(state)
        newest = max((piece.sentence for piece in self._waiting), default=-1)
        whole = newest if isinstance(state, SourceText | TargetText) else max(newest, state.sentence + 1)
        ready = [piece for piece in self._waiting if piece.sentence < whole]
        self._waiting = [piece for piece in self._waiting if piece.sentence >= whole]
        texts = [
            (number, joined_text(pieces).strip()) for number, pieces in groupby(ready, lambda piece: piece.sentence)
        ]
        return [Piece(number, text) for number, text in texts if letters(text)]


def _converted(state: State, convert: Convert) -> State:
    if isinstance(state, SourceText | TargetText):
        return replace(state, text=convert(state.text), steady=settled(state.text[: state.steady]))
    return replace(state, text=convert(state.text))


def _units(text: str, language: str) -> list[str]:
    return [letters(match.group()) for match in (_WORD if spaced(language) else _CHARACTER).finditer(text)]


def _distance(first: list[str], second: list[str]) -> list[int]:
    """The edit distance of ``first`` from each beginning of ``second`` (Wagner and Fischer, 1974)."""
    costs = list(range(len(second) + 1))
    for row, unit in enumerate(first, 1):
        before, costs[0] = costs[0], row
        for i, other in enumerate(second, 1):
            before, costs[i] = costs[i], min(before + (unit != other), costs[i] + 1, costs[i - 1] + 1)
    return costs


def _continuation(said: str, whole: str, language: str) -> int:
    """The position in ``whole`` after the words that correspond to ``said``, which it does not begin with."""
    costs = _distance(_units(said, language), _units(whole, language))
    count = max(range(len(costs)), key=lambda at: (-costs[at], at))
    if not count:
        return 0
    last_unit = list((_WORD if spaced(language) else _CHARACTER).finditer(whole))[count - 1]
    (last,) = said.split()[-1:] or [""] if spaced(language) else [said[-1:]]
    if last_unit.group().startswith(last) and letters(last_unit.group()) == letters(last):
        return last_unit.start() + len(last)  # the marks after the last word are new
    return last_unit.end()
