"""Pivot translation: two Marian models in sequence. The first translates a whole sentence before the second starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...core import SourceSentence, TargetText, Translation, TranslationRequest
from ...glossary import Glossary, Match, Term
from .decode.generation import GenerationOptions
from .model import MarianModel
from .search.sentence_text import translated
from .terms.source_terms import SourceTerm, kept


@dataclass(frozen=True)
class CarriedTerms:
    """The glossary terms in a sentence, and what stands for each of them in the first translation."""

    matches: tuple[Match, ...]
    carriers: Mapping[Term, str]

    @property
    def first(self) -> Glossary:
        return Glossary(
            tuple(
                dataclasses.replace(term, target=carrier, target_variants=()) for term, carrier in self.carriers.items()
            )
        )

    @property
    def second(self) -> Glossary:
        return Glossary(
            tuple(
                Term(carrier, term.targets[0], target_variants=term.target_variants, exact_case=term.exact_case)
                for term, carrier in self.carriers.items()
            )
        )

    def missed(self, text: str) -> tuple[str, ...]:
        """The terms that the second translation lacks."""
        terms = [SourceTerm(m.term.source, (), (), m.term.targets, m.term.exact_case) for m in self.matches]
        return tuple(term.name for term, done in zip(terms, kept(terms, text), strict=True) if not done)


class PivotTranslator:
    """Two loaded models: ``first`` translates into the language ``via``, ``second`` from ``via`` into the target.

    The stream is like that of ``MarianModel``, with the tokens of the second model. If the first model writes two
    sentences for one, they are still one translation.
    Probabilities and confidences are those of the second model. Safe to use from several threads at once.
    """

    def __init__(self, first: MarianModel, second: MarianModel, via: str) -> None:
        self.first, self.second, self.via = first, second, via
        self.languages = (first.languages[0], second.languages[1])
        """(source, target) as two-letter codes from the models' files; None if the files do not name one."""

    @property
    def generation(self) -> GenerationOptions:
        """Generation options of the second model."""
        return self.second.generation

    def check_languages(self, source: str, target: str) -> None:
        """Raise UsageError if a model's files name a different language pair."""
        self.first.check_languages(source, self.via)
        self.second.check_languages(self.via, target)

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """Translate a sentence; see ``MarianModel.stream``.

        ``on_start`` receives the states of both models' searches, one after the other. ``beams`` applies to both.
        """
        sentence = request.sentence
        carried = self._carried(sentence.text, request.glossary)
        request = dataclasses.replace(request, before=())  # of the source and the last target
        events = self.first.stream(dataclasses.replace(request, target=self.via, glossary=carried.first))
        first = next(event for event in events if isinstance(event, Translation))
        halfway = dataclasses.replace(sentence, language=self.via, text=first.text, words=())
        for event in self.second.stream(dataclasses.replace(request, sentence=halfway, glossary=carried.second)):
            if isinstance(event, Translation):
                event = dataclasses.replace(
                    event,
                    truncated=event.truncated or first.truncated,
                    searched_again=event.searched_again or first.searched_again,
                    terms=tuple(match.term.source for match in carried.matches),
                    missed_terms=carried.missed(event.text),
                )
            yield event

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        """The terms whose translation the second model's vocabulary cannot write, or the first none that stands for it."""
        second = set(self.second.unspellable(glossary, target))
        return tuple(term for term in glossary.terms if term in second or self._carrier(term) is None)

    def _carried(self, text: str, glossary: Glossary | None) -> CarriedTerms:
        """The terms of a text for each of the two models."""
        matches = () if glossary is None else glossary.found_in(text)
        carriers = {match.term: self._carrier(match.term) for match in matches}
        return CarriedTerms(matches, {term: carrier for term, carrier in carriers.items() if carrier is not None})

    def _carrier(self, term: Term) -> str | None:
        """What stands for a term in the first translation: its translation or, if that is in another script, its source."""
        for text in (term.targets[0], term.source):
            if not self.first.unspellable(Glossary((Term(text, None),)), self.via):
                return text
        return None

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the models name."""
        if source is not None:
            self.first.check_languages(source, self.via)
        return translated(
            self.stream(TranslationRequest(SourceSentence(0, source or self.languages[0] or "en", text), target))
        )
