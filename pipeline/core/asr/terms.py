"""The glossary of one stream in recognition: terms to expect in a window, and what was misheard of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...glossary import Glossary, NearMiss, NearMisses, Term
from ..events import Transcript
from ..run.options import GlossaryOptions

if TYPE_CHECKING:
    from ...glossary import CurrentGlossary

# Terms that something in the newest text is a little like come into the prompt too.
_LOOSELY = 0.1
# Near misses of one text that are judged by the audio; each costs a run of the decoder over the text.
_MOST_JUDGED = 4


@dataclass(frozen=True)
class Replacement:
    """A term of the glossary in the place of what was heard: ``text[start:end]``."""

    start: int
    end: int
    heard: str


class HeardTerms:
    """The terms of one stream: which are expected now, and which were heard. Not thread-safe."""

    def __init__(self, glossary: CurrentGlossary, options: GlossaryOptions) -> None:
        self._current, self._options = glossary, options
        self._language = ""
        self._of_file: Glossary | None = None
        self._glossary = Glossary()
        self._near = NearMisses(self._glossary)
        self._lately: list[Term] = []
        """Terms that were said or may have been, the newest first."""

    @property
    def empty(self) -> bool:
        """Whether the glossary has no terms now."""
        return not self._current().terms

    def expected(self, language: str) -> list[str]:
        """The terms to expect in speech in ``language``, as they are written: those said lately, then the first of the file."""
        self._update(language)
        chosen = dict.fromkeys([*self._lately, *self._glossary.terms])
        return [term.source for term in chosen][: self._options.prompt_terms]

    def heard(self, transcript: Transcript) -> None:
        """Note the terms of a transcript as likely to be said again, and those that its words are a little like."""
        self._update(transcript.language)
        said = [match.term for match in self._glossary.found_in(transcript.text)]
        similar = [match.term for match in self._near.found_in(transcript.text, loosely=_LOOSELY)]
        newest = dict.fromkeys([*reversed(said), *similar, *self._lately])
        self._lately = list(newest)[: self._options.prompt_terms]

    def corrected(
        self, text: str, language: str, better: Callable[[str, str, str], bool]
    ) -> tuple[str, tuple[Replacement, ...]]:
        """``text`` with the terms that were misheard in it, and with the capital letters of those that were not.

        ``better``: whether the audio is rather that of the second text than of the first, given the term expected.
        """
        self._update(language)
        text = self._spelled(text)
        taken: list[NearMiss] = []
        for near in self._near.found_in(text)[:_MOST_JUDGED] if self._options.correct else ():
            if any(near.start < other.end and other.start < near.end for other in taken):
                continue
            if better(_written(text, taken)[0], _written(text, [*taken, near])[0], near.term.source):
                taken.append(near)
        return _written(text, taken)

    def _spelled(self, text: str) -> str:
        """``text`` with the capital letters of its terms as the glossary has them; terms without any stay as they are."""
        for match in self._glossary.found_in(text):
            for form in match.term.sources:
                end = match.start + len(form)
                if form.casefold() == text[match.start : end].casefold() and form != form.lower():
                    text = text[: match.start] + form + text[end:]
        return text

    def _update(self, language: str) -> None:
        """Take the glossary as it is now, for the language spoken."""
        glossary = self._current()
        if glossary is self._of_file and language == self._language:
            return
        self._of_file, self._language = glossary, language
        self._glossary = glossary.spoken(language)
        self._near = NearMisses(self._glossary)
        terms = set(self._glossary.terms)
        self._lately = [term for term in self._lately if term in terms]


def _written(text: str, taken: Sequence[NearMiss]) -> tuple[str, tuple[Replacement, ...]]:
    """``text`` with the terms in their places."""
    written, position = "", 0
    replaced: list[Replacement] = []
    for near in sorted(taken, key=lambda each: each.start):
        written += text[position : near.start]
        replaced.append(Replacement(len(written), len(written) + len(near.form), text[near.start : near.end]))
        written, position = written + near.form, near.end
    return written + text[position:], tuple(replaced)
