"""A translation request, what the NMT stage needs of a translator, and which terms of a glossary a translator cannot write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ...glossary import Glossary, Term
from ...languages import LanguageConfig
from ..events import SourceSentence, TargetText, Translation

if TYPE_CHECKING:
    from .draft_tokens import DraftTokens

log = logging.getLogger(__name__)

_MOST_NAMED = 20  # terms in one message


class Decoding(Protocol):
    """A search in progress."""

    def terminate(self) -> None:
        """Stop it, from any thread, within a step. It raises on its own."""
        ...


OnStart = Callable[[Decoding], None]


@dataclass(frozen=True)
class TranslationRequest:
    """A sentence to translate, and how."""

    sentence: SourceSentence
    target: str | None = None
    """The language to translate into; None: the only one of the translator."""
    on_start: OnStart | None = None
    """A translator with a search of this package calls it with each ``Decoding`` before its first run, so that it can be stopped."""
    beams: int | None = None
    """Fewer hypotheses than the translator is configured to keep."""
    draft: bool = False
    """Whether the sentence is in progress. It may be ignored."""
    glossary: Glossary | None = None
    """Terms of the source language and their translations; None if there are none, or for no ``TermTranslator``."""
    drafted: DraftTokens | None = None
    """The drafts before; only for a translator that ``attends``, see ``MarianModel.stream``."""
    before: Sequence[tuple[str, str]] = ()
    """The last sentences in the same language and their translations, in order; only given with a finished sentence."""
    remote: bool = False
    """Whether a server may be asked."""


class TextTranslator(Protocol):
    """The interface of a translator that the stage needs; see ``MarianModel``.

    Its calls come one after another, on a thread of the stage's own, so they may block. One that knows glossaries is a
    ``TermTranslator``; one that tells what it translates has ``attends``, as ``MarianModel``. A wrapper has what it wraps.
    """

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """Translate a sentence: any number of ``TargetText``s, the last one ``complete``, then one ``Translation``.

        Each ``TargetText`` has all of the text so far, the last one that of the ``Translation``. All have the number and ``heard_s``
        of the sentence and the language that is asked for.

        Raises:
            PipelineError: the run ends, or its translation into this language.
            Exception: any other costs this sentence; see ``Translation.error``. Three in a row end the run.
        """
        ...


@runtime_checkable
class TermTranslator(TextTranslator, Protocol):
    """A translator that knows glossaries."""

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        """The terms whose translation it cannot write; they are never kept."""
        ...


@runtime_checkable
class MultiSourceTranslator(TextTranslator, Protocol):
    """Translates from several languages, with a translator for each."""

    def loaded(self, language: str) -> TextTranslator:
        """The translator from a language. Blocks. Raises PipelineError: it cannot be had."""
        ...


def passes(model: TextTranslator) -> bool:
    """Whether the model gets sentences in the target language too, which stay as they are; see ``ByLanguage``."""
    return bool(getattr(model, "passes", False))


def unspellable(
    glossary: Glossary, languages: LanguageConfig, translations: Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    """The terms that are never kept, because a model's vocabulary cannot write their translation.

    Target → terms as they are spoken; targets without such terms are left out, and so are translators that take no glossary.
    ``translations``: the translator into each target. Takes 20 ms for 1,000 terms and one target.
    """
    by_target = {}
    for target, model in translations.items():
        if isinstance(model, TermTranslator):
            terms = model.unspellable(glossary.between(languages.pair(target)[0], target), target)
            if terms:
                by_target[target] = tuple(term.source for term in terms)
    return by_target


def warn_unspellable(glossary: Glossary, languages: LanguageConfig, translations: Mapping[str, object]) -> None:
    """Log a warning for each target that names the terms."""
    for target, terms in unspellable(glossary, languages, translations).items():
        more = len(terms) - _MOST_NAMED
        names = ", ".join(terms[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        log.warning(
            "the model that translates into %s cannot write the translation of %d of the glossary's terms: %s",
            target,
            len(terms),
            names,
        )
