"""Word and character errors, counted on normalised text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

from pipeline.languages import spaced
from pipeline.languages.numbers import english


def units(text: str, language: str) -> list[str]:
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
        return " ".join(english(int(digit)) for digit in digits)
    return english(int(digits)).replace("-", " ")


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Levenshtein distance."""
    distance: int = Levenshtein.distance(reference, hypothesis)
    return distance
