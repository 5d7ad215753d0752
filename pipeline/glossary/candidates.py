"""Names and rare words of a text that a recogniser may mishear: candidates for a glossary, which a person chooses from. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..languages.rules import rules

MOST = 60
"""The most candidates that a text gives."""
_WORD = re.compile(r"[^\W\d_](?:[\w'’.&-]*\w)?")
_TITLE = re.compile(r"《([^《》\n]{2,40})》")
_ENDS = re.compile(r"[.!?:;•…\n。！？：；|\t]")
# Between two capitals they are part of a name.
_JOINING = frozenset(("of", "de", "da", "do", "dos", "das", "di", "du", "la", "le", "van", "von", "der", "den"))
_LONGEST_NAME = 5  # words
# Pieces of the recogniser's vocabulary from which on a word is rare.
_RARE = 4
_LEAST = 2  # letters
# Lines that say who may use a document: nobody says their names.
_LEGAL = re.compile(
    r"©|\(c\) ?\d{4}|\bcopyright\b|all rights reserved|creative commons|\bCC[ -]BY\b|\blicen[cs]ed? (?:under|by|to)\b"
    r"|\b(?:public|apache|MIT|BSD) licen[cs]e|todos os direitos reservados|alle rechte vorbehalten|版权所有|版權所有",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A term, and how often it is in the text."""

    term: str
    count: int


@dataclass(frozen=True)
class _Word:
    text: str
    first: bool
    """Whether the word begins a sentence, where any word has a capital."""
    joined: bool
    """Whether only a blank is between it and the word before."""

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def sure(self) -> bool:
        """Whether its form alone says that it is a name: NATO, GPT-4, iPhone."""
        return sum(c.isupper() or c.isdigit() for c in self.text[1:]) > 0 and len(self.text) >= _LEAST


def term_candidates(
    text: str, language: str, pieces: Callable[[str], int] | None = None, most: int = MOST
) -> list[Candidate]:
    """The terms of a text, those that are likely to be misheard and often in it first.

    Names are found by their capitals, and by how they are written; rare words if ``pieces`` says into how many pieces the
    recogniser's vocabulary splits a word. Of Chinese, Japanese and the like, only Latin letters and titles in 《》.
    """
    lines = [line for line in text.splitlines() if not _LEGAL.search(line)]
    shouted = [line for line in lines if line.isupper()]
    words = list(_words("\n".join(line for line in lines if not line.isupper())))
    small = Counter(word.text for word in words if not word.capital)
    inside = {word.text for word in words if word.capital and not word.first}
    inside |= {word.text for word in words if word.sure}
    nouns = rules(language).capital_nouns
    counts: Counter[str] = Counter()

    def rare(word: str) -> bool:
        return pieces is not None and len(word) > _RARE and pieces(word) >= _RARE

    for name in _names(words):
        if name[0].first and len(name) > 1 and small[name[0].text.lower()]:
            name = name[1:]
        if len(name) > 1:
            counts[" ".join(word.text for word in name)] += 1
            continue
        (word,) = name
        is_common = small[word.text.lower()] > 0 or word.text not in inside
        if word.sure or rare(word.text) or not (is_common or nouns):
            counts[word.text] += 1
    counts.update({word: count for word, count in small.items() if count > 1 and rare(word)})
    counts.update(_TITLE.findall("\n".join(lines)))
    for line in shouted:  # headlines say how often a name is there, and not that it is one
        for term in {word.text.title() for word in _words(line)} & counts.keys():
            counts[term] += 1

    def weight(term: str) -> int:
        return counts[term] * (2 if " " in term or any(c.isupper() for c in term[1:]) else 1)

    chosen = [term for term in sorted(counts, key=weight, reverse=True) if len(term) >= _LEAST and len(term) <= 100]
    return [Candidate(term, counts[term]) for term in chosen[:most]]


def _words(text: str) -> Iterator[_Word]:
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        yield _Word(match.group(), not end or _ENDS.search(between) is not None, between == " ")
        end = match.end()


def _names(words: list[_Word]) -> Iterator[list[_Word]]:
    """Runs of words with capitals, and the small words that join them."""
    begin = 0
    while begin < len(words):
        if not (words[begin].capital or words[begin].sure):
            begin += 1
            continue
        end = begin + 1
        while end - begin < _LONGEST_NAME:
            joining = int(end < len(words) and words[end].text in _JOINING and words[end].joined)
            following = end + joining
            if following >= len(words) or not (words[following].capital and words[following].joined):
                break
            end = following + 1
        yield words[begin:end]
        begin = end
