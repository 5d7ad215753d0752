"""Terms of a glossary, and where a text has them. Pure."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..languages import plural, same_language

# English plural and possessive endings of a term that ends in a Latin letter, with straight and curly apostrophe. The
# apostrophe after a plural is not part of it: it may be a quotation mark.
_ENGLISH_ENDINGS = "(?:['\u2019]s|s)?"
_ENGLISH_ENDINGS_AFTER_SIBILANT = "(?:['\u2019]s|es)?"
_SIBILANT, _CONSONANT_Y = re.compile("(s|x|z|ch|sh)$", re.IGNORECASE), re.compile("[^aeiou]y$", re.IGNORECASE)
# Blocks of scripts that do not separate words with spaces: Thai, Lao, Myanmar, Khmer, CJK marks, kana, ideographs, and
# their half and full widths (Unicode 16, Blocks.txt).
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x312F), (0x3190, 0x9FFF), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """A term of the spoken language and how it is translated."""

    source: str
    """The term as it is written in a transcript."""
    target: str | None
    """The term's translation; None keeps the spelling of ``source``."""
    variants: tuple[str, ...] = ()
    """Other forms in the spoken language, such as inflections and abbreviations."""
    target_variants: tuple[str, ...] = ()
    """Other accepted translations, such as inflected forms."""
    exact_case: bool = False
    """Whether capital and small letters must be as given."""

    @property
    def sources(self) -> tuple[str, ...]:
        """All forms in the spoken language; ``source`` first."""
        return (self.source, *self.variants)

    @property
    def targets(self) -> tuple[str, ...]:
        """All accepted translations; the preferred one first."""
        return (self.source if self.target is None else self.target, *self.target_variants)


@dataclass(frozen=True)
class Match:
    """A term in a text: ``text[start:end]`` is one of its forms, with its plural or possessive ending."""

    start: int
    end: int
    term: Term


@dataclass(frozen=True)
class Glossary:
    """Terms in the order of their file."""

    terms: tuple[Term, ...] = ()
    languages: tuple[str, str] | None = None
    """The languages of sources and targets; None: those of any run."""

    def between(self, source: str, target: str) -> Glossary:
        """The terms for translating from ``source`` into ``target``: reversed if the glossary is for the other direction.

        If it is not for one of these languages, the terms that keep their spelling and, in ``source``, no others remain. Nouns
        get their plurals as variants, where those of a language are known.
        """
        spoken = self.spoken(source)
        terms = (spoken if self._concerns(target) else spoken._kept).terms
        return replace(spoken, terms=tuple(_with_plurals(term, source, target) for term in terms))

    def is_for(self, source: str, target: str) -> bool:
        """Whether all terms are used for translating from ``source`` into ``target``."""
        return self._concerns(source) and self._concerns(target)

    def _concerns(self, language: str) -> bool:
        return self.languages is None or any(same_language(language, listed) for listed in self.languages)

    def spoken(self, language: str) -> Glossary:
        """The terms as they are said in ``language``."""
        if self.languages is None or same_language(language, self.languages[0]):
            return self
        if same_language(language, self.languages[1]):
            return self._reversed
        return self._kept

    @functools.cached_property
    def _kept(self) -> Glossary:
        return replace(self, terms=tuple(term for term in self.terms if term.target is None))

    @functools.cached_property
    def _reversed(self) -> Glossary:
        """The glossary for the other direction. Of several terms with one translation, the first is its translation."""
        assert self.languages is not None
        terms: dict[str, Term] = {}
        for term in self.terms:
            reversed_term = term
            if term.target is not None:
                reversed_term = Term(term.target, term.source, term.target_variants, term.variants, term.exact_case)
            terms.setdefault(reversed_term.source, reversed_term)
        return Glossary(tuple(terms.values()), self.languages[::-1])

    def found_in(self, text: str) -> tuple[Match, ...]:
        """The terms in ``text``, in order, without overlaps: of two that overlap, the longer one, else the earlier one.

        A form is found at word boundaries, or anywhere if the characters there belong to a script without spaces. Any white
        space matches that of a form. An English plural or possessive of the form is part of the match.
        """
        matches: list[Match] = []
        for match in sorted(self._matches(text), key=lambda match: (match.start - match.end, match.start)):
            if all(match.end <= other.start or other.end <= match.start for other in matches):
                matches.append(match)
        return tuple(sorted(matches, key=lambda match: match.start))

    def _matches(self, text: str) -> Iterator[Match]:
        for start, character in enumerate(text):
            forms = self._forms.get(character.casefold()[:1])
            if forms is None or not _boundary(text, start):
                continue
            for pattern, term in forms:
                match = pattern.match(text, start)
                if match and _boundary(text, match.end()):
                    yield Match(start, match.end(), term)

    @functools.cached_property
    def _forms(self) -> dict[str, list[tuple[re.Pattern[str], Term]]]:
        """The patterns of all forms by their first character, case-folded."""
        forms: dict[str, list[tuple[re.Pattern[str], Term]]] = {}
        for term in self.terms:
            for form in term.sources:
                pattern = _pattern(form, exact_case=term.exact_case)
                forms.setdefault(form.split()[0][0].casefold()[:1], []).append((pattern, term))
        return forms


def _with_plurals(term: Term, source: str, target: str) -> Term:
    if term.target is None:
        return term
    plurals = ((form, plural(form, source)) for form in term.sources)
    said = dict.fromkeys([*term.sources, *(many for form, many in plurals if not _is_ending(form, many))])
    written = dict.fromkeys([*term.targets, *(plural(form, target) for form in term.targets)])
    return replace(term, variants=tuple(said)[1:], target_variants=tuple(written)[1:])


def _is_ending(form: str, many: str) -> bool:
    """Whether the pattern of a form has a plural of it already, as its English ending."""
    ending = form + ("es" if _SIBILANT.search(form) else "s")
    return many in (form, ending) or (_CONSONANT_Y.search(form) is not None and many == form[:-1] + "ies")


def _pattern(form: str, *, exact_case: bool) -> re.Pattern[str]:
    """The pattern of a form and its English endings."""
    words = form.split()
    literal, last = r"\s+".join(map(re.escape, words)), words[-1]
    if not (last[-1].isalpha() and "LATIN" in unicodedata.name(last[-1], "")):
        pattern = literal
    elif _SIBILANT.search(last):
        pattern = literal + _ENGLISH_ENDINGS_AFTER_SIBILANT
    elif _CONSONANT_Y.search(last):
        pattern = f"(?:{literal}{_ENGLISH_ENDINGS}|{literal[:-1]}ies)"
    else:
        pattern = literal + _ENGLISH_ENDINGS
    return re.compile(pattern, re.NOFLAG if exact_case else re.IGNORECASE)


def _boundary(text: str, at: int) -> bool:
    """Whether a word of a script with spaces does not go on over the position."""
    return not (0 < at < len(text) and in_word(text[at - 1]) and in_word(text[at]))


@functools.lru_cache(maxsize=8192)
def in_word(character: str) -> bool:
    """Whether a character is a letter, digit or combining mark of a script that separates words with spaces."""
    if not (character.isalnum() or unicodedata.category(character).startswith("M")):
        return False
    return not any(first <= ord(character) <= last for first, last in _UNSPACED)
