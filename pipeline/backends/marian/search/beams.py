"""Greedy and beam search over any decoder, independent of ONNX.

Both give the same tokens as transformers' ``generate``, and stream: a token is yielded as soon as it is final.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ....core import Token
from ..decode.decoder import Choice, DecoderState
from ..decode.generation import GenerationOptions, SearchRequest, forced_token, log_softmax, mask

# Share of the next token's probability that is set aside for the token of the draft before, as in the biased search of
# Arivazhagan et al. (2020, Re-translation strategies for long form, simultaneous, spoken language translation). Measured in docs/benchmarks.md.
_BIAS = 0.2
# Finite substitute for minus infinity in sums of scores, as in transformers (generation/utils.py).
_MIN_SCORE = -1e9


def greedy(request: SearchRequest) -> Iterator[Token]:
    """Yield the most probable token of each step until the end token or ``options.max_tokens``."""
    state, history = request.begin(), request.history
    if request.committed:
        request.decoder.force(state, history[:-1])
    awaited = deque(request.preferred)
    while len(history) <= request.options.max_tokens:
        likely = awaited.popleft() if awaited else None
        token = token_at(request, choose(request, state, history, likely), len(history))
        if token.id != likely:
            awaited.clear()
        history.append(token.id)
        yield token
        if token.last:
            return


def token_at(request: SearchRequest, choice: Choice, count: int) -> Token:
    """The token at position ``count`` ≥ 1 of the translation."""
    at_limit, end = count == request.options.max_tokens or request.expired(), request.options.end_token
    return Token(
        choice.token,
        choice.log_probability,
        last=at_limit or choice.token == end,
        truncated=at_limit and choice.allowed != end,
        guarded=choice.guarded,
    )


def choose(request: SearchRequest, state: DecoderState, history: list[int], preferred: int | None = None) -> Choice:
    """Feed the last token of ``history``, and choose the next by the model's scores, the guards and the forced tokens.

    ``preferred``: chosen unless another token is clearly more probable.
    """
    options, decoder, count = request.options, request.decoder, len(history)
    if preferred is None and options.guards_only_pad and forced_token(count, options, -1) < 0:
        return decoder.choose(state, history[-1], options.pad_token)
    scores = decoder.step(state, history[-1]).astype(np.float64)
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
    token = forced_token(count, options, allowed)
    return Choice(token, float(log_probabilities[token]), allowed, guarded)


@dataclass(frozen=True)
class _Hypothesis:
    """A running sequence, or a finished one, whose last token is marked as such."""

    history: tuple[int, ...]  # ids, with the start and the committed tokens
    tokens: tuple[Token, ...] = ()  # after the committed ones
    score: float = 0.0  # sum of log-probabilities; the length penalty is applied when the sequence is finished

    @property
    def ended(self) -> bool:
        return bool(self.tokens) and self.tokens[-1].last


def beam_search(request: SearchRequest) -> Iterator[Token]:
    """Yield the tokens of the best hypothesis, each as soon as all hypotheses that can still win share it.

    The committed tokens begin every hypothesis. As in transformers' ``generate`` with ``decoder_input_ids``, they count neither in
    scores nor for the length penalty.
    """
    decoder, options = request.decoder, request.options
    size, committed = options.beams, len(request.committed)
    if committed >= options.max_tokens:
        return
    root, history = request.begin(), tuple(request.history)
    for known_token in history[:-1]:
        decoder.choose(root, known_token, options.pad_token)
    running, states = [_Hypothesis(history)], [root]
    finished: list[_Hypothesis] = []  # at most ``size``, best first
    emitted = 0  # length of the shared prefix that was yielded
    improvable = True
    while True:
        candidates = _expand(request, running, states)
        full = len(finished) == size and options.early_stopping is True
        if improvable and not full:
            finished += [
                replace(hypothesis, score=hypothesis.score / len(hypothesis.tokens) ** options.length_penalty)
                for hypothesis, _ in candidates[:size]
                if hypothesis.ended
            ]
            finished = sorted(finished, key=lambda hypothesis: -hypothesis.score)[:size]
        alive = [pair for pair in candidates if not pair[0].ended][:size]
        if alive:
            running = [hypothesis for hypothesis, _ in alive]
            states = _continue_states(states, [parent for _, parent in alive])
            improvable = improvable and _may_improve(running[0], finished, options.max_tokens - committed, options)
        if not alive or not improvable or (len(finished) == size and options.early_stopping is True):
            break
        if request.expired():
            # Without a finished hypothesis, take the best running one: all of them start with the yielded tokens.
            *before, cut = running[0].tokens
            cut = replace(cut, last=True, truncated=True)
            finished = finished or [replace(running[0], tokens=(*before, cut))]
            break
        for token in _shared_tokens(running + finished[:1], emitted, options.end_token):
            emitted += 1
            yield token
    best = (finished or running)[0].tokens
    # If everything was yielded before the time ran out, only the end token is missing.
    yield from best[emitted:] or (Token(options.end_token, 0.0, last=True, truncated=True),)


def _expand(
    request: SearchRequest, running: list[_Hypothesis], states: list[DecoderState]
) -> list[tuple[_Hypothesis, int]]:
    """Return the 2·beams best continuations of the running hypotheses, each with the index of its parent."""
    options, count = request.options, len(running[0].history)
    rows: list[NDArray[np.float64]] = []
    tokens: list[NDArray[np.int64]] = []  # of each row those that can be chosen, which are few with a shortlist
    guarded: list[bool] = []
    likeliest: list[int] = []
    plain: list[NDArray[np.float64]] = []
    each = request.decoder.step_each(states, [hypothesis.history[-1] for hypothesis in running])
    masked = np.empty(len(each[0]))
    for hypothesis, scores in zip(running, each, strict=True):
        # As in transformers' beam search, bad words and forced tokens apply after a softmax over all tokens. With a shortlist, most
        # tokens have no score.
        scored = np.flatnonzero(scores > -np.inf)
        masked.fill(-np.inf)
        masked[scored] = log_softmax(scores[scored].astype(np.float64))
        only = forced_token(count, options, -1)
        own = masked[scored] if only < 0 else masked[[only]]
        masked[options.pad_token] = -np.inf
        likeliest.append(int(scored[np.argmax(masked[scored])]))
        mask(masked, list(hypothesis.history), options)
        guarded.append(bool(masked[likeliest[-1]] == -np.inf))
        if only >= 0:
            scored, masked[only] = np.array([only]), 0.0
        allowed = masked[scored] > -np.inf
        tokens.append(scored[allowed])
        plain.append(own[allowed])
        left = masked[tokens[-1]]
        rows.append((log_softmax(left) if options.renormalize and len(left) else left) + hypothesis.score)
    flat = np.concatenate(rows)
    width = min(2 * options.beams, len(flat))
    best = np.argpartition(-flat, width - 1)[:width] if width else np.zeros(0, np.int64)
    best = best[np.argsort(-flat[best], kind="stable")]
    starts = np.cumsum([0, *map(len, rows)])
    longest: list[tuple[_Hypothesis, int]] = []
    for index in best:
        parent = int(np.searchsorted(starts, index, side="right")) - 1
        place = index - starts[parent]
        token = int(tokens[parent][place])
        at_limit, base = count == options.max_tokens, running[parent]
        newest = Token(
            token,
            float(plain[parent][place]),
            last=at_limit or token == options.end_token,
            truncated=at_limit and likeliest[parent] != options.end_token,
            guarded=guarded[parent],
        )
        longer = _Hypothesis((*base.history, token), (*base.tokens, newest), float(flat[index]))
        longest.append((longer, parent))
    return longest


def _continue_states(states: list[DecoderState], parents: list[int]) -> list[DecoderState]:
    """Return the state of each surviving hypothesis. A state with several successors is forked."""
    return [
        states[parent].fork() if parent in parents[:number] else states[parent] for number, parent in enumerate(parents)
    ]


def _may_improve(best: _Hypothesis, finished: list[_Hypothesis], most: int, options: GenerationOptions) -> bool:
    """Return False if no running hypothesis can beat the worst finished one, by transformers' heuristic.

    ``best``: the best running one. At most ``most`` tokens will be generated.
    """
    length = most if options.early_stopping == "never" and options.length_penalty > 0 else len(best.tokens)
    worst = finished[-1].score if len(finished) == options.beams else _MIN_SCORE
    best_possible: float = best.score / length**options.length_penalty
    return best_possible > worst


def _shared_tokens(hypotheses: list[_Hypothesis], emitted: int, end_token: int) -> Iterator[Token]:
    """Yield the tokens after the first ``emitted`` that all hypotheses share, but no end token."""
    for tokens in zip(*(hypothesis.tokens[emitted:] for hypothesis in hypotheses), strict=False):
        ids = {token.id for token in tokens}
        if len(ids) > 1 or end_token in ids:
            return
        yield tokens[0]
