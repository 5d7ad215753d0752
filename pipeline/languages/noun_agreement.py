"""Articles and the like before a noun that has taken the place of another, and the number of nouns. Pure."""

from __future__ import annotations

import re

from .rules import rules
from .rules.record import Rules


def with_noun(before: list[str], noun: str, after: str, language: str) -> tuple[list[str], str]:
    """The words before a noun of a language, and the one after it, as they are with this noun. Others stay as they are."""
    known = rules(language).agreeing
    return (list(before), after) if known is None else known(before, noun, after)


def numbered(forms: tuple[str, ...], word: str, source: str, target: str) -> tuple[str, ...]:
    """The translations of a term, those in the number of its word in the source first."""
    own, other = rules(source), rules(target)
    if own.singular is None or other.singular is None or forms[0][:1].isupper():
        return forms
    plural = word.endswith("s") and not own.singular.search(word)
    return tuple(sorted(forms, key=lambda form: _counted(form, other).endswith("s") != plural))


def _counted(noun: str, known: Rules) -> str:
    """The part of a noun of several words that shows its number."""
    return re.split(r"[\s-]", noun)[0] if known.head_first else noun
