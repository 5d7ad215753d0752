"""Greedy search that writes a glossary's translation where the model looks at a term. Independent of ONNX.

At each step the alignment head tells which source tokens the next target token translates. If they are those of a term, the
term's translation is written, and the decoder goes on from there. The term is taken out of the decoder's view of the source, so that it
is not translated twice. A translation that the model writes by itself is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ....core import Token
from ..decode.decoder import Choice, DecoderState
from ..decode.generation import SearchRequest, log_softmax, mask
from ..search.beams import choose, token_at
from .source_terms import SourceTerm, Speller, glued, kept

# A term is translated where at least this share of the attention is on its source tokens. With less, more terms are kept by the
# first search, and the rest of the sentence is worse (docs/benchmarks.md).
_ATTENDED = 0.5
# Most probable tokens that are tried in place of one that would go on with the word of a term. Of the demo's translators and
# tests/backends/marian/terms, the first that could follow was the 43rd at most.
_TRIED = 256


@dataclass(frozen=True)
class Wording:
    """The terms of one part of a sentence, and how their translations are written."""

    terms: tuple[SourceTerm, ...]
    speller: Speller
    _known: dict[tuple[int, ...], list[SourceTerm]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What ``missing`` has returned; each translation is asked about more than once."""

    @cached_property
    def of_glossary(self) -> Wording | None:
        """The terms of a glossary alone. Literals are translated by the model, and only those that it misses are repaired."""
        terms = tuple(term for term in self.terms if not term.literal)
        return Wording(terms, self.speller) if terms else None

    @cached_property
    def _literal(self) -> bool:
        return any(term.literal for term in self.terms)

    def uncertain(self, token: Token) -> bool:
        """Whether a target token may be wrong: it has a digit, and so does the source."""
        return self._literal and any(map(str.isdigit, self.speller.piece(token.id)))

    def missing(self, ids: Sequence[int]) -> list[SourceTerm]:
        """The terms without an accepted translation in target tokens."""
        if (key := tuple(ids)) not in self._known:
            text = self.speller.text(ids)
            pairs = zip(self.terms, kept(self.terms, text), strict=True)
            self._known[key] = [
                term
                for term, done in pairs
                if not done and not (term.optional and term.like and not term.like.search(text))
            ]
        return self._known[key]


class TermSearch:
    """Greedy search that writes the translations of terms. Their tokens count as certain.

    If the model gives out no alignment head, the tokens are those of ``greedy``.
    """

    def __init__(
        self,
        request: SearchRequest,
        wording: Wording,
        state: DecoderState | None = None,
        written: SourceTerm | None = None,
    ) -> None:
        """``state``: may have been fed some of the committed tokens. ``written``: the term whose translation they end with."""
        self._request, self._decoder, self._options = request, request.decoder, request.options
        self._state = state or request.begin()
        self._speller = wording.speller
        self._history, self._begun = request.history, len(request.committed)
        self._seen = list(range(len(request.source)))  # source tokens in the decoder's view
        missing = wording.missing(request.committed) if self._begun else list(wording.terms)
        # The terms without a translation, and where their source tokens are in the decoder's view.
        self._pending = [(term, list(term.tokens)) for term in missing if term.tokens]
        self._translated = [term for term in wording.terms if term not in missing]  # still in the decoder's view
        self._written = written  # the term whose translation ends the history

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens that follow. The last one ends the sentence."""
        if self._begun and not self._state.steps:
            self._decoder.force(self._state, self._history[:-1])
        while len(self._history) <= self._options.max_tokens:
            chosen = self._next()
            term = self._attended()
            translation = None if term is None else self._spelled(term, chosen) or self._given(term)
            self._written = term if translation else None
            if self._written is not None:
                self._translated.append(self._written)
            for token in translation or [token_at(self._request, chosen, len(self._history))]:
                self._history.append(token.id)
                yield token
                if token.last:
                    return

    def _next(self) -> Choice:
        """The model's next token. It does not go on with the last word of a term's translation."""
        chosen = self._choose(self._history)
        if self._written is None or self._may_follow(chosen.token):
            return chosen
        self._decoder.truncate(self._state, len(self._history) - 1)
        scores = self._decoder.step(self._state, self._history[-1]).astype(np.float64)
        scores[self._options.pad_token] = -np.inf
        log_probabilities = log_softmax(scores)
        mask(scores, self._history, self._options)
        for token in np.argsort(-scores)[:_TRIED].tolist():
            if self._may_follow(token):
                return Choice(token, float(log_probabilities[token]), token, guarded=True)
        return chosen

    def _choose(self, history: list[int]) -> Choice:
        """Feed what is new in ``history``, and return the token that the model chooses after it."""
        if self._translated:
            self._hide_translated()
        if unfed := history[self._state.steps : -1]:
            self._decoder.force(self._state, unfed)
        return choose(self._request, self._state, history)

    def _attended(self) -> SourceTerm | None:
        """The term that the next token translates, if it has no translation."""
        row = self._decoder.attended(self._state) if self._pending else None
        if row is None:
            return None
        share, best = max((float(row[places].sum()), number) for number, (_, places) in enumerate(self._pending))
        return self._pending[best][0] if share >= _ATTENDED else None

    def _hide_translated(self) -> None:
        """Take the translated terms out of the decoder's view of the source."""
        hidden = {token for term in self._translated for token in term.inside}
        places = [place for place, token in enumerate(self._seen) if token in hidden]
        if places and self._decoder.aligned:
            self._decoder.hide(self._state, places)
            self._seen = [token for token in self._seen if token not in hidden]
        self._pending = [
            (term, [place for place, token in enumerate(self._seen) if token in term.tokens])
            for term, _ in self._pending
            if term not in self._translated
        ]
        self._translated = []

    def _may_follow(self, token: int) -> bool:
        """Whether a token may follow the translation of a term: as a new word or, unless it is a name, as a plural ending."""
        assert self._written is not None
        last, piece = self._speller.piece(self._history[-1]), self._speller.piece(token)
        target = self._written.targets[0]
        if (piece.strip() and self._written.refuses(target + piece)) or piece[:1] == "." == target[-1]:
            return False
        if not glued(last, piece):
            return True
        return target.islower() and self._written.spells(target + piece) is True

    def _spelled(self, term: SourceTerm, first: Choice) -> list[Token] | None:
        """The model's next tokens if they are an accepted translation. Otherwise the state is as before."""
        fed, chosen, written = self._state.steps, first, ""
        tokens: list[Token] = []
        while True:
            tokens.append(token_at(self._request, chosen, len(self._history) + len(tokens)))
            written += self._speller.piece(chosen.token)
            spelled = term.spells(written.strip()) if written.strip() else None
            if spelled and not glued(self._speller.piece(self._history[-1]), written):
                return tokens
            history = [*self._history, *(token.id for token in tokens)]
            if spelled is not None or tokens[-1].last or len(history) > self._options.max_tokens:
                self._decoder.truncate(self._state, fed)
                return None
            chosen = self._choose(history)

    def _given(self, term: SourceTerm) -> list[Token] | None:
        """The tokens of the term's translation; None if the model cannot write it, or if there is no room for it."""
        wanted, before = term.targets[0], self._speller.piece(self._history[-1])
        if len(self._history) - 1 == self._begun > 0:  # the committed text may end within the translation
            wanted = wanted[term.begun_by(self._speller.text(self._history[1:])) :].lstrip()
        ids = self._speller.copy(wanted, before) if term.literal else self._speller.spell(wanted, before)
        if ids is None or len(self._history) + len(ids) > self._options.max_tokens:
            return None
        return given(ids)


def given(ids: Sequence[int]) -> list[Token]:
    """Tokens that do not come from the model."""
    return [Token(token, 0.0, last=False, guarded=True) for token in ids]
