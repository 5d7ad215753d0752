"""Second searches for the glossary terms that a finished translation lacks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ....core import Token
from ....languages import is_before_noun, with_noun
from ..decode.decoder import DecoderState
from ..decode.generation import SearchRequest
from ..search.recovery import Rewind, replace_shown
from ..search.sentence_text import RunningSearch
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


def repairing(
    tokens: Iterator[Token | Rewind],
    repair: Callable[[Sequence[Token]], Sequence[Token]],
    uncertain: Callable[[Token], bool],
) -> Iterator[Token | Rewind]:
    """Yield the tokens of a search; if ``repair`` returns others for them, replace them.

    From the first ``uncertain`` token on, they are held back until the search has ended, so that a number that is written
    wrong is not shown.
    """
    found: list[Token] = []
    shown, held = 0, False
    for token in tokens:
        if isinstance(token, Rewind):
            del found[token.kept :]
            held = any(map(uncertain, found))
            if token.kept < shown:
                shown = token.kept
                yield token
            continue
        found.append(token)
        if token.last:
            yield from replace_shown([one.id for one in found[:shown]], repair(found))
            continue
        held = held or uncertain(token)
        if not held:
            shown += 1
            yield token


class Repair:
    """Finds better translations of one part; see ``__call__``."""

    def __init__(self, request: SearchRequest, wording: Wording, search: RunningSearch) -> None:
        """``search``: the newest of ``request``, whose committed tokens are in none of the lists here."""
        self._request, self._wording, self._search = request, wording, search
        self._looked: tuple[list[int], DecoderState, NDArray[np.float32]] | None = None
        """The last translation, the state that was fed it, and its attention."""

    def __call__(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A translation with the terms that ``tokens`` lack, as far as it can be had.

        A missing term is written where the model looks at it most, and the search goes on from there. The result is taken
        if more terms are kept.
        """
        tried: set[SourceTerm] = set()
        failures = 0
        while left := [term for term in self._missing(tokens) if term.tokens and term not in tried]:
            term = left[0]
            tried.add(term)
            least = len(self._missing(tokens))
            better = (again for again in self._written(tokens, term) if len(self._missing(again)) < least)
            if (found := next(better, None)) is not None:
                tokens = found
            elif (failures := failures + 1) == _FAILURES:
                break
        return tokens

    def _missing(self, tokens: Sequence[Token]) -> list[SourceTerm]:
        return self._wording.missing(self._ids(tokens))

    def _ids(self, tokens: Sequence[Token]) -> list[int]:
        return [*self._request.committed, *(token.id for token in tokens)]

    def _written(self, tokens: Sequence[Token], term: SourceTerm) -> Iterator[list[Token]]:
        """Translations like ``tokens`` with the translation of a term, the best place for it first.

        A literal that is copied takes the place of what the model wrote for it. After other terms, the search goes on.
        """
        request, decoder, speller = self._request, self._request.decoder, self._wording.speller
        ids, done = self._ids(tokens), len(request.committed)
        if not decoder.aligned or self._search.state is None or request.expired():
            return
        if self._looked is None or self._looked[0] != ids:
            state = decoder.revealed(self._search.state)
            rows = decoder.attention(state, [request.options.start_token, *ids[:-1]])
            assert rows is not None
            self._looked = ids, state, rows
        _, state, rows = self._looked
        shares = rows[:, list(term.tokens)].sum(axis=1)
        mended, end = None, 0
        if (found := self._mended(ids, term, shares)) is not None:
            start, right, end = found
            mended = [*tokens[: start - done], *given(right), *tokens[end - done :]]
            if end < len(ids) - 1 or term.optional:
                yield mended
        if term.optional:
            return
        if not term.literal and decoder.guided and (replaced := self._replaced(ids, term, rows, shares)) is not None:
            start, right, end = replaced
            yield [*tokens[: start - done], *given(right), *tokens[end - done :]]
        if not term.literal and decoder.guided:  # a search that goes on after it leaves words out
            return
        if term.literal and term.targets[0] == term.name and (run := self._run(ids, term, rows, shares)) is not None:
            start, end = run
            copied = speller.copy(term.targets[0], speller.piece(ids[start - 1]) if start else "")
            yield [*tokens[: start - done], *given(copied), *tokens[end - done :]]
        for at in self._places(ids, term, rows, shares)[:_PLACES]:
            write = speller.copy if term.literal else speller.spell
            wanted = write(term.targets[0], speller.piece(ids[at - 1]) if at else "")
            if wanted is None or at + len(wanted) >= request.options.max_tokens or request.expired():
                continue
            fork = state.fork()
            decoder.truncate(fork, at)
            begun = replace(request, committed=[*ids[:at], *wanted])
            rest = list(TermSearch(begun, self._wording, fork, term).tokens())
            if rest and not rest[-1].truncated:
                yield [*tokens[: at - done], *given(wanted), *rest]
        if mended is not None:  # without what should have followed
            yield mended

    def _mended(
        self, ids: Sequence[int], term: SourceTerm, shares: NDArray[np.float32]
    ) -> tuple[int, Sequence[int], int] | None:
        """Where a literal is written wrong, if it is: the first token, the right ones, and the token after the last.

        It is what is like the literal where the model looks at it most, and no other literal.
        """
        if term.like is None:
            return None
        speller, done = self._wording.speller, len(self._request.committed)
        pieces = [speller.piece(one) for one in ids]
        ends = list(accumulate(map(len, pieces)))
        text = "".join(pieces)
        token_at = partial(bisect_right, ends)  # by the place of a character
        others = [span for other in self._wording.terms for span in other.found_in(text)]
        best, span = _LOOKED_AT, None
        for found in term.like.finditer(text, ends[done - 1] if done else 0):
            if any(start < found.end() and found.start() < end for start, end in others):
                continue
            share = float(shares[token_at(found.start()) : token_at(found.end() - 1) + 1].mean())
            if share >= best:
                best, span = share, found
        if span is None:
            return None
        first, last = token_at(span.start()), token_at(span.end() - 1)
        while first > done and not pieces[first - 1].strip():
            first -= 1
        before, after = text[ends[first] - len(pieces[first]) : span.start()], text[span.end() : ends[last]]
        form = _form_like(term, span)
        if form[-1] == "." == text[span.end() : span.end() + 1]:
            form = form[:-1]
        return first, speller.copy((before + form + after).strip(), pieces[first - 1] if first else ""), last + 1

    def _replaced(
        self, ids: Sequence[int], term: SourceTerm, rows: NDArray[np.float32], shares: NDArray[np.float32]
    ) -> tuple[int, Sequence[int], int] | None:
        """Where the model wrote other words for a term of a glossary: as ``_mended``.

        Articles before them agree with it, and adjectives after them.
        """
        if (run := self._run(ids, term, rows, shares)) is None:
            return None
        start, end = run
        speller, done = self._wording.speller, len(self._request.committed)
        begins = [at for at in range(start + 1, end) if speller.begins_word(ids[at])]
        for at in begins:  # an article or a possessive looks at its noun as well
            start = at if is_before_noun(speller.text(ids[start:at]), speller.language) else start
        written = speller.text(ids[start:end]).strip()
        form = term.targets[0]
        words = speller.text(ids[done:start]).split()
        following = speller.text(ids[end:-1]).strip()
        changed, follows = with_noun(words, form, following, speller.language)
        begins = [at for at in range(done, start) if at == done or speller.begins_word(ids[at])]
        if len(begins) == len(words) and (others := [at for at, word in enumerate(words) if changed[at] != word]):
            start, form = begins[others[0]], " ".join([*changed[others[0] :], form])
        elif start == done and written[:1].isupper() and form.islower():
            form = form[:1].upper() + form[1:]
        before = speller.piece(ids[start - 1]) if start else ""
        wanted = speller.spell(form, before)
        if wanted is not None and follows != following:
            blank = " " if speller.piece(ids[end])[:1].isspace() else ""
            wanted, end = speller.copy(f"{form}{blank}{follows}", before), len(ids) - 1
        return None if wanted is None else (start, wanted, end)

    def _places(
        self, ids: Sequence[int], term: SourceTerm, rows: NDArray[np.float32], shares: NDArray[np.float32]
    ) -> list[int]:
        """Where the translation of a term may be written, the best place first."""
        speller, last = self._wording.speller, len(ids) - 1
        words = [*(at for at in range(len(self._request.committed), last) if speller.begins_word(ids[at])), last]
        starts = {at: at for at in words}
        if term.literal:  # not after the beginning of what the model wrote for it, which may be several words
            for before, at in zip([-1, *words], words, strict=False):
                inside = term.is_begun_by(speller.text(ids[:at]))
                if inside or (before >= 0 and shares[before] > 0.5):
                    starts[at] = starts.get(before, -1)
        return list(dict.fromkeys(starts[at] for at in sorted(words, key=lambda at: -shares[at]) if starts[at] >= 0))

    def _run(
        self, ids: Sequence[int], term: SourceTerm, rows: NDArray[np.float32], shares: NDArray[np.float32]
    ) -> tuple[int, int] | None:
        """The first token, and the one after the last, that the model wrote for a term.

        It is the run of tokens that look at the term most, in whole words; None if there is none, or if nothing follows a literal.
        """
        piece, last = self._wording.speller.piece, len(ids) - 1
        looks = [int(row.argmax()) in term.tokens for row in rows[:last]]
        if not term.literal:  # an adjective looks at its noun as well, and the noun at the adjective
            columns = np.delete(rows[:last], list(term.tokens), axis=1)
            others = set(columns.argmax(axis=0)[columns.max(axis=0) > _LOOKED_AT].tolist())
            free = [0.0 if at in others else float(share) for at, share in enumerate(shares[:last])]
            least = min(_ATTENDED, max(free, default=0.0))
            if least > _LOOKED_AT:
                looks = [share >= least for share in free]
        runs, start = [], None
        for at in range(len(self._request.committed), last + 1):
            if any(looks[at : at + 2]) if start is not None else at < last and looks[at]:
                start = at if start is None else start
            elif start is not None:
                runs.append((start, at))
                start = None
        if not runs:
            return None
        start, end = max(runs, key=lambda run: shares[slice(*run)].sum())
        while start > len(self._request.committed) and (
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
    return next((one for one in term.targets if one.startswith(before) and one.endswith(after)), term.targets[0])
