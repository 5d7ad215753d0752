"""Greedy search, verification of a draft, and beam search over any decoder, independent of ONNX.

Greedy and beam search give the same tokens as transformers' ``generate``. All stream: a token is yielded as soon as it is
final.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest

import numpy as np
from numpy.typing import NDArray

from pipeline.nmt.decoder import Decoder, DecoderState, Logits

OnStart = Callable[[DecoderState], None]
# Finite substitute for minus infinity in sums of scores, as in transformers (generation/utils.py).
_MIN_SCORE = -1e9


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
class Token:
    """One generated token."""

    id: int
    log_probability: float
    """Natural logarithm of the model's probability for it."""
    last: bool
    truncated: bool = False
    """A limit ended the sentence instead of the model."""
    guarded: bool = False
    """A guard (bad word, repeated n-gram) masked a more probable token."""
    searched_again: bool = False
    """Set on the last token of a sentence if the first search looped or reached its limit and was replaced."""


def _no_time_limit() -> bool:
    return False


def generate(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _no_time_limit,
) -> Iterator[Token]:
    """Yield the translation of ``source`` token by token; the last token is the end token.

    ``expired`` is called after every step. Once it returns True, the sentence ends there, marked as truncated.
    """
    return (greedy if options.beams == 1 else beam_search)(decoder, source, options, on_start, expired)


def greedy(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _no_time_limit,
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
        token = _token(_choose(decoder, state, history, options, count), count, options, expired)
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
    expired: Callable[[], bool] = _no_time_limit,
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
            token = _token(choice, len(accepted) + 1, options, expired)
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
) -> Iterator[_Chosen]:
    """Yield the choices after the committed tokens until one is in doubt. The caller stops at the last token."""
    history = [options.start_token, *committed]
    room = max(0, options.max_tokens - len(history))
    guess = list(takewhile(lambda token: token != options.end_token, draft[:room]))
    while True:
        fed = state.steps
        chosen = _choose_each(decoder, state, [*history, *guess], len(history), options)
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


def _choose_each(
    decoder: Decoder, state: DecoderState, history: list[int], known: int, options: GenerationOptions
) -> Iterator[_Chosen]:
    """Feed the tokens of ``history`` that were not fed, in one run. Yield the choice after each from the ``known``th on."""
    fed = state.steps
    counts = range(known, len(history) + 1)
    new = history[fed:]
    if options.guards_only_pad and all(_forced(count, options, -1) < 0 for count in counts):
        for choice in decoder.choose_each(state, new, options.pad_token)[known - 1 - fed :]:
            assert choice.lead is not None
            yield _Chosen(choice.token, choice.log_probability, choice.token, guarded=False, lead=choice.lead)
        return
    rows = decoder.score_each(state, new)[known - 1 - fed :]
    for count, row in zip(counts, rows, strict=True):
        yield _choose_from(row, history[:count], options, count)


def _token(choice: _Chosen, count: int, options: GenerationOptions, expired: Callable[[], bool]) -> Token:
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
class _Chosen:
    """The next token, chosen from the model's scores, the guards and the forced tokens."""

    token: int
    log_probability: float
    allowed: int
    """The most probable token that no guard masks. Equals ``token`` unless another token is forced."""
    guarded: bool
    lead: float = math.inf
    """The score of ``allowed`` minus the second-best one that no guard masks."""


def _choose(
    decoder: Decoder, state: DecoderState, history: list[int], options: GenerationOptions, count: int
) -> _Chosen:
    if options.guards_only_pad and _forced(count, options, -1) < 0:
        choice = decoder.choose(state, history[-1], options.pad_token)
        return _Chosen(choice.token, choice.log_probability, choice.token, guarded=False)
    return _choose_from(decoder.step(state, history[-1]).logits, history, options, count)


def _choose_from(logits: Logits, history: list[int], options: GenerationOptions, count: int) -> _Chosen:
    scores = logits.astype(np.float64)
    # The pad token's score is exactly 0. Unmasked, it would win whenever all real tokens score below 0.
    scores[options.pad_token] = -np.inf
    log_probabilities = _log_softmax(scores)
    likeliest = int(np.argmax(scores))
    _mask(scores, history, options)
    allowed = int(np.argmax(scores))
    token = _forced(count, options, allowed)
    best = scores[allowed]
    scores[allowed] = -np.inf
    lead = float(best - scores.max())
    return _Chosen(token, float(log_probabilities[token]), allowed, allowed != likeliest, lead)


@dataclass(frozen=True)
class _Hypothesis:
    """A running or finished sequence.

    ``score`` is the sum of log-probabilities; the length penalty is applied when the sequence is finished.
    """

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    score: float
    guarded: tuple[bool, ...] = ()
    cut: bool = False
    """A limit ended the sequence."""


def beam_search(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _no_time_limit,
) -> Iterator[Token]:
    """Yield the tokens of the best hypothesis, each as soon as all hypotheses that can still win share it."""
    size = options.beams
    root = decoder.encode(source, on_start)
    running = [_Hypothesis((options.start_token,), (), 0.0)]
    states = [root]
    finished: list[_Hypothesis] = []  # at most ``size``, best first
    emitted = 1  # length of the shared prefix already yielded, counting the start token, which is not yielded
    improvable = True
    count = 0
    while True:
        count += 1
        candidates = _expand(decoder, running, states, options, count)
        at_limit = count == options.max_tokens
        ended = [at_limit or hypothesis.tokens[-1] == options.end_token for hypothesis, _ in candidates]
        full = len(finished) == size and options.early_stopping is True
        if improvable and not full:
            finished += [
                replace(h, score=h.score / count**options.length_penalty)
                for (h, _), over in zip(candidates[:size], ended, strict=False)
                if over
            ]
            finished = sorted(finished, key=lambda h: -h.score)[:size]
        alive = [pair for pair, over in zip(candidates, ended, strict=True) if not over][:size]
        if alive:
            running = [hypothesis for hypothesis, _ in alive]
            states = _continue_states(states, [parent for _, parent in alive])
            improvable = improvable and _may_improve(running[0].score, finished, count, options)
        if not alive or not improvable or (len(finished) == size and options.early_stopping is True):
            break
        if expired():
            # Without a finished hypothesis, take the best running one: all of them start with the yielded tokens.
            finished = finished or [replace(running[0], cut=True)]
            break
        for token in _shared_tokens(running + finished[:1], emitted, options):
            emitted += 1
            yield token
    best = finished[0] if finished else running[0]
    if emitted == len(best.tokens):  # everything was yielded before the time ran out; only the end token is missing
        yield Token(options.end_token, 0.0, last=True, truncated=True)
    for at in range(emitted, len(best.tokens)):
        last = at == len(best.tokens) - 1
        yield _token_at(best, at, last)


def _expand(
    decoder: Decoder,
    running: list[_Hypothesis],
    states: list[DecoderState],
    options: GenerationOptions,
    count: int,
) -> list[tuple[_Hypothesis, int]]:
    """Return the 2·beams best continuations of the running hypotheses, each with the index of its parent."""
    rows: list[NDArray[np.float64]] = []
    guarded: list[bool] = []
    likeliest: list[int] = []
    plain: list[NDArray[np.float64]] = []
    for hypothesis, state in zip(running, states, strict=True):
        scores = decoder.step(state, hypothesis.tokens[-1]).logits.astype(np.float64)
        # As in transformers' beam search, bad words and forced tokens apply after a softmax over all tokens.
        log_probabilities = _log_softmax(scores)
        plain.append(log_probabilities)
        masked = log_probabilities.copy()
        masked[options.pad_token] = -np.inf
        likeliest.append(int(np.argmax(masked)))
        _mask(masked, list(hypothesis.tokens), options)
        guarded.append(bool(masked[likeliest[-1]] == -np.inf))
        forced = _forced(count, options, -1)
        if forced >= 0:
            masked[:] = -np.inf
            masked[forced] = 0.0
        if options.renormalize:
            masked = _log_softmax(masked)
        rows.append(masked + hypothesis.score)
    flat = np.concatenate(rows)
    width = min(2 * options.beams, len(flat))
    best = np.argpartition(-flat, width - 1)[:width]
    best = best[np.argsort(-flat[best], kind="stable")]
    vocabulary = len(rows[0])
    found: list[tuple[_Hypothesis, int]] = []
    for index in best:
        if flat[index] == -np.inf:
            break  # the rest is masked
        parent, token = divmod(int(index), vocabulary)
        base = running[parent]
        history = (*base.log_probabilities, float(plain[parent][token]))
        cut = count == options.max_tokens and likeliest[parent] != options.end_token
        guards = (*base.guarded, guarded[parent])
        found.append((_Hypothesis((*base.tokens, token), history, float(flat[index]), guards, cut), parent))
    return found


def _continue_states(states: list[DecoderState], parents: list[int]) -> list[DecoderState]:
    """Return the state of each surviving hypothesis. A state with several successors is forked."""
    taken: set[int] = set()
    found: list[DecoderState] = []
    for parent in parents:
        found.append(states[parent].fork() if parent in taken else states[parent])
        taken.add(parent)
    return found


def _may_improve(running: float, finished: list[_Hypothesis], count: int, options: GenerationOptions) -> bool:
    """Return False if no running hypothesis can beat the worst finished one, by transformers' heuristic."""
    length = options.max_tokens if options.early_stopping == "never" and options.length_penalty > 0 else count
    worst = finished[-1].score if len(finished) == options.beams else _MIN_SCORE
    best_possible: float = running / length**options.length_penalty
    return best_possible > worst


def _shared_tokens(hypotheses: list[_Hypothesis], emitted: int, options: GenerationOptions) -> Iterator[Token]:
    """Yield the tokens after the first ``emitted`` that all hypotheses share, but no end token."""
    shortest = min(len(hypothesis.tokens) for hypothesis in hypotheses)
    for at in range(emitted, shortest):
        ids = {hypothesis.tokens[at] for hypothesis in hypotheses}
        if len(ids) > 1 or options.end_token in ids:
            return
        yield _token_at(hypotheses[0], at, last=False)


def _token_at(hypothesis: _Hypothesis, at: int, last: bool) -> Token:
    """Return the token at index ``at`` ≥ 1. The start token at 0 has no probability, hence the offset."""
    return Token(
        hypothesis.tokens[at],
        hypothesis.log_probabilities[at - 1],
        last,
        truncated=last and hypothesis.cut,
        guarded=hypothesis.guarded[at - 1],
    )


def _mask(scores: NDArray[np.float64], history: list[int], options: GenerationOptions) -> None:
    """Mask the tokens that would complete a bad word or a repeated n-gram after ``history``."""
    for word in options.bad_words:
        if len(word) == 1 or tuple(history[1 - len(word) :]) == word[:-1]:
            scores[word[-1]] = -np.inf
    size = options.no_repeat_ngram
    if size and len(history) >= size:
        beginning = history[len(history) - size + 1 :]
        for at in range(len(history) - size + 1):
            if history[at : at + size - 1] == beginning:
                scores[history[at + size - 1]] = -np.inf


def _forced(count: int, options: GenerationOptions, otherwise: int) -> int:
    """Return the token that the settings force at step ``count``, else ``otherwise``."""
    if count == options.max_tokens and options.forced_end_token is not None:
        return options.forced_end_token
    if count == 1 and options.forced_begin_token is not None:
        return options.forced_begin_token
    return otherwise


def _log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    top = scores.max()
    result: NDArray[np.float64] = scores - top - np.log(np.exp(scores - top).sum())
    return result
