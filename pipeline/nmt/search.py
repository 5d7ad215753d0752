"""How tokens are chosen: greedy and beam search over any decoder, knowing decoders by their calls and nothing of ONNX.

Both equal transformers' ``generate`` token for token, and both stream: a token is yielded when nothing can change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.nmt.decoder import Decoder, DecoderState

OnStart = Callable[[DecoderState], None]
# Stands for minus infinity where scores are added up, as in transformers (generation/utils.py).
_NEVER = -1e9


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
    # Generated first (transformers' forced_bos_token_id).
    forced_begin_token: int | None = None
    # No sequence of so many tokens is generated twice; 0 allows all.
    no_repeat_ngram: int = 0
    # Tokens generated at most, the end token included.
    max_tokens: int = 511
    # 1 is greedy.
    beams: int = 1
    # Scores are divided by length to this power.
    length_penalty: float = 1.0
    # Probabilities are made to sum to 1 again after masking (transformers' renormalize_logits); for beam search.
    renormalize: bool = False
    # transformers' early_stopping: True stops at ``beams`` finished hypotheses, False by a heuristic, "never" when
    # nothing better can come.
    early_stopping: bool | str = False

    @property
    def guards_only_pad(self) -> bool:
        """True where no token but the pad token is ever ruled out."""
        return not self.no_repeat_ngram and all(word == (self.pad_token,) for word in self.bad_words)


@dataclass(frozen=True)
class Token:
    """One generated token."""

    id: int
    log_probability: float
    """Natural logarithm of the model's probability for it."""
    last: bool
    truncated: bool = False
    """A limit ended the sentence, not the model."""
    guarded: bool = False
    """A guard (bad word, repetition) kept a likelier token out."""
    searched_again: bool = False
    """On a sentence's last token: a first search looped or met its limit, and this is not its result."""


def _never() -> bool:
    return False


def generate(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _never,
) -> Iterator[Token]:
    """Yield the translation of ``source`` token by token, the end token as the last.

    ``expired`` is asked after every step; once true, the sentence ends with what there is, marked as truncated.
    """
    return (greedy if options.beams == 1 else beam_search)(decoder, source, options, on_start, expired)


def greedy(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _never,
) -> Iterator[Token]:
    """Yield the most probable token of each step until the end token or ``options.max_tokens``."""
    state = decoder.encode(source, on_start)
    history = [options.start_token]
    for count in range(1, options.max_tokens + 1):
        choice = _choose(decoder, state, history, options, count)
        at_limit = count == options.max_tokens or expired()
        last = at_limit or choice.token == options.end_token
        history.append(choice.token)
        yield Token(
            choice.token,
            choice.log_probability,
            last,
            truncated=at_limit and choice.allowed != options.end_token,
            guarded=choice.guarded,
        )
        if last:
            return


@dataclass(frozen=True)
class _Chosen:
    """What follows, by model, guards and settings."""

    token: int
    log_probability: float
    allowed: int
    """The likeliest token that no guard rules out; ``token``, unless another is forced."""
    guarded: bool


def _choose(
    decoder: Decoder, state: DecoderState, history: list[int], options: GenerationOptions, count: int
) -> _Chosen:
    if options.guards_only_pad and _forced(count, options, -1) < 0:
        choice = decoder.choose(state, history[-1], options.pad_token)
        return _Chosen(choice.token, choice.log_probability, choice.token, guarded=False)
    scores = decoder.step(state, history[-1]).logits.astype(np.float64)
    # The pad row's score is exactly 0: unmasked, it wins whenever all real tokens score below it.
    scores[options.pad_token] = -np.inf
    log_probabilities = _log_softmax(scores)
    likeliest = int(np.argmax(scores))
    _mask(scores, history, options)
    allowed = int(np.argmax(scores))
    token = _forced(count, options, allowed)
    return _Chosen(token, float(log_probabilities[token]), allowed, allowed != likeliest)


@dataclass(frozen=True)
class _Hypothesis:
    """A sequence under way or finished; ``score`` is the sum of log-probabilities, penalised once finished."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    score: float
    guarded: tuple[bool, ...] = ()
    cut: bool = False
    """A limit ended it."""


def beam_search(
    decoder: Decoder,
    source: Sequence[int],
    options: GenerationOptions,
    on_start: OnStart | None = None,
    expired: Callable[[], bool] = _never,
) -> Iterator[Token]:
    """Yield the best hypothesis of a beam search, each token as soon as all hypotheses that may still win share it."""
    size = options.beams
    root = decoder.encode(source, on_start)
    running = [_Hypothesis((options.start_token,), (), 0.0)]
    states = [root]
    finished: list[_Hypothesis] = []  # at most ``size``, the best first
    emitted = 1  # tokens of the shared prefix that were yielded; the start token never is
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
            states = _carry_on(states, [parent for _, parent in alive])
            improvable = improvable and _may_improve(running[0].score, finished, count, options)
        if not alive or not improvable or (len(finished) == size and options.early_stopping is True):
            break
        if expired():
            # The best that agrees with what was yielded: every running hypothesis does.
            finished = finished or [replace(running[0], cut=True)]
            break
        for token in _shared(running + finished[:1], emitted, options):
            emitted += 1
            yield token
    best = finished[0] if finished else running[0]
    if emitted == len(best.tokens):  # all of it was yielded before the time ran out
        yield Token(options.end_token, 0.0, last=True, truncated=True)
    for at in range(emitted, len(best.tokens)):
        last = at == len(best.tokens) - 1
        yield _token(best, at, last)


def _expand(
    decoder: Decoder,
    running: list[_Hypothesis],
    states: list[DecoderState],
    options: GenerationOptions,
    count: int,
) -> list[tuple[_Hypothesis, int]]:
    """The 2·beams best continuations of all running hypotheses, each with the index of the one it continues."""
    rows: list[NDArray[np.float64]] = []
    guarded: list[bool] = []
    likeliest: list[int] = []
    plain: list[NDArray[np.float64]] = []
    for hypothesis, state in zip(running, states, strict=True):
        scores = decoder.step(state, hypothesis.tokens[-1]).logits.astype(np.float64)
        # Bad words and forced tokens act on log-probabilities that count them, as in transformers' beam search.
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
            break  # what is ruled out is no hypothesis
        parent, token = divmod(int(index), vocabulary)
        base = running[parent]
        history = (*base.log_probabilities, float(plain[parent][token]))
        cut = count == options.max_tokens and likeliest[parent] != options.end_token
        guards = (*base.guarded, guarded[parent])
        found.append((_Hypothesis((*base.tokens, token), history, float(flat[index]), guards, cut), parent))
    return found


def _carry_on(states: list[DecoderState], parents: list[int]) -> list[DecoderState]:
    """The state of each surviving hypothesis; one that several go on from is forked."""
    taken: set[int] = set()
    found: list[DecoderState] = []
    for parent in parents:
        found.append(states[parent].fork() if parent in taken else states[parent])
        taken.add(parent)
    return found


def _may_improve(running: float, finished: list[_Hypothesis], count: int, options: GenerationOptions) -> bool:
    """False once no running hypothesis can beat the worst finished one, by transformers' heuristic."""
    length = options.max_tokens if options.early_stopping == "never" and options.length_penalty > 0 else count
    worst = finished[-1].score if len(finished) == options.beams else _NEVER
    best_possible: float = running / length**options.length_penalty
    return best_possible > worst


def _shared(hypotheses: list[_Hypothesis], emitted: int, options: GenerationOptions) -> Iterator[Token]:
    """Tokens after the first ``emitted`` that all hypotheses share; none that ends the sentence."""
    shortest = min(len(hypothesis.tokens) for hypothesis in hypotheses)
    for at in range(emitted, shortest):
        ids = {hypothesis.tokens[at] for hypothesis in hypotheses}
        if len(ids) > 1 or options.end_token in ids:
            return
        yield _token(hypotheses[0], at, last=False)


def _token(hypothesis: _Hypothesis, at: int, last: bool) -> Token:
    """The token at ``at``; the start token, at 0, has no probability."""
    return Token(
        hypothesis.tokens[at],
        hypothesis.log_probabilities[at - 1],
        last,
        truncated=last and hypothesis.cut,
        guarded=hypothesis.guarded[at - 1],
    )


def _mask(scores: NDArray[np.float64], history: list[int], options: GenerationOptions) -> None:
    """Rule out what may not follow ``history``: the last token of each bad word and n-gram that begins there."""
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
    """The token that the settings force at step ``count``, else ``otherwise``."""
    if count == options.max_tokens and options.forced_end_token is not None:
        return options.forced_end_token
    if count == 1 and options.forced_begin_token is not None:
        return options.forced_begin_token
    return otherwise


def _log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    top = scores.max()
    result: NDArray[np.float64] = scores - top - np.log(np.exp(scores - top).sum())
    return result
