"""Words with signs that a vocabulary lacks: what the model reads instead, and what takes its place in the translation. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

from ....glossary import Term
from ....languages import CLAUSE_MARKS, CLOSERS, MARKS
from .literals import HOST, Literal

# A word without the marks around it. Currency signs before and after numbers are a part of these.
_WORD = re.compile(
    rf"[(\[\"'“‘«]*(?P<word>[^\s]*?)[{re.escape(MARKS + CLAUSE_MARKS + CLOSERS.replace('}', ''))}]*(?=\s|$)", re.DOTALL
)
_PRICE = re.compile(r"[-−]?[€£¥]\d[\d.,]*|[-−]?\d[\d.,]*[€£¥]?|[€£¥]|R?\$\S+")
# Hosts and files, of which students translate parts.
_ADDRESS = re.compile(HOST, re.ASCII | re.IGNORECASE | re.VERBOSE)
# Students copy such codes, and put them where a noun would be.
_FIRST = 7


def readable(text: str, near: Callable[[str], str], knows: Callable[[str], bool]) -> tuple[str, tuple[Literal, ...]]:
    """A text as a model can read it, and the literals in it that stand for what it cannot read.

    ``near``: writes signs as similar ones that the vocabulary has. ``knows``: whether the vocabulary has all signs of a word.

    A name that is written with similar letters (Walesa) gets its own back where the translation has it. For words of other scripts,
    emoji, and what has another sign (@anna, {name}), a code is read, one for several in a row.
    """
    made, done = "", 0
    literals: list[Literal] = []
    codes = (f"Q{number}" for number in count(_FIRST) if f"Q{number}" not in text)
    for match in _WORD.finditer(text):
        word = match["word"]
        address = _ADDRESS.fullmatch(word)
        if not word or (word.isascii() and knows(word) and not address) or _PRICE.fullmatch(word):
            continue
        form, start, end = near(word), *match.span("word")
        if knows(form) and not address:
            made += near(text[done:start]) + form
            if form[0].isupper() and form != word and not knows(word.lower()):  # not Índia, which is India
                literals.append(_literal(made, form, word, optional=True))
        elif literals and not literals[-1].optional and literals[-1].end == len(made) and not text[done:start].strip():
            # Goes on with what stands before it.
            before = literals.pop()
            literals.append(_literal(made, before.term.source, before.term.targets[0] + text[done:end]))
        else:
            made += near(text[done:start]) + (code := next(codes))
            literals.append(_literal(made, code, word))
        done = end
    return made + near(text[done:]), tuple(literals)


def _literal(text: str, form: str, word: str, *, optional: bool = False) -> Literal:
    """The literal at the end of ``text``."""
    like = re.compile(rf"(?<!\w){re.escape(form)}(?!\w)", re.IGNORECASE)
    return Literal(len(text) - len(form), len(text), Term(form, word), like=like, optional=optional)
