"""How the next token is chosen. Knows decoders by their two calls, and nothing of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.nmt.decoder import Decoder, DecoderState


@dataclass(frozen=True)
class GenerationOptions:
    """What generation_config.json and the user's configuration say of decoding."""

    start_token: int
    end_token: int
    pad_token: int
    # Sequences never generated; the pad token is never chosen either way.
    bad_words: tuple[tuple[int, ...], ...] = ()
    # Ends the sequence when the maximum length is reached (transformers' forced_eos_token_id).
    forced_end_token: int | None = None
    # Tokens generated at most, the end token included.
    max_tokens: int = 511


@dataclass(frozen=True)
class Token:
    """One generated token."""

    id: int
    log_probability: float
    """Natural logarithm, over what is allowed at this step."""
    last: bool
    truncated: bool = False
    """The limit ended the sentence, not the model."""


def greedy(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: Callable[[DecoderState], None] | None = None,
) -> Iterator[Token]:
    """Yield the most probable token of each step until the end token or ``options.max_tokens``.

    Equal to transformers' greedy ``generate`` token for token; the end token is yielded too, as the last.
    """
    state = decoder.encode(source, on_start)
    token = options.start_token
    history = [token]
    for count in range(1, options.max_tokens + 1):
        logits = decoder.step(state, token).logits.astype(np.float64)
        logits[_banned(history, options)] = -np.inf
        at_limit = count == options.max_tokens
        token = int(np.argmax(logits))
        ended_itself = token == options.end_token
        if at_limit and options.forced_end_token is not None:
            token = options.forced_end_token
        top = float(np.max(logits))
        log_probability = float(logits[token] - top - np.log(np.exp(logits - top).sum()))
        last = at_limit or token == options.end_token
        history.append(token)
        yield Token(token, log_probability, last, truncated=at_limit and not ended_itself)
        if last:
            return


def _banned(history: list[int], options: GenerationOptions) -> list[int]:
    """Tokens that may not follow ``history``: pad, and the last token of each bad word whose beginning stands there."""
    # An unmasked pad row scores exactly 0, which wins whenever all real tokens score below it.
    return [options.pad_token] + [
        word[-1] for word in options.bad_words if len(word) == 1 or tuple(history[1 - len(word) :]) == word[:-1]
    ]
