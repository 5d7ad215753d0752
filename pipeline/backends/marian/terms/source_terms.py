"""Terms of a glossary in one part of a source sentence, and their translations as target tokens. Pure.

A part is what the model translates at once; its source tokens are counted from 0, the target code included.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....glossary import Glossary, Match, Term
from ....languages import language_tag, numbered, spaced
from ..decode.tokenizer import CHARACTERS, SPACE, MarianTokenizer
from .literals import Literal

# Spellings that are kept for each language.
_SPELLINGS = 4096


@dataclass(frozen=True)
class SourceTerm:
    """A term in a part."""

    name: str  # as it is spoken
    tokens: tuple[int, ...]  # the source tokens that have a character of it
    inside: tuple[int, ...]  # the source tokens that have no character of anything else
    targets: tuple[str, ...]  # accepted translations; the preferred one first
    exact_case: bool = False
    literal: bool = False  # a number or an address, and in no glossary; see ``pipeline.backends.marian.terms.literals``
    refused: tuple[str, ...] = ()  # wrong translations of a literal though an accepted one is in them
    like: re.Pattern[str] | None = None  # what a model may write instead of a literal
    optional: bool = False  # a literal that is only written where the translation has what is like it

    def found_in(self, text: str) -> list[tuple[int, int]]:
        """Where accepted translations are in a target text. That of a literal is no part of a longer number or address."""
        matches = _accepted(self.targets, self.refused, self.exact_case).found_in(text)
        spans = [(match.start, match.end) for match in matches if match.term.target is None]
        return [span for span in spans if not (self.literal and _goes_on(text, *span))]

    def refuses(self, text: str) -> bool:
        """Whether a translation that is refused begins with ``text``."""
        return any(self._folded(form).startswith(self._folded(text)) for form in self.refused)

    def spells(self, text: str) -> bool | None:
        """Whether ``text`` has an accepted translation; None if it is only the beginning of one."""
        if self.found_in(text):
            return True
        begun = self._folded(text)
        return None if any(self._folded(target).startswith(begun) for target in self.targets) else False

    def begun_by(self, text: str) -> int:
        """How many characters at the end of ``text`` begin the preferred translation, from a word boundary on."""
        wanted, end = self._folded(self.targets[0]), self._folded(text)
        for length in range(min(len(wanted) - 1, len(end)), 0, -1):
            if end.endswith(wanted[:length]) and not glued(text[: len(text) - length], text[len(text) - length :]):
                return length
        return 0

    def is_begun_by(self, text: str) -> bool:
        """Whether ``text`` ends with the beginning of a translation, accepted or refused, or with a part of its last number."""
        end = self._folded(text).rstrip()
        return end[-1:].isdigit() or any(
            end.endswith(form[:length]) and not glued(end[:-length], form)
            for form in map(self._folded, (*self.targets, *self.refused))
            for length in range(1, len(form))
            if not form[length - 1].isspace()
        )

    def _folded(self, text: str) -> str:
        # Only characters whose lower case is as long, so that lengths are those of the text.
        return text if self.exact_case else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@functools.lru_cache(maxsize=2048)
def _accepted(targets: tuple[str, ...], refused: tuple[str, ...], exact_case: bool) -> Glossary:
    """A glossary of the accepted translations, and one of the refused ones, which has a target."""
    terms = [Term(targets[0], None, variants=targets[1:], exact_case=exact_case)]
    return Glossary((*terms, *(Term(form, "") for form in refused)))


_LONGER_BEFORE = re.compile(r"(?:\d[.,:/]|[@/]|[^\W\d]\.)$")
_LONGER_AFTER = re.compile(r"[.,:/]\d|@|\.[^\W\d_]")


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether a number or an address goes on before or after a place in it: R$ is no $."""
    other = text[start] == "$" and text[start - 1 : start] == "R"
    before = _LONGER_BEFORE.search(text, max(0, start - 2), start)
    return other or before is not None or _LONGER_AFTER.match(text, end) is not None


def terms_in(
    text: str,
    pieces: Sequence[str],
    matches: Sequence[Match],
    written: Callable[[str], str] = str,
    *,
    first: int = 0,
    languages: tuple[str, str] = ("", ""),
) -> tuple[SourceTerm, ...]:
    """The terms that match in the text of a part, in order.

    ``pieces``: the source tokens of ``text``; the number of the first one is ``first``. ``written``: rewrites a translation
    in the script that the model writes. ``languages``: of the source and the target, for the number of terms. If the pieces cannot be
    matched with the text, the terms have no tokens.
    """
    spans = piece_spans(text, pieces) or []
    terms = []
    for match in matches:
        places = [(number, *span) for number, span in enumerate(spans, first)]
        touching = [number for number, start, end in places if start < match.end and end > match.start]
        inside = [number for number, start, end in places if match.start <= start < end <= match.end]
        # A term that is kept is kept as it is spelled in the text, with capital letters as in the glossary.
        targets = tuple(map(str if match.term.target is None else written, match.term.targets))
        term = SourceTerm(match.term.source, tuple(touching), tuple(inside), targets, match.term.exact_case)
        if isinstance(match, Literal):
            refused = tuple(map(written, match.refused))
            terms.append(replace(term, literal=True, refused=refused, like=match.like, optional=match.optional))
        else:
            terms.append(replace(term, targets=numbered(targets, text[match.start : match.end], *languages)))
    return tuple(terms)


def piece_spans(text: str, pieces: Sequence[str]) -> list[tuple[int, int]] | None:
    """The range of characters of ``text`` that each piece stands for; empty for pieces without one, such as spaces.

    None if the pieces are not those of the text: if the tokenizer normalises it otherwise than by NFKC.
    """
    places = [place for place, character in enumerate(text) for _ in _normal(character)]
    characters = "".join(map(_normal, text))
    spans, done = [], 0
    for piece in pieces:
        letters = _normal(piece.replace(SPACE, ""))
        end = done + len(letters)
        if end > len(places) or letters != characters[done:end]:
            return None
        spans.append((places[done], places[end - 1] + 1) if letters else (0, 0))
        done = end
    return spans if done == len(places) else None


def _normal(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def glued(before: str, after: str) -> bool:
    """Whether two texts, put together, make one word of their last and first words."""
    return bool(before and after) and _in_word(before[-1]) and _in_word(after[0])


def _in_word(character: str) -> bool:
    """Whether it is a letter or digit of a script that separates words with spaces."""
    return character.isalnum() and unicodedata.east_asian_width(character) not in "WF"


class Speller:
    """Writes text in target tokens. Thread-safe."""

    def __init__(self, tokenizer: MarianTokenizer, language: str, can_write: Callable[[int], bool]) -> None:
        """``can_write`` tells whether the decoder can produce a token."""
        self._tokenizer, self._spaced, self._known = tokenizer, spaced(language), can_write
        self.language = language_tag(language).language
        self._spelled = functools.lru_cache(maxsize=_SPELLINGS)(self._spell)
        self._copied = functools.lru_cache(maxsize=_SPELLINGS)(self._copy)

    def text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)

    def spell(self, text: str, before: str = "") -> tuple[int, ...] | None:
        """The tokens of ``text`` after a text that ends with ``before``; None if the model cannot write it.

        A space is written before it where the language separates words with spaces, but not after an opening mark; and
        between two words of letters that need one.
        """
        return self._spelled(text, self._apart(text, before))

    def copy(self, text: str, before: str = "") -> tuple[int, ...]:
        """The tokens of ``text``, see ``spell``; a character that the model cannot write is a token of its own."""
        apart = self._apart(text, before)
        return self._spelled(text, apart) or self._copied(text, apart)

    def _apart(self, text: str, before: str) -> bool:
        return not before or glued(before, text) or (self._spaced and not _opens(before[-1]))

    def _spell(self, text: str, apart: bool) -> tuple[int, ...] | None:
        for ids in self._tokenizer.target_spellings(text, apart=apart):
            if all(map(self._known, ids)) and self._tokenizer.decode(ids) == text:
                return ids
        return None

    def _copy(self, text: str, apart: bool) -> tuple[int, ...]:
        ids: list[int] = []
        for piece in re.findall(r"\w+|\W", text):
            written = self._spell(piece, apart)
            ids += written or (CHARACTERS + ord(character) for character in " " * apart + piece)
            apart = False
        return tuple(ids)

    def begins_word(self, token: int) -> bool:
        """Whether a word may begin with a token, whatever was before it."""
        return not self._spaced or self._tokenizer.target_piece(token)[:1] == SPACE

    def piece(self, token: int) -> str:
        """The text of a token, with a space where it begins with one."""
        return self._tokenizer.target_piece(token).replace(SPACE, " ")


def _opens(character: str) -> bool:
    """Whether the next word follows a mark without a space."""
    return unicodedata.category(character) in ("Ps", "Pi", "Pd") or character in "/'\""


def kept(terms: Sequence[SourceTerm], text: str) -> list[bool]:
    """Whether each term has an accepted translation of its own in ``text``."""
    unused: dict[tuple[str, ...], int] = {}
    are_kept = []
    for term in terms:
        forms = tuple(sorted(term.targets))  # also of the other number
        if forms not in unused:
            unused[forms] = len(term.found_in(text))
        unused[forms] -= 1
        are_kept.append(unused[forms] >= 0)
    return are_kept
