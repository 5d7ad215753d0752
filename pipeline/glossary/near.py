"""Words that look and sound like a term: probably the term, misheard. For terms in Latin letters. Pure."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from .terms import Glossary, Term

# Shorter forms are like too many other words.
_LEAST_LETTERS = 5
# Words that one term is heard as at most.
_MOST_WORDS = 4
# Likenesses, 0 to 1, of a misheard term to the term: at least, of letters and of sound, and of both on average.
_LEAST_SPELLING, _LEAST_SOUND, _LEAST_LIKENESS = 0.5, 0.5, 0.6
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
# What may be between the words that are one term.
_JOINT = re.compile(r"[ \u00a0-]*")
_POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)


@dataclass(frozen=True)
class NearMiss:
    """``text[start:end]`` may be a form of a term."""

    start: int
    end: int
    form: str
    """The text to write there: a form of the term, with the possessive ending of the text."""
    term: Term
    likeness: float
    """0 to 1: how much they look and sound alike."""


@dataclass(frozen=True)
class _Span:
    """Some words of a text."""

    start: int
    end: int
    ending: str
    """The possessive ending, which ``letters`` lacks."""
    letters: str
    sound: str


class NearMisses:
    """Looks for the terms of one glossary."""

    def __init__(self, glossary: Glossary) -> None:
        self._glossary = glossary
        forms = ((form, term) for term in glossary.terms for form in term.sources)
        self._forms = [(form, term) for form, term in forms if len(latin_letters(form)) >= _LEAST_LETTERS]
        self._letters = [latin_letters(form) for form, _ in self._forms]
        self._sounds = [sound_of(letters) for letters in self._letters]

    def found_in(self, text: str, *, loosely: float = 0.0) -> list[NearMiss]:
        """The words of ``text`` that may be terms, the likest first; they may overlap. Terms that it has are left alone.

        ``loosely``: how much less alike they may be.
        """
        spans = list(_spans(text)) if self._forms else []
        exact = self._glossary.found_in(text) if spans else ()
        spans = [span for span in spans if all(span.end <= match.start or match.end <= span.start for match in exact)]
        if not spans:
            return []
        from rapidfuzz.distance import Levenshtein  # imported only if there is a glossary
        from rapidfuzz.process import cdist

        similarity = Levenshtein.normalized_similarity
        spelling = cdist([span.letters for span in spans], self._letters, scorer=similarity)
        sound = cdist([span.sound for span in spans], self._sounds, scorer=similarity)
        likeness = (spelling + sound) / 2
        enough = (
            (spelling >= _LEAST_SPELLING - loosely)
            & (sound >= _LEAST_SOUND - loosely)
            & (likeness >= _LEAST_LIKENESS - loosely)
        )
        matches = [
            NearMiss(
                spans[row].start,
                spans[row].end,
                self._forms[column][0] + spans[row].ending,
                self._forms[column][1],
                float(likeness[row, column]),
            )
            for row, column in zip(*enough.nonzero(), strict=True)
        ]
        return sorted(matches, key=lambda match: (-match.likeness, match.start, match.end))


def _spans(text: str) -> Iterator[_Span]:
    """All runs of up to four words that nothing but blanks and hyphens separates."""
    words = list(_WORD.finditer(text))
    for index, first in enumerate(words):
        for count in range(1, _MOST_WORDS + 1):
            last = words[min(index + count, len(words)) - 1]
            if index + count > len(words):
                break
            if count > 1 and not _JOINT.fullmatch(text, words[index + count - 2].end(), last.start()):
                break
            written = text[first.start() : last.end()]
            possessive = _POSSESSIVE.search(written)
            ending = possessive.group() if possessive else ""
            letters = latin_letters(written.removesuffix(ending))
            if len(letters) >= _LEAST_LETTERS - 1:
                yield _Span(first.start(), last.end(), ending, letters, sound_of(letters))


def latin_letters(text: str) -> str:
    """The Latin letters and the digits of a text, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in plain if character.isascii() and character.isalnum())


@functools.lru_cache(maxsize=8192)
def sound_of(letters: str) -> str:
    """The Metaphone key: the consonants of an English pronunciation. Blanks between words do not change it."""
    import jellyfish  # as above

    key: str = jellyfish.metaphone(letters)
    return key.replace(" ", "")
