"""Articles and the like before a noun that has taken the place of another, and the number of nouns. Pure."""

from __future__ import annotations

import re
from itertools import takewhile

from .rules import rules
from .rules.record import Rules


def with_noun(before: list[str], noun: str, after: str, language: str) -> tuple[list[str], str]:
    """The words before a noun of a language, and the text after it, as they are with this noun. Others stay as they are."""
    agreeing = rules(language).agreeing
    return (list(before), after) if agreeing is None else agreeing(before, noun, after)


def is_before_noun(word: str, language: str) -> bool:
    """Whether a word is an article, a possessive or the like."""
    return word.strip().lower() in rules(language).before_nouns


def numbered(forms: tuple[str, ...], word: str, source: str, target: str) -> tuple[str, ...]:
    """The translations of a term, those in the number of its word in the source first."""
    source_rules, target_rules = rules(source), rules(target)
    if source_rules.singular is None or target_rules.singular is None or forms[0][:1].isupper():
        return forms
    many = _is_plural(word, source_rules) and word[-2:-1] not in "'’"
    return tuple(sorted(forms, key=lambda form: _is_plural(form, target_rules) != many))


def plural(noun: str, language: str) -> str:
    """The plural of a noun of one or more words; the noun itself if it is one, or a name, or if the language's are unknown.

    Where the head comes first, words after it agree ("partes interessadas") up to a preposition ("listas de pendências").
    """
    of_language, words = rules(language), noun.split(" ")
    if not of_language.plurals or not noun.islower() or _is_plural(noun, of_language):
        return noun
    agreeing = takewhile(lambda i: words[i][-1] in "aol" and words[i] not in "da do a o", range(1, len(words)))
    for i in (0, *agreeing) if of_language.head_first else (-1,):
        singular, plural_end = next(pair for pair in of_language.plurals if words[i].endswith(pair[0]))
        words[i] = words[i][: len(words[i]) - len(singular)] + plural_end
    return " ".join(words)


def _is_plural(noun: str, of_language: Rules) -> bool:
    head = re.split(r"[\s-]", noun)[0] if of_language.head_first else noun
    return head.endswith("s") and not (of_language.singular and of_language.singular.search(head))
