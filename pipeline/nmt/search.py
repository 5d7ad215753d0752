"""Greedy and beam search over any decoder, independent of ONNX.

Both give the same tokens as transformers' ``generate``. All stream: a token is yielded as soon as it is
final.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .decoder import Decoder, DecoderState
from .generation import GenerationOptions, OnStart, Token, forced, log_softmax, mask, no_time_limit

# Share of the next token's probability that is set aside for the token of the draft before, as in the biased search of
# Arivazhagan et al. (2020, Re-translation strategies for long form, simultaneous, spoken language translation). Read speech of 109 s, en to pt:
# target words taken back per final word, seconds until a word's translation is shown and committed: 0 0.59, 1.08, 2.02; 0.1 0.48, 1.06,
# 2.02; 0.2 0.42, 1.03, 1.99; 0.4 0.29, 1.00, 1.99. Of 150 sentences chrF against their translation as a whole: 94.3, 94.0, 93.5, 91.4.
_BIAS = 0.2
# Finite substitute for minus infinity in sums of scores, as in transformers (generation/utils.py).
_MIN_SCORE = -1e9


def greedy(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = no_time_limit,
    *,
    committed: Sequence[int] = (),
    preferred: Sequence[int] = (),
) -> Iterator[Token]:
    """Yield the most probable token of each step until the end token or ``options.max_tokens``.

    ``expired`` is called after every step. Once it returns True, the sentence ends there, marked as truncated.

    ``committed`` tokens begin the translation, count towards ``options.max_tokens``, and are not yielded. As long as what
    follows them is what is ``preferred``, the next token of that is chosen unless another one is clearly more probable.
    """
    state = decoder.encode(source, on_start)
    history = [options.start_token, *committed]
    if committed:
        decoder.force(state, history[:-1])
    awaited = deque(preferred)
    for count in range(len(history), options.max_tokens + 1):
        likely = awaited.popleft() if awaited else None
        token = token_at(choose(decoder, state, history, options, count, likely), count, options, expired)
        if token.id != likely:
            awaited.clear()
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


def choose(
    decoder: Decoder,
    state: DecoderState,
    history: list[int],
    options: GenerationOptions,
    count: int,
    preferred: int | None = None,
) -> Chosen:
    """Choose the token at position ``count``; see ``greedy`` for the token that is ``preferred``."""
    if preferred is None and options.guards_only_pad and forced(count, options, -1) < 0:
        choice = decoder.choose(state, history[-1], options.pad_token)
        return Chosen(choice.token, choice.log_probability, choice.token, guarded=False)
    scores = decoder.step(state, history[-1]).logits.astype(np.float64)
    # The pad token's score is exactly 0. Unmasked, it would win whenever all real tokens score below 0.
    scores[options.pad_token] = -np.inf
    log_probabilities = log_softmax(scores)
    likeliest = int(np.argmax(scores))
    mask(scores, history, options)
    allowed = int(np.argmax(scores))
    guarded = allowed != likeliest
    if preferred is not None and scores[preferred] > -np.inf:
        less = np.exp(log_probabilities[allowed]) - np.exp(log_probabilities[preferred])
        allowed = preferred if (1 - _BIAS) * less <= _BIAS else allowed
    token = forced(count, options, allowed)
    return Chosen(token, float(log_probabilities[token]), allowed, guarded)


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
    expired: Callable[[], bool] = no_time_limit,
    *,
    committed: Sequence[int] = (),
) -> Iterator[Token]:
    """Yield the tokens of the best hypothesis, each as soon as all hypotheses that can still win share it.

    ``committed`` tokens begin every hypothesis, count towards ``options.max_tokens``, and are not yielded. As in transformers'
    ``generate`` with ``decoder_input_ids``, they count neither in scores nor for the length penalty.
    """
    size, known = options.beams, len(committed)
    if known >= options.max_tokens:
        return
    root = decoder.encode(source, on_start)
    history = (options.start_token, *committed)
    for known_token in history[:-1]:
        decoder.choose(root, known_token, options.pad_token)
    running = [_Hypothesis(history, (0.0,) * known, 0.0, (False,) * known)]
    states = [root]
    finished: list[_Hypothesis] = []  # at most ``size``, best first
    emitted = len(history)  # length of the shared prefix that was yielded, with the start and the committed tokens
    improvable = True
    count = known
    while True:
        count += 1
        candidates = _expand(decoder, running, states, options, count)
        at_limit = count == options.max_tokens
        ended = [at_limit or hypothesis.tokens[-1] == options.end_token for hypothesis, _ in candidates]
        full = len(finished) == size and options.early_stopping is True
        if improvable and not full:
            finished += [
                replace(h, score=h.score / (count - known) ** options.length_penalty)
                for (h, _), over in zip(candidates[:size], ended, strict=False)
                if over
            ]
            finished = sorted(finished, key=lambda h: -h.score)[:size]
        alive = [pair for pair, over in zip(candidates, ended, strict=True) if not over][:size]
        if alive:
            running = [hypothesis for hypothesis, _ in alive]
            states = _continue_states(states, [parent for _, parent in alive])
            improvable = improvable and _may_improve(
                running[0].score, finished, count - known, options.max_tokens - known, options
            )
        if not alive or not improvable or (len(finished) == size and options.early_stopping is True):
            break
        if expired():
            # Without a finished hypothesis, take the best running one: all of them start with the yielded tokens.
            finished = finished or [replace(running[0], cut=True)]
            break
        for token in _shared_tokens(running + finished[:1], emitted, options):
            emitted += 1
            yield token
    yield from _rest(finished[0] if finished else running[0], emitted, options)


def _rest(best: _Hypothesis, emitted: int, options: GenerationOptions) -> Iterator[Token]:
    """The tokens of the best hypothesis after the first ``emitted``."""
    if emitted == len(best.tokens):  # everything was yielded before the time ran out; only the end token is missing
        yield Token(options.end_token, 0.0, last=True, truncated=True)
    for at in range(emitted, len(best.tokens)):
        yield _token_at(best, at, last=at == len(best.tokens) - 1)


def _expand(
    decoder: Decoder, running: list[_Hypothesis], states: list[DecoderState], options: GenerationOptions, count: int
) -> list[tuple[_Hypothesis, int]]:
    """Return the 2·beams best continuations of the running hypotheses, each with the index of its parent."""
    rows: list[NDArray[np.float64]] = []
    guarded: list[bool] = []
    likeliest: list[int] = []
    plain: list[NDArray[np.float64]] = []
    for hypothesis, state in zip(running, states, strict=True):
        scores = decoder.step(state, hypothesis.tokens[-1]).logits.astype(np.float64)
        # As in transformers' beam search, bad words and forced tokens apply after a softmax over all tokens.
        log_probabilities = log_softmax(scores)
        plain.append(log_probabilities)
        masked = log_probabilities.copy()
        masked[options.pad_token] = -np.inf
        likeliest.append(int(np.argmax(masked)))
        mask(masked, list(hypothesis.tokens), options)
        guarded.append(bool(masked[likeliest[-1]] == -np.inf))
        only = forced(count, options, -1)
        if only >= 0:
            masked[:] = -np.inf
            masked[only] = 0.0
        if options.renormalize:
            masked = log_softmax(masked)
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


def _may_improve(
    running: float, finished: list[_Hypothesis], count: int, most: int, options: GenerationOptions
) -> bool:
    """Return False if no running hypothesis can beat the worst finished one, by transformers' heuristic.

    ``count`` tokens are generated, and at most ``most`` will be.
    """
    length = most if options.early_stopping == "never" and options.length_penalty > 0 else count
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
