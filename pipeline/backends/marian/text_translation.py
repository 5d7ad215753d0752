"""Translates texts of several sentences, with their markup, the terms of a glossary, and masked words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from ...core import (
    DirectedGlossary,
    Masking,
    OnStart,
    SourceSentence,
    TermTranslator,
    TextTranslator,
    Translation,
    TranslationRequest,
)
from ...errors import PipelineError
from ...glossary import CurrentGlossary
from .forced import word_alignment
from .terms.markup import Fragment, joined_sentences, masked, parts, parts_of_page

Markup = Literal["text", "html", "subtitles"]
_DIVIDED: Mapping[Markup, Callable[[str], list[str | Fragment]]] = {
    "text": parts,
    "html": parts_of_page,
    "subtitles": partial(parts, one_text=True),
}


class TextTranslation:
    """Translates texts from one language into another, sentence by sentence.

    Tags, line breaks, placeholders, mentions and code come back in their places. Each call works in the thread of its
    caller, and the calls of one translator must come one after another.
    """

    def __init__(
        self,
        translator: TextTranslator,
        source: str,
        target: str,
        *,
        glossary: CurrentGlossary | None = None,
        masking: Masking | None = None,
    ) -> None:
        """``glossary``: asked before each text; a translator that knows none ignores it. ``masking``: what is not shown of a translation."""
        self._translator, self._source, self._target = translator, source, target
        knows_terms = glossary is not None and isinstance(translator, TermTranslator)
        self._glossary = DirectedGlossary(glossary, target) if glossary is not None and knows_terms else None
        self._masking = masking or Masking()

    def translate(self, text: str, markup: Markup = "text") -> str:
        """The translation of ``text``.

        Args:
            markup: how lines belong together. "text": each is a text of its own, unless it goes on in small letters.
                "html": a page, whose blocks are texts of their own and whose code stays. "subtitles": each goes on in the
                next, unless its sentence ends or someone else speaks.

        Raises:
            PipelineError: see ``TextTranslator.stream``; or a sentence was not translated.
        """
        *_, translation = self.steps(text, markup)
        assert translation is not None
        return translation

    def steps(self, text: str, markup: Markup = "text", on_start: OnStart | None = None) -> Iterator[str | None]:
        """Yield None after each step of the search, so that the caller can do other work, and the translation at the end.

        ``on_start``: see ``TranslationRequest``.
        """
        terms = self._glossary.now(self._source) if self._glossary is not None else None
        pieces: list[str] = []
        for part in _DIVIDED[markup](text):
            if isinstance(part, str):
                pieces.append(masked(part, self._mask))
                continue
            sentences: list[str] = []
            before: tuple[tuple[str, str], ...] = ()
            for sentence in part.sentences(self._source):
                spoken = SourceSentence(0, self._source, sentence.text)
                for event in self._translator.stream(
                    TranslationRequest(spoken, self._target, on_start, glossary=terms, before=before)
                ):
                    if isinstance(event, Translation):
                        break
                    yield None
                else:
                    raise PipelineError("the translator ended without a translation")
                before = ((sentence.text, event.text),)
                sentences.append(self._written(sentence, event))
            pieces.append(joined_sentences(sentences, self._target))
        yield "".join(pieces)

    def _mask(self, text: str) -> str:
        return self._masking.text(text, self._target)

    def _written(self, sentence: Fragment, translation: Translation) -> str:
        """The translation of a sentence with its marks."""
        if translation.error is not None:
            raise PipelineError(translation.error)
        source, target, aligned = self._source, self._target, None
        if sentence.needs_alignment:
            aligned = word_alignment(self._translator, sentence.text, source, translation.text, target)
        return sentence.written(translation.text, source, target, aligned, self._mask)
