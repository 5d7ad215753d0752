"""Greedy search over any decoder, independent of ONNX.

Greedy and beam search give the same tokens as transformers' ``generate``. All stream: a token is yielded as soon as it is
final.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.nmt.beams import beam_search
from pipeline.nmt.decoder import Decoder, DecoderState
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
    history = [options.start_token, *committed]
    if committed:
        decoder.force(state, history[:-1])
    for count in range(len(history), options.max_tokens + 1):
        token = token_at(choose(decoder, state, history, options, count), count, options, expired)
        history.append(token.id)
        yield token
        if token.last:
            return


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


def choose(decoder: Decoder, state: DecoderState, history: list[int], options: GenerationOptions, count: int) -> Chosen:
    if options.guards_only_pad and forced(count, options, -1) < 0:
        choice = decoder.choose(state, history[-1], options.pad_token)
        return Chosen(choice.token, choice.log_probability, choice.token, guarded=False)
    scores = decoder.step(state, history[-1]).logits.astype(np.float64)
    # The pad token's score is exactly 0. Unmasked, it would win whenever all real tokens score below 0.
    scores[options.pad_token] = -np.inf
    log_probabilities = log_softmax(scores)
    likeliest = int(np.argmax(scores))
    mask(scores, history, options)
    allowed = int(np.argmax(scores))
    token = forced(count, options, allowed)
    return Chosen(token, float(log_probabilities[token]), allowed, allowed != likeliest)
