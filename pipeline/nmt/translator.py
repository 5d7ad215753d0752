"""What the NMT stage needs of a translator, and of one that knows glossaries; see ``MarianModel``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from pipeline.events import Delta, SourceSentence, Translation
from pipeline.glossary.terms import Glossary, Term
from pipeline.nmt.drafts import Draft
from pipeline.nmt.generation import OnStart


class TextTranslator(Protocol):
    """The interface of a translator that the stage needs; see ``MarianModel``.

    ``draft`` is only passed if the sentence is in progress. One that knows glossaries is a ``TermTranslator``, and one that can
    commit words an ``AppendingTranslator`` too. A wrapper has these interfaces if what it wraps has them.
    """

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: Draft | None = None,
    ) -> Iterator[Delta | Translation]: ...


@runtime_checkable
class TermTranslator(TextTranslator, Protocol):
    """A translator that knows glossaries. Its other methods take a ``glossary`` too, which is only passed if it has terms."""

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        """The terms whose translation it cannot write; they are never kept."""
        ...
