"""Words that are not shown: of a listed word only the first letter is left, and asterisks stand for the others. Pure."""

from __future__ import annotations

import functools
import unicodedata
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...glossary import in_word
from ...languages import language_tag
from ..events import PipelineEvent, SourceSentence, SourceText, TargetText, Transcript, Word
from .states import State

MASK = "*"
MaskedWord = tuple[str, str]
"""A language, "" for all of them, and a word or phrase."""
# What may stand between the words of a phrase.
_JOINTS = ("", "-", "‐", "'", "’")


class _Unit(NamedTuple):
    """A word of a text or, in a script without spaces, a character."""

    start: int
    end: int
    text: str
    """The word in a form in which case and composed letters make no difference."""


class Masking:
    """Masks listed words in the events of one stream. A text keeps its length.

    A word is found at word boundaries, whatever its case, and in scripts without spaces anywhere. Text that may yet become
    a listed word is not steady before more of its sentence has come.
    """

    def __init__(self, words: Iterable[MaskedWord] = ()) -> None:
        self._phrases: dict[str, list[tuple[str, ...]]] = {}  # language → sorted phrases, as the texts of their units
        self._longest = 0  # units of a phrase
        for language, word in words:
            self.add(language, word)

    def add(self, language: str, word: str) -> None:
        """Mask a word or phrase from now on; ``language``: "" for all languages. Final text stays as it is."""
        phrase = tuple(unit.text for unit in _units(word))
        if phrase:
            self._longest = max(self._longest, len(phrase))
            insort(self._phrases.setdefault(language and language_tag(language).language, []), phrase)

    def fresh(self) -> Masking:
        """A masking of the same words, for another stream."""
        copy = Masking()
        copy._longest = self._longest
        copy._phrases = {language: list(phrases) for language, phrases in self._phrases.items()}
        return copy

    def text(self, text: str, language: str | None) -> str:
        """A finished text, masked. ``language``: None if it is unknown, so that words of all languages are masked."""
        characters = list(text)
        for start, end in self._spans(text, language):
            for position in range(start + (end - start > 1), end):
                if _is_of_word(text[position]):
                    characters[position] = MASK
        return "".join(characters)

    def push(self, event: PipelineEvent) -> PipelineEvent:
        """The next event of the stream, masked."""
        if isinstance(event, State):
            return self._state(event)
        if isinstance(event, Transcript) and self._phrases:
            missing = tuple(replace(each, text=self.text(each.text, event.language)) for each in event.missing)
            text = self.text(event.text, event.language)
            return replace(event, text=text, words=self._words(event.words, text, event.language), missing=missing)
        return event

    def _state(self, event: State) -> State:
        """The newest text of a sentence."""
        if not self._phrases:
            return event
        text = self.text(event.text, event.language)
        if isinstance(event, SourceText | TargetText):
            return replace(event, text=text, steady=self._settled(event.text[: event.steady], event.language))
        if isinstance(event, SourceSentence):
            terms = tuple(self.text(term, event.language) for term in event.terms)
            return replace(event, text=text, words=self._words(event.words, text, event.language), terms=terms)
        # its terms are of the language spoken
        heard, missed = (tuple(self.text(term, None) for term in each) for each in (event.terms, event.missed_terms))
        return replace(event, text=text, terms=heard, missed_terms=missed)

    def _words(self, words: Sequence[Word], text: str, language: str) -> tuple[Word, ...]:
        """The words of a text, as it is masked."""
        masked, position = [], -(len(words[0].text) - len(words[0].text.lstrip())) if words else 0
        for word in words:
            shown = word.text[: max(0, -position)] + text[max(0, position) : position + len(word.text)]
            heard = word.heard and self.text(word.heard, language)
            masked.append(replace(word, text=shown + word.text[len(shown) :], heard=heard))
            position += len(word.text)
        return tuple(masked)

    def _lists(self, language: str | None) -> list[list[tuple[str, ...]]]:
        codes = self._phrases if language is None else {language_tag(language).language, ""}
        return [self._phrases[code] for code in codes if code in self._phrases]

    def _spans(self, text: str, language: str | None) -> Iterator[tuple[int, int]]:
        """The positions of listed words, as (start, end); they may overlap."""
        units = _units(text)
        lists = self._lists(language)
        for first, unit in enumerate(units):
            phrase: tuple[str, ...] = ()
            for last in range(first, min(first + self._longest, len(units))):
                if last > first and text[units[last - 1].end : units[last].start].strip() not in _JOINTS:
                    break
                phrase += (units[last].text,)
                if any(phrase == _next(phrases, phrase) for phrases in lists):
                    yield unit.start, units[last].end

    def _settled(self, text: str, language: str) -> int:
        """The length of the text before what may be, or become, a listed word when the text goes on."""
        units, end, lists = _units(text), len(text), self._lists(language)
        for i in range(len(units) - 1, max(-1, len(units) - 1 - self._longest), -1):
            if text[units[i].end : units[i + 1].start if i + 1 < len(units) else len(text)].strip() not in _JOINTS:
                break
            begun = tuple(unit.text for unit in units[i:])
            if any(_may_become(begun, _next(phrases, begun)) for phrases in lists):
                end = units[i].start
        return end


def _next(phrases: list[tuple[str, ...]], begun: tuple[str, ...]) -> tuple[str, ...]:
    """The first phrase from ``begun`` on in their order: if any phrase begins with it, this one does. Empty after the last."""
    index = bisect_left(phrases, begun)
    return phrases[index] if index < len(phrases) else ()


def _may_become(begun: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    """Whether a phrase begins with these units, of which the last one may be incomplete."""
    *whole, last = begun
    index = len(whole)
    return index < len(phrase) and phrase[:index] == tuple(whole) and phrase[index].startswith(last)


def _units(text: str) -> list[_Unit]:
    ranges: list[tuple[int, int]] = []
    for position, character in enumerate(text):
        if not _is_of_word(character):
            continue
        if ranges and ranges[-1][1] == position and in_word(character) and in_word(text[position - 1]):
            ranges[-1] = ranges[-1][0], position + 1
        else:
            ranges.append((position, position + 1))
    return [_Unit(start, end, _plain(text[start:end])) for start, end in ranges]


@functools.lru_cache(maxsize=8192)
def _is_of_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


@functools.lru_cache(maxsize=8192)
def _plain(word: str) -> str:
    """Decomposed, so that the beginning of a word stays the beginning of its form."""
    return unicodedata.normalize("NFD", word.casefold())
