"""Second searches for the glossary terms that a finished translation lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pipeline.nmt.checked import Rewind, replace_shown
from pipeline.nmt.decoder import Decoder
from pipeline.nmt.generation import GenerationOptions, Token
from pipeline.nmt.pieces import RunningSearch
from pipeline.nmt.term_search import TermSearch, Wording, given
from pipeline.nmt.terms import SourceTerm, Speller, glued

# Places that are tried for a term.
_PLACES = 3


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

    def __init__(
        self,
        decoder: Decoder,
        source: Sequence[int],
        options: GenerationOptions,
        wording: Wording,
        search: RunningSearch,
        expired: Callable[[], bool],
        committed: Sequence[int] = (),
    ) -> None:
        """``search``: that of ``source``. ``committed``: the first tokens of all translations, which are in none of the lists."""
        self._decoder, self._source, self._options, self._wording = decoder, source, options, wording
        self._search, self._expired, self._committed = search, expired, list(committed)

    def __call__(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A translation with the terms that ``tokens`` lack, as far as it can be had.

        A missing term is written where the model looks at it most, and the search goes on from there. The result is taken
        if more terms are kept.
        """
        tried: set[SourceTerm] = set()
        while left := [term for term in self._missing(tokens) if term.tokens and term not in tried]:
            term = left[0]
            tried.add(term)
            least = len(self._missing(tokens))
            for again in self._written(tokens, term):
                if len(self._missing(again)) < least:
                    tokens = again
                    break
        return tokens

    def _missing(self, tokens: Sequence[Token]) -> list[SourceTerm]:
        return self._wording.missing(self._ids(tokens))

    def _ids(self, tokens: Sequence[Token]) -> list[int]:
        return [*self._committed, *(token.id for token in tokens)]

    def _written(self, tokens: Sequence[Token], term: SourceTerm) -> Iterator[list[Token]]:
        """Translations that begin like ``tokens`` and go on with the translation of a term, the best place for it first."""
        ids, decoder, speller = self._ids(tokens), self._decoder, self._wording.speller
        if not decoder.aligned or self._search.state is None or self._expired():
            return
        state = decoder.restarted(self._search.state)
        rows = decoder.attention(state, [self._options.start_token, *ids[:-1]])
        assert rows is not None
        shares = rows[:, list(term.tokens)].sum(axis=1)
        places = [at for at in range(len(self._committed), len(ids) - 1) if speller.begins_word(ids[at])]
        if term.literal:  # not after the first digits of what the model wrote for it
            places = [at for at in places if not (at and _goes_on(speller, ids[at - 1], ids[at], term))]
        for at in sorted([*places, len(ids) - 1], key=lambda at: -shares[at])[:_PLACES]:
            wanted = speller.spell(term.targets[0], speller.piece(ids[at - 1]) if at else "")
            if wanted is None or at + len(wanted) >= self._options.max_tokens or self._expired():
                continue
            begun = [*ids[:at], *wanted]
            fork = state.fork()
            decoder.truncate(fork, at)
            rest = list(
                TermSearch(
                    *(decoder, fork, self._options, self._wording, self._expired, len(self._source)),
                    begun=begun,
                    written=term,
                ).tokens()
            )
            if rest and not rest[-1].truncated:
                yield [*tokens[: at - len(self._committed)], *given(wanted), *rest]


def _goes_on(speller: Speller, before: int, token: int, term: SourceTerm) -> bool:
    """Whether a number or code, written in place of ``token``, would go on with the one that ``before`` ends with."""
    end = speller.piece(before)
    return end[-1:].isdigit() if speller.piece(token).startswith(" ") else glued(end, term.targets[0])
