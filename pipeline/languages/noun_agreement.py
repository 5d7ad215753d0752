"""Articles and the like before a noun that has taken the place of another, and the number of nouns. Pure."""

from __future__ import annotations

import re
from itertools import takewhile

from .rules import rules
from .rules.record import Rules


def with_noun(before: list[str], noun: str, after: str, language: str) -> tuple[list[str], str]:
    """The words before a noun of a language, and the text after it, as they are with this noun. Others stay as they are."""
    known = rules(language).agreeing
    return (list(before), after) if known is None else known(before, noun, after)


def is_before_noun(word: str, language: str) -> bool:
    """Whether a word is an article, a possessive or the like."""
    return word.strip().lower() in rules(language).before_nouns


def numbered(forms: tuple[str, ...], word: str, source: str, target: str) -> tuple[str, ...]:
    """The translations of a term, those in the number of its word in the source first."""
    own, other = rules(source), rules(target)
    if own.singular is None or other.singular is None or forms[0][:1].isupper():
        return forms
    many = _is_plural(word, own) and word[-2:-1] not in "'’"
    return tuple(sorted(forms, key=lambda form: _is_plural(form, other) != many))


def plural(noun: str, language: str) -> str:
    """The plural of a noun of one or more words; the noun itself if it is one, or a name, or if the language's are unknown.

    Where the head comes first, words after it agree ("partes interessadas") up to a preposition ("listas de pendências").
    """
    known, words = rules(language), noun.split(" ")
    if not known.plurals or not noun.islower() or _is_plural(noun, known):
        return noun
    agreeing = takewhile(lambda at: words[at][-1] in "aol" and words[at] not in "da do a o", range(1, len(words)))
    for at in (0, *agreeing) if known.head_first else (-1,):
        one, many = next(pair for pair in known.plurals if words[at].endswith(pair[0]))
        words[at] = words[at][: len(words[at]) - len(one)] + many
    return " ".join(words)


def _is_plural(noun: str, known: Rules) -> bool:
    head = re.split(r"[\s-]", noun)[0] if known.head_first else noun
    return head.endswith("s") and not (known.singular and known.singular.search(head))
