"""Greedy search and verification of a draft over any decoder, independent of ONNX.

Greedy and beam search give the same tokens as transformers' ``generate``. All stream: a token is yielded as soon as it is
final.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest

import numpy as np

from pipeline.nmt.beams import beam_search
from pipeline.nmt.decoder import Decoder, DecoderState, Logits
from pipeline.nmt.generation import GenerationOptions, OnStart, Token, forced, log_softmax, mask, no_time_limit


def generate(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = no_time_limit,
    *,
    committed: Sequence[int] = (),
) -> Iterator[Token]:
    """Yield the translation of ``source`` token by token; the last token is the end token.

    ``expired`` is called after every step. Once it returns True, the sentence ends there, marked as truncated.
    ``committed``: see ``greedy`` and ``beam_search``.
    """
    search = greedy if options.beams == 1 else beam_search
    return search(decoder, source, options, on_start, expired, committed=committed)


def greedy(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = no_time_limit,
    *,
    committed: Sequence[int] = (),
) -> Iterator[Token]:
    """Yield the most probable token of each step until the end token or ``options.max_tokens``.

    ``committed`` tokens begin the translation, count towards ``options.max_tokens``, and are not yielded.
    """
    state = decoder.encode(source, on_start)
    return _greedy_from(decoder, state, options, expired, committed)


def _greedy_from(
    decoder: Decoder,
    state: DecoderState,
    options: GenerationOptions,
    expired: Callable[[], bool],
    committed: Sequence[int],
) -> Iterator[Token]:
    """As ``greedy``, with a state to which no token has been fed."""
    history = [options.start_token]
    for known in committed:
        decoder.choose(state, history[-1], options.pad_token)
        history.append(known)
    for count in range(len(history), options.max_tokens + 1):
        token = token_at(choose(decoder, state, history, options, count), count, options, expired)
        history.append(token.id)
        yield token
        if token.last:
            return


def verified(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    draft: Sequence[int],
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = no_time_limit,
    *,
    committed: Sequence[int] = (),
) -> Iterator[Token]:
    """Yield the tokens that ``greedy`` yields, in fewer runs if the translation begins like ``draft``.

    The committed tokens and ``draft``, without its end token, are fed in one run. The draft is accepted up to the first
    token that is not the best one there, and greedy search goes on from that point. A run of several tokens rounds
    otherwise than one of a single token, so a best token that leads by less than the rounding error is in doubt: from
    there on, and if the decoder cannot verify, the tokens are those of single steps.
    """
    state = decoder.encode(source, on_start)
    accepted = list(committed)
    if decoder.rounding is not None and (draft or committed) and len(committed) < options.max_tokens:
        for choice in _choices(decoder, state, options, draft, accepted, decoder.rounding):
            token = token_at(choice, len(accepted) + 1, options, expired)
            accepted.append(token.id)
            yield token
            if token.last:
                return
    decoder.truncate(state, 0)
    yield from _greedy_from(decoder, state, options, expired, accepted)


def _choices(
    decoder: Decoder,
    state: DecoderState,
    options: GenerationOptions,
    draft: Sequence[int],
    committed: Sequence[int],
    rounding: float,
) -> Iterator[Chosen]:
    """Yield the choices after the committed tokens until one is in doubt. The caller stops at the last token."""
    history = [options.start_token, *committed]
    room = max(0, options.max_tokens - len(history))
    guess = list(takewhile(lambda token: token != options.end_token, draft[:room]))
    while True:
        fed = state.steps
        chosen = choose_each(decoder, state, [*history, *guess], len(history), options)
        for choice, guessed in zip_longest(chosen, guess):
            if choice.lead < rounding:
                return
            history.append(choice.token)
            yield choice
            if choice.token != guessed:
                break
        # What has been fed of the draft after the first difference, and any token that was not yielded, is forgotten.
        assert state.steps > fed
        decoder.truncate(state, len(history) - 1)
        guess = []


def choose_each(
    decoder: Decoder, state: DecoderState, history: list[int], known: int, options: GenerationOptions
) -> Iterator[Chosen]:
    """Feed the tokens of ``history`` that were not fed, in one run. Yield the choice after each from the ``known``th on."""
    fed = state.steps
    counts = range(known, len(history) + 1)
    new = history[fed:]
    if options.guards_only_pad and all(forced(count, options, -1) < 0 for count in counts):
        for choice in decoder.choose_each(state, new, options.pad_token)[known - 1 - fed :]:
            assert choice.lead is not None
            yield Chosen(choice.token, choice.log_probability, choice.token, guarded=False, lead=choice.lead)
        return
    rows = decoder.score_each(state, new)[known - 1 - fed :]
    for count, row in zip(counts, rows, strict=True):
        yield _choose_from(row, history[:count], options, count)


def token_at(choice: Chosen, count: int, options: GenerationOptions, expired: Callable[[], bool]) -> Token:
    """The token at position ``count`` ≥ 1 of the translation."""
    at_limit = count == options.max_tokens or expired()
    return Token(
        choice.token,
        choice.log_probability,
        last=at_limit or choice.token == options.end_token,
        truncated=at_limit and choice.allowed != options.end_token,
        guarded=choice.guarded,
    )


@dataclass(frozen=True)
class Chosen:
    """The next token, chosen from the model's scores, the guards and the forced tokens."""

    token: int
    log_probability: float
    allowed: int
    """The most probable token that no guard masks. Equals ``token`` unless another token is forced."""
    guarded: bool
    lead: float = math.inf
    """The score of ``allowed`` minus the second-best one that no guard masks."""


def choose(decoder: Decoder, state: DecoderState, history: list[int], options: GenerationOptions, count: int) -> Chosen:
    if options.guards_only_pad and forced(count, options, -1) < 0:
        choice = decoder.choose(state, history[-1], options.pad_token)
        return Chosen(choice.token, choice.log_probability, choice.token, guarded=False)
    return _choose_from(decoder.step(state, history[-1]).logits, history, options, count)


def _choose_from(logits: Logits, history: list[int], options: GenerationOptions, count: int) -> Chosen:
    scores = logits.astype(np.float64)
    # The pad token's score is exactly 0. Unmasked, it would win whenever all real tokens score below 0.
    scores[options.pad_token] = -np.inf
    log_probabilities = log_softmax(scores)
    likeliest = int(np.argmax(scores))
    mask(scores, history, options)
    allowed = int(np.argmax(scores))
    token = forced(count, options, allowed)
    best = scores[allowed]
    scores[allowed] = -np.inf
    lead = float(best - scores.max())
    return Chosen(token, float(log_probabilities[token]), allowed, allowed != likeliest, lead)
