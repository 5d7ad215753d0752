"""The record that each language fills in. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .clock import Clock, SpokenTimes

Affixes = Sequence[tuple[str, str]]
"""The texts before and after a number, such as a currency's."""


@dataclass(frozen=True)
class FullStops:
    """How to read a full stop: words of a language by kind, between blanks.

    They are without their last full stop, abbreviations of several words without blanks ("z.b" is "z. B." and "z.B."). A
    lower-case word matches in any case ("dr": dr. Dr. DR.); one with a capital matches only as written ("M"). The lists are
    chosen by hand, in the manner of CLDR's sentence-break suppressions.
    """

    before: str = ""
    """Abbreviations that never end a sentence (titles, "e.g.")."""
    number: str = ""
    """Abbreviations that do not end a sentence before a number ("p. 5")."""
    either: str = ""
    """Abbreviations that end a sentence before a ``starter`` ("the U.S. He left", but "the U.S. Army")."""
    list: str = ""
    """Abbreviations that end a sentence before any capital letter ("etc. Paul left")."""
    starter: str = ""
    """Words that start sentences, in the case they have there."""
    label: str = ""
    """Nouns before a single letter that is not an initial ("plan B. Smith")."""
    determiner: str = ""
    """Words before an ordinal ("die 2. Liga")."""
    counted: str = ""
    """Capitalised words that continue the sentence after an ordinal or a ``list`` word ("2. Liga", "8 a.m. Monday")."""
    suffix: str = ""
    """Endings of file and host names (ASP.NET, README.TXT)."""
    word: str = ""
    """No abbreviations, although sentencex 1.0 treats them as such: they end a sentence before a capital letter ("Call me. Then").

    Found by running sentencex 1.0.32 on the frequent words of each language (man pages, fortunes).
    """


class Retry(NamedTuple):
    """What is translated otherwise where its translation has lost something."""

    source: re.Pattern[str]  # a sentence, from its beginning
    lost: re.Pattern[str] | None  # a translation that the other is better than; None: ``Rules.stated``
    before: str  # stands before the sentence: its first word, with it in small letters, or a sentence
    given: str = ""  # the translation of ``before``, if that is a sentence


@dataclass(frozen=True)
class Rules:
    """What is known of a language. A field that is left out changes nothing, except where it says so."""

    # Short texts.
    neighbour: str = ""
    """"I know that.": the sentence that a short one is translated after; see ``pipeline.backends.marian.model_text``."""
    neighbour_margin: float = 0.0
    """How much likelier a translation after the neighbour must be than one without it; see ``SourcePart.margin``."""
    goes_on: re.Pattern[str] = re.compile("(?!)")
    """Short sentences that the one before them helps to understand."""
    phrases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Target language → short texts that are not translated word by word, as ``letters``, and their translations."""
    retries: Mapping[str, Sequence[Retry]] = field(default_factory=dict)
    """By target language; the first that fits."""
    asks: re.Pattern[str] | None = None
    """Where a question has its form; none: a mark is enough."""
    stated: re.Pattern[str] | None = None
    """The translation of a question, from its beginning, that is a statement or is not whole."""

    # Speech as it would be in print; see ``pipeline.backends.marian.preparation``.
    fillers: re.Pattern[str] = re.compile("(?!)")
    """Sounds that mean nothing, with the comma after them."""
    stutter: re.Pattern[str] = re.compile("(?!)()")
    """Words that are said twice only by mistake."""
    corrections: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = ()
    """Patterns of what is written otherwise in print, and their replacements, applied one after the other."""
    question: re.Pattern[str] | None = None
    """The beginning of a question. Without it, a sentence gets no mark at its end."""
    spoken_times: SpokenTimes | None = None

    # Letters.
    capitals: str = ""
    """The word that always has a capital: I."""
    capital_nouns: bool = False
    """Whether every noun has a capital."""
    dotted_i: bool = False
    """Whether the capitals of i and ı are İ and I."""
    encoding: str = "cp1252"
    """The probable encoding of text that is not Unicode."""

    # Numbers.
    digits: str = ""
    """Separators of thousands and decimals of the numbers that are written in digits for words; none: they stay words."""
    zero: Sequence[str] = ()
    """Other words for zero after a number."""
    years_in_halves: bool = False
    """Whether years are said as two numbers: nineteen eighty four."""
    separators: str = ""
    """Separators of thousands and decimals in print (Unicode CLDR 46, number symbols); none: unknown, or a blank is one."""
    own_digits: bool = False
    """Whether numbers may be written with other digits than 0 to 9 (Unicode CLDR 46, native numbering systems)."""
    writes_digits: bool = False
    """Whether numbers of two digits, and those with a scale word, are written in digits."""
    grouped: bool = True
    """Whether numbers usually have separators of thousands."""
    scales: Sequence[tuple[str, int]] = ()
    """Words after a number for a power of ten, and its exponent, the greatest first."""
    minus_words: Sequence[str] = ()
    """Words for a minus sign, with the blank after them."""
    currencies: Mapping[str, Affixes] = field(default_factory=dict)
    """Currency sign → what stands before and after the number, the preferred way first."""
    ordinal: Callable[[int], str] | None = None
    """Function from the number to the text after the digits of an ordinal number."""
    clock: Clock | None = None
    """Times of day."""

    # Ends of sentences; see ``pipeline.core.sentences.boundaries``.
    full_stops: FullStops = FullStops()
    dotted_ordinals: bool = False
    """Whether an ordinal number is digits and a full stop."""
    abbreviation: re.Pattern[str] | None = None
    """The end of an abbreviation, where a full stop never ends a sentence."""
    particles: re.Pattern[str] | None = None
    """Particles that mark the text before them as a quotation, and never begin a sentence."""
    speaking: re.Pattern[str] | None = None
    """Subject and verb of speaking after a quotation. A phrase that introduces the next one (他说：“) does not match."""

    # Nouns.
    agreeing: Callable[[list[str], str, str], tuple[list[str], str]] | None = None
    """The words before a noun, and the text after it, as they are with this noun."""
    before_nouns: frozenset[str] = frozenset()
    """Articles, possessives and the like, in small letters."""
    plurals: Sequence[tuple[str, str]] = ()
    """Endings of nouns in the singular and in the plural; the first that fits."""
    singular: re.Pattern[str] | None = None
    """Singular nouns that end in s, as plurals do. Without it, the number of a noun is unknown."""
    head_first: bool = False
    """Whether the first word of a noun of several shows its number."""


def fillers(sounds: str) -> re.Pattern[str]:
    """``sounds``: a pattern. Those with a hyphen (uh-huh) are left out only between commas, since they may be an answer."""
    answer = rf"(?:{sounds}|mm+)(?:-(?:{sounds}|huh))+"
    return re.compile(
        rf"(?<![\w\"'“‘-])(?:{sounds})(?![\w-]),? *|^{answer}, *|, *{answer}(?=,|[.!?…]*$)", re.IGNORECASE
    )


def stutter(words: str) -> re.Pattern[str]:
    """``words``: a pattern of those that are said twice only by mistake."""
    return re.compile(rf"\b({words})(?:,? \1)+\b", re.IGNORECASE)
