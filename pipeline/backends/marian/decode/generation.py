"""What every search needs: its options, the tokens it yields, the guards on what it may choose, and its time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .decoder import Decoder, DecoderState

OnStart = Callable[[DecoderState], None]


@dataclass(frozen=True)
class GenerationOptions:
    """Decoding options from generation_config.json and the user's configuration."""

    start_token: int
    end_token: int
    pad_token: int
    # Sequences that are never generated. The pad token is never chosen, listed here or not.
    bad_words: tuple[tuple[int, ...], ...] = ()
    # Token forced at the maximum length (transformers' forced_eos_token_id).
    forced_end_token: int | None = None
    # Token forced as the first one (transformers' forced_bos_token_id).
    forced_begin_token: int | None = None
    # N-grams of this size are not generated twice; 0 disables the check.
    no_repeat_ngram: int = 0
    # Maximum number of generated tokens, including the end token.
    max_tokens: int = 511
    # 1 is greedy.
    beams: int = 1
    # Scores are divided by the length raised to this power.
    length_penalty: float = 1.0
    # Renormalise probabilities after masking (transformers' renormalize_logits). Beam search only.
    renormalize: bool = False
    # transformers' early_stopping. True: stop at ``beams`` finished hypotheses. False: stop by a heuristic. "never":
    # stop only when no better hypothesis is possible.
    early_stopping: bool | str = False

    @property
    def guards_only_pad(self) -> bool:
        """True if no token other than pad is ever masked."""
        return not self.no_repeat_ngram and all(word == (self.pad_token,) for word in self.bad_words)


@dataclass(frozen=True)
class SearchRequest:
    """What a search translates, with what, and how far."""

    decoder: Decoder
    source: Sequence[int]
    """Source ids with the end token."""
    options: GenerationOptions
    committed: Sequence[int] = ()
    """The first target tokens. They count towards ``options.max_tokens``, and are not yielded."""
    preferred: Sequence[int] = ()
    """What a greedy search follows after the committed tokens, as long as no other token is clearly more probable."""
    on_start: OnStart | None = None
    """Receives the state of each search before its first run, so that another thread can terminate it."""
    expired: Callable[[], bool] = lambda: False
    """Called after every step. Once it returns True, the sentence ends there, marked as truncated."""

    @property
    def history(self) -> list[int]:
        """The target tokens that are known, with the start token."""
        return [self.options.start_token, *self.committed]

    def begin(self) -> DecoderState:
        """Run the encoder."""
        return self.decoder.encode(self.source, self.on_start)


def mask(scores: NDArray[np.float64], history: list[int], options: GenerationOptions) -> None:
    """Mask the tokens that would complete a bad word or a repeated n-gram after ``history``."""
    for word in options.bad_words:
        if len(word) == 1 or tuple(history[1 - len(word) :]) == word[:-1]:
            scores[word[-1]] = -np.inf
    size = options.no_repeat_ngram
    if size and len(history) >= size:
        beginning = history[len(history) - size + 1 :]
        for at in range(len(history) - size + 1):
            if history[at : at + size - 1] == beginning and history[at + size - 1] < len(scores):
                scores[history[at + size - 1]] = -np.inf


def forced_token(count: int, options: GenerationOptions, otherwise: int) -> int:
    """Return the token that the settings force at step ``count``, else ``otherwise``."""
    if count == options.max_tokens and options.forced_end_token is not None:
        return options.forced_end_token
    if count == 1 and options.forced_begin_token is not None:
        return options.forced_begin_token
    return otherwise


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    top = scores.max()
    result: NDArray[np.float64] = scores - top - np.log(np.exp(scores - top).sum())
    return result


class Stopwatch:
    """Measures the total time spent inside its ``with`` blocks: that of a translation, without that of its reader."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._spent_s = 0.0
        self._began: float | None = None

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self._spent_s, self._began = self._total_s(), None

    def _total_s(self) -> float:
        return self._spent_s + (time.monotonic() - self._began if self._began is not None else 0.0)

    def expired(self) -> bool:
        return self._total_s() > self._limit_s
