"""Second searches for the glossary terms that a finished translation lacks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ....core import Token
from ....languages import is_before_noun, with_noun
from ..decode.decoder import DecoderState
from ..decode.generation import SearchRequest
from .source_terms import SourceTerm, glued
from .term_search import TermSearch, Wording, given

# Places that are tried for a term.
_PLACES = 3
# Terms of a part that could not be written until the others are left as they are: a list of hundreds takes too long.
_FAILURES = 2
# The least share of the attention, on the average of its tokens, of what is written for a literal.
_LOOKED_AT = 0.2
# The least share of the attention of each token that is replaced by a term of a glossary.
_ATTENDED = 0.4


Replacement = tuple[int, Sequence[int], int]
"""The first token that is replaced, the right ones, and the token after the last."""


@dataclass(frozen=True)
class MissingTerm:
    """A term that a translation lacks, and where the model looked at it."""

    term: SourceTerm
    ids: list[int]  # target tokens, with the committed ones and the end token
    state: DecoderState  # was fed these tokens
    rows: NDArray[np.float32]  # their attention, [tokens, S]
    shares: NDArray[np.float32]  # how much of it is on the term, [tokens]


class Repair:
    """Writes the terms that a translation of one part lacks into it; ``_written`` has the ways that are tried."""

    def __init__(self, request: SearchRequest, wording: Wording, state: Callable[[], DecoderState | None]) -> None:
        """``state``: of the newest search of ``request``, whose committed tokens are in none of the lists of tokens here."""
        self._request, self._wording, self._state = request, wording, state
        self._committed = len(request.committed)
        self._looked: tuple[list[int], DecoderState, NDArray[np.float32]] | None = None  # at the last translation

    def __call__(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A translation with the terms that ``tokens`` lack, as far as it can be had. One is taken if it keeps more terms."""
        tried: set[SourceTerm] = set()
        failures = 0
        while terms := [term for term in self._missing(tokens) if term.tokens and term not in tried]:
            tried.add(terms[0])
            least = len(self._missing(tokens))
            better = (again for again in self._written(tokens, terms[0]) if len(self._missing(again)) < least)
            if (best := next(better, None)) is not None:
                tokens = best
            elif (failures := failures + 1) == _FAILURES:
                break
        return tokens

    def _missing(self, tokens: Sequence[Token]) -> list[SourceTerm]:
        return self._wording.missing(self._ids(tokens))

    def _ids(self, tokens: Sequence[Token]) -> list[int]:
        return [*self._request.committed, *(token.id for token in tokens)]

    def _written(self, tokens: Sequence[Token], term: SourceTerm) -> Iterator[list[Token]]:
        """Translations like ``tokens`` with the translation of a term, the best one first."""
        if (missing := self._look(self._ids(tokens), term)) is None:
            return
        done, guided = self._committed, self._request.decoder.guided

        def replaced(replacement: Replacement) -> list[Token]:
            start, right, end = replacement
            return [*tokens[: start - done], *given(right), *tokens[end - done :]]

        mended = self._mended(missing)
        if mended is not None and (term.optional or mended[2] < len(missing.ids) - 1):
            yield replaced(mended)
        if term.optional:
            return
        in_place = self._copied(missing) if term.literal else self._replaced(missing) if guided else None
        if in_place is not None:
            yield replaced(in_place)
        if not term.literal and guided:  # a search that goes on after it leaves words out
            return
        for place, wanted, rest in self._searched(missing):
            yield [*tokens[: place - done], *given(wanted), *rest]
        if mended is not None:  # without what should have followed
            yield replaced(mended)

    def _look(self, ids: list[int], term: SourceTerm) -> MissingTerm | None:
        """Where the model looked at a term; None if it cannot tell, or has no time."""
        request, decoder = self._request, self._request.decoder
        if not decoder.aligned or (newest := self._state()) is None or request.expired():
            return None
        if self._looked is None or self._looked[0] != ids:
            state = decoder.revealed(newest)
            rows = decoder.attention(state, [request.options.start_token, *ids[:-1]])
            assert rows is not None
            self._looked = ids, state, rows
        _, state, rows = self._looked
        return MissingTerm(term, ids, state, rows, rows[:, list(term.tokens)].sum(axis=1))

    def _searched(self, missing: MissingTerm) -> Iterator[tuple[int, Sequence[int], list[Token]]]:
        """The translation of a term in the best places for it: tokens before it, its own, and those of a search that goes on after it."""
        request, speller, term, ids = self._request, self._wording.speller, missing.term, missing.ids
        write = speller.copy if term.literal else speller.spell
        for place in self._places(missing)[:_PLACES]:
            wanted = write(term.targets[0], self._before(ids, place))
            if wanted is None or place + len(wanted) >= request.options.max_tokens or request.expired():
                continue
            state = missing.state.fork()
            request.decoder.truncate(state, place)
            begun = replace(request, committed=[*ids[:place], *wanted])
            rest = list(TermSearch(begun, self._wording, state, term).tokens())
            if rest and not rest[-1].truncated:
                yield place, wanted, rest

    def _before(self, ids: Sequence[int], place: int) -> str:
        """The text of the token before a place."""
        return self._wording.speller.piece(ids[place - 1]) if place else ""

    def _copied(self, missing: MissingTerm) -> Replacement | None:
        """A literal that is copied, in the place of what the model wrote for it."""
        term = missing.term
        if term.targets[0] != term.name or (run := self._run(missing)) is None:
            return None
        return run[0], self._wording.speller.copy(term.name, self._before(missing.ids, run[0])), run[1]

    def _mended(self, missing: MissingTerm) -> Replacement | None:
        """A literal in the place of what is like it, where the model looks at it most, and is no other literal."""
        term, ids, shares = missing.term, missing.ids, missing.shares
        if term.like is None:
            return None
        speller, done = self._wording.speller, self._committed
        pieces = [speller.piece(token) for token in ids]
        ends = list(accumulate(map(len, pieces)))
        text = "".join(pieces)
        token_at = partial(bisect_right, ends)  # by the place of a character
        others = [span for other in self._wording.terms for span in other.found_in(text)]
        most, span = _LOOKED_AT, None
        for match in term.like.finditer(text, ends[done - 1] if done else 0):
            if any(start < match.end() and match.start() < end for start, end in others):
                continue
            share = float(shares[token_at(match.start()) : token_at(match.end() - 1) + 1].mean())
            if share >= most:
                most, span = share, match
        if span is None:
            return None
        first, last = token_at(span.start()), token_at(span.end() - 1)
        while first > done and not pieces[first - 1].strip():
            first -= 1
        before, after = text[ends[first] - len(pieces[first]) : span.start()], text[span.end() : ends[last]]
        form = _form_like(term, span)
        if form[-1] == "." == text[span.end() : span.end() + 1]:
            form = form[:-1]
        return first, speller.copy((before + form + after).strip(), self._before(ids, first)), last + 1

    def _replaced(self, missing: MissingTerm) -> Replacement | None:
        """A term of a glossary in the place of the words that the model wrote for it.

        Articles before them agree with it, and adjectives after them.
        """
        if (run := self._run(missing)) is None:
            return None
        start, end = run
        speller, done, ids = self._wording.speller, self._committed, missing.ids
        begins = [number for number in range(start + 1, end) if speller.begins_word(ids[number])]
        for number in begins:  # an article or a possessive looks at its noun as well
            start = number if is_before_noun(speller.text(ids[start:number]), speller.language) else start
        written = speller.text(ids[start:end]).strip()
        form = missing.term.targets[0]
        words = speller.text(ids[done:start]).split()
        following = speller.text(ids[end:-1]).strip()
        changed, follows = with_noun(words, form, following, speller.language)
        begins = [number for number in range(done, start) if number == done or speller.begins_word(ids[number])]
        if len(begins) == len(words) and (others := [at for at, word in enumerate(words) if changed[at] != word]):
            start, form = begins[others[0]], " ".join([*changed[others[0] :], form])
        elif start == done and written[:1].isupper() and form.islower():
            form = form[:1].upper() + form[1:]
        before = self._before(ids, start)
        wanted = speller.spell(form, before)
        if wanted is not None and follows != following:
            blank = " " if speller.piece(ids[end])[:1].isspace() else ""
            wanted, end = speller.copy(f"{form}{blank}{follows}", before), len(ids) - 1
        return None if wanted is None else (start, wanted, end)

    def _places(self, missing: MissingTerm) -> list[int]:
        """Where the translation of a term may be written, the best place first."""
        term, ids, shares = missing.term, missing.ids, missing.shares
        speller, last = self._wording.speller, len(ids) - 1
        words = [*(place for place in range(self._committed, last) if speller.begins_word(ids[place])), last]
        starts = {place: place for place in words}
        if term.literal:  # not after the beginning of what the model wrote for it, which may be several words
            for before, place in zip([-1, *words], words, strict=False):
                inside = term.is_begun_by(speller.text(ids[:place]))
                if inside or (before >= 0 and shares[before] > 0.5):
                    starts[place] = starts.get(before, -1)
        best_first = sorted(words, key=lambda place: -shares[place])
        return list(dict.fromkeys(starts[place] for place in best_first if starts[place] >= 0))

    def _run(self, missing: MissingTerm) -> tuple[int, int] | None:
        """The first token, and the one after the last, that the model wrote for a term.

        It is the run of tokens that look at the term most, in whole words; None if there is none, or if nothing follows a literal.
        """
        term, ids, rows, shares = missing.term, missing.ids, missing.rows, missing.shares
        piece, last = self._wording.speller.piece, len(ids) - 1
        looks = [int(row.argmax()) in term.tokens for row in rows[:last]]
        if not term.literal:  # an adjective looks at its noun as well, and the noun at the adjective
            columns = np.delete(rows[:last], list(term.tokens), axis=1)
            others = set(columns.argmax(axis=0)[columns.max(axis=0) > _LOOKED_AT].tolist())
            free = [0.0 if number in others else float(share) for number, share in enumerate(shares[:last])]
            least = min(_ATTENDED, max(free, default=0.0))
            if least > _LOOKED_AT:
                looks = [share >= least for share in free]
        runs, start = [], None
        for number in range(self._committed, last + 1):
            if any(looks[number : number + 2]) if start is not None else number < last and looks[number]:
                start = number if start is None else start
            elif start is not None:
                runs.append((start, number))
                start = None
        if not runs:
            return None
        start, end = max(runs, key=lambda run: shares[slice(*run)].sum())
        while start > self._committed and (
            glued(piece(ids[start - 1]), piece(ids[start])) or not piece(ids[start - 1]).strip()
        ):
            start -= 1
        while end > start + 1 and not any(map(str.isalnum, piece(ids[end - 1]))):  # a mark that follows it
            end -= 1
        while end < last and glued(piece(ids[end - 1]), piece(ids[end])):
            end += 1
        return (start, end) if end < last or not term.literal else None


def _form_like(term: SourceTerm, span: re.Match[str]) -> str:
    """The accepted form of a literal with the same currency before or after it, else the preferred one."""
    before, after = (span.groupdict().get(name) or "" for name in ("before", "after"))
    if not before and not after:
        return term.targets[0]
    return next((form for form in term.targets if form.startswith(before) and form.endswith(after)), term.targets[0])
