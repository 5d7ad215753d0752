"""The student of the other direction as a judge: how likely it finds the source when it is given the translation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .decode.generation import Token
from .forced import force_translation
from .model import MarianModel
from .model_text import SourcePart
from .terms.term_search import given

# Mean log-probability of the source's tokens, below which a translation is marked, and below which others are tried
# (docs/benchmarks.md).
_DOUBTFUL, _TRIED = -1.9, -1.3
# What another translation has to gain by the judge, and may lose by the translator. Without the second, words that are copied win.
_GAIN, _LOSS = 0.4, 0.12
_BEAMS = 4
# Words of the source. Shorter ones have several right translations, which do not tell which of them was said.
_LEAST_WORDS = 4

Search = Callable[[SourcePart, int], Sequence[Token]]
"""Translates a part with a number of beams; the tokens with the end token, or none if it failed."""


class Judge:
    """Looks for better translations where the other direction hardly finds the source, and marks what stays doubtful."""

    def __init__(self, model: MarianModel, back: MarianModel) -> None:
        """``back``: the student that translates what ``model`` writes into the language of its sources."""
        self._model, self._back = model, back
        self._source, self._target = (language or "" for language in model.languages)

    def __call__(self, part: SourcePart, tokens: Sequence[Token], search: Search) -> Sequence[Token]:
        """The translation of a part, or a better one. The last token says whether it is doubtful.

        Others are searched for after a neighbour, without the mark at the end, and with more beams, until one is good enough. By the
        judge alone, words that are copied and literal renderings would be best, so the translator must find it about as likely.
        """
        text = self._model.tokenizer.source_text((part.alone or part).ids)
        if len(text.split()) < _LEAST_WORDS or tokens[-1].truncated:
            return tokens
        found = self.found(text, self._text(tokens), part)
        if found is None or found >= _TRIED:
            return tokens
        own = self._own(part, tokens)
        best, known = tokens, {self._text(tokens)}
        own, least = self._own(part, tokens) - _LOSS, found + _GAIN
        for other in self._others(part, search):
            if len(other) < 2 or other[-1].truncated or (translation := self._text(other)) in known:
                continue
            known.add(translation)
            again = self.found(text, translation, part)
            if again is not None and again >= max(least, found) and self._own(part, other) >= own:
                best, found = other, again
            if found >= _TRIED:
                break
        return best if found >= _DOUBTFUL else [*best[:-1], dataclasses.replace(best[-1], doubtful=True)]

    def found(self, text: str, translation: str, part: SourcePart | None = None) -> float | None:
        """The mean log-probability of a source's tokens, given its translation; None if it cannot be told.

        Literals of ``part``, which are checked otherwise, and letters that the vocabulary lacks do not count.
        """
        parts = self._back.parts(translation, self._target, self._source, complete=True)
        if not parts:
            return -np.inf
        scores = force_translation(self._back, parts[0].ids, text).log_probabilities if len(parts) == 1 else np.zeros(0)
        if part is not None and len((plain := part.alone or part).ids) == len(scores):
            scores = np.delete(scores, [at for term in plain.terms if term.literal for at in term.tokens])
        known = scores[np.isfinite(scores)]
        return float(known.mean()) if known.size else None

    def _own(self, part: SourcePart, tokens: Sequence[Token]) -> float:
        scores = force_translation(self._model, (part.alone or part).ids, self._text(tokens)).log_probabilities
        return float(scores[np.isfinite(scores)].mean())

    def _text(self, tokens: Sequence[Token]) -> str:
        return self._model.tokenizer.decode([token.id for token in tokens])

    def _others(self, part: SourcePart, search: Search) -> Iterator[Sequence[Token]]:
        plain, neighbour = part.alone or part, self._model.neighbour(self._source, self._target)
        if part.alone is not None:
            yield search(plain, 1)
        elif neighbour is not None:
            yield search(plain.after(*neighbour), 1)
        mark = self._model.tokenizer.source_piece(plain.ids[-2])
        if mark in (".", "!", "?"):
            without = dataclasses.replace(plain, ids=(*plain.ids[:-2], plain.ids[-1]))
            tokens = search(without, 1)
            yield [*tokens[:-1], *given(self._model.speller(self._target).copy(mark, "a")), *tokens[-1:]]
        yield search(plain, _BEAMS)
