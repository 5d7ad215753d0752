"""Encoder and decoder over ONNX Runtime: ``encode(source) → DecoderState``, ``step(state, token) → Logits``.

Invariants. If one is broken, translations are silently wrong or the third step fails:

- Every mandatory past input is fed at the first step, with a placeholder of length zero.
- The encoder runs once per sentence. The encoder KV of the step that computes it is kept, and the same objects are fed
  at every later step. The encoder KV outputs of a cached step are never requested.
- KV stays in ``OrtValue``s.
- Inputs are bound by name, and only inputs that the graph has.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ....errors import ModelError
from ...onnx_header import OnnxHeader
from ...onnx_session import open_session, quiet_options, translate_ort_errors
from .graphs import PAST, Layout

Logits = NDArray[np.float32]
"""[vocabulary]: the scores of the next token as the model returns them; a compiled graph leaves out the pad token."""
_DTYPES = {"float32": np.float32, "float16": np.float16}


@dataclass
class DecoderState:
    """State of one sentence. Created by ``encode`` or ``fork``, changed only by the decoder's methods."""

    fixed: Mapping[str, ort.OrtValue]
    """Constant inputs by name: attention mask [1, S], hidden states [1, S, d_model]."""
    encoder_kv: Mapping[str, ort.OrtValue] = field(default_factory=dict)
    """Past input name → cross-attention key or value [1, heads, S, head_dim]. Set once, by the first step."""
    decoder_kv: Mapping[str, ort.OrtValue] = field(default_factory=dict)
    """Past input name → self-attention key or value [1, heads, steps, head_dim]."""
    tokens: tuple[int, ...] = ()
    """The tokens fed so far, beginning with the start token."""
    options: ort.RunOptions = field(default_factory=quiet_options)

    @property
    def steps(self) -> int:
        return len(self.tokens)

    def fork(self) -> DecoderState:
        """Return an independent state. Constant values are shared; KV is copied only if runs write to it in place."""
        return dataclasses.replace(self)

    def terminate(self) -> None:
        """Stop a run of this state or its forks on another thread. The run raises; the states cannot be used again."""
        self.options.terminate = True


@dataclass(frozen=True)
class Choice:
    """The next token."""

    token: int
    log_probability: float
    """Natural logarithm of its probability among all tokens but the pad token."""
    allowed: int
    """The most probable token that no guard masks. Equals ``token`` unless another token is forced."""
    guarded: bool = False
    """Whether a guard masks a more probable token."""


class Decoder(ABC):
    """A model's encoder and decoder sessions, for one layout. States are independent; threads may share a decoder."""

    takes_several = False
    """Whether a run may take several tokens. Few exports do: some see only one new token, others also the later ones."""

    aligned = False
    """Whether the model gives out an alignment head."""
    guided = False
    """Whether the alignment is good enough to decide what is shown of a draft: of students, whose training guides it; see ``DraftTokens``."""

    def __init__(self, layout: Layout, threads: int) -> None:
        self.layout = layout
        self._encoder = open_session(layout.encoder.path, threads) if layout.encoder else None
        self._first = open_session(layout.first.path, threads)
        self._later = self._first if layout.later is layout.first else open_session(layout.later.path, threads)

    def encode(self, source: Sequence[int], on_start: Callable[[DecoderState], None] | None = None) -> DecoderState:
        """Run the encoder over ``source`` ids (with the end-of-sentence id).

        ``on_start`` receives the state before the run, so that another thread can terminate it.
        """
        ids = np.array([source], np.int64)
        source_ids, mask = ort.OrtValue.ortvalue_from_numpy(ids), ort.OrtValue.ortvalue_from_numpy(np.ones_like(ids))
        state = DecoderState(fixed={})
        if on_start:
            on_start(state)
        if self._encoder is None:
            state.fixed = {"input_ids": source_ids, "attention_mask": mask}
            return state
        feed = {"input_ids": source_ids, "attention_mask": mask}
        assert self.layout.encoder is not None
        with translate_ort_errors(self.layout.encoder.path, 0, state.options):
            (hidden,) = self._encoder.run_with_ort_values(["last_hidden_state"], feed, state.options)
        # Exporters use either name for the decoder's mask of the source.
        state.fixed = {"encoder_attention_mask": mask, "attention_mask": mask, "encoder_hidden_states": hidden}
        return state

    def check(self, source: Sequence[int], start_token: int, end_token: int) -> int:
        """Decode two tokens of ``source``, so that a broken model fails at load time. Return the number of scores."""
        state = self.encode(source)
        for token in (start_token, end_token):
            logits = self.step(state, token)
            if logits.ndim != 1 or np.isnan(logits).any() or not np.isfinite(logits.max()):
                raise ModelError(
                    f"{self.layout.first.path}: the scores are not all finite numbers; export the model again"
                )
        return len(logits)

    def step(self, state: DecoderState, token: int) -> Logits:
        """Feed ``token`` (at first the decoder start token) and return the scores of the next token."""
        return self._feed(state, (token,))

    def step_each(self, states: Sequence[DecoderState], tokens: Sequence[int]) -> list[Logits]:
        """``step`` for each of several hypotheses of a sentence."""
        return [self.step(state, token) for state, token in zip(states, tokens, strict=True)]

    def choose(self, state: DecoderState, token: int, pad: int) -> Choice:
        """Feed ``token`` and return the most probable next token."""
        scores = self.step(state, token).astype(np.float64)
        # The pad token's score is exactly 0. Unmasked, it would win whenever all real tokens score below 0.
        scores[pad] = -np.inf
        best = int(np.argmax(scores))
        return Choice(best, -float(np.log(np.exp(scores - scores[best]).sum())), best)

    def attention(self, state: DecoderState, tokens: Sequence[int]) -> NDArray[np.float32] | None:
        """Make ``state`` one that was fed ``tokens`` alone, and return the attention of each over the source: [tokens, S].

        Each row sums to 1. A recurrent decoder keeps it, and runs only from the first token on that ``state`` was not fed.
        None, without a run, if the model does not give out an alignment head.
        """
        return None

    def attended(self, state: DecoderState) -> NDArray[np.float32] | None:
        """The attention over the source, [S], with which the next token was chosen in the last run.

        None if the model does not give out an alignment head.
        """
        return None

    def hide(self, state: DecoderState, positions: Sequence[int]) -> None:
        """Make ``state``, but not its forks, unable to look at some positions of the source; those after them move up.

        Only for models that give out an alignment head.
        """
        raise NotImplementedError

    def revealed(self, state: DecoderState) -> DecoderState:
        """An independent state of the same source, of which nothing is hidden, that was fed the same tokens or none.

        Only for models that give out an alignment head.
        """
        raise NotImplementedError

    def can_write(self, token: int) -> bool:
        """Whether the model can produce a token of its vocabulary."""
        return True

    def truncate(self, state: DecoderState, steps: int) -> None:
        """Make ``state`` forget the tokens after the first ``steps``. Only for models that give out an alignment head."""
        raise NotImplementedError

    def force(self, state: DecoderState, tokens: Sequence[int]) -> Logits:
        """Feed several given tokens and return the scores of the token after the last one.

        They are fed one at a time, or in one run after the first if the graph ``takes_several``.
        """
        if not tokens:
            raise ValueError("no tokens to force")
        if self.takes_several and state.steps:
            return self._feed(state, tuple(tokens))
        first, *rest = tokens
        scores = self._feed(state, (first,))
        if self.takes_several and rest:
            return self._feed(state, tuple(rest))
        for token in rest:
            scores = self._feed(state, (token,))
        return scores

    @abstractmethod
    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> Logits:
        """Run one graph over ``tokens``, which follow ``state.tokens``."""

    def _run(
        self,
        session: ort.InferenceSession,
        header: OnnxHeader,
        state: DecoderState,
        tokens: tuple[int, ...],
        feed: Mapping[str, ort.OrtValue],
        kept: Mapping[str, str],
    ) -> tuple[Logits, dict[str, ort.OrtValue]]:
        """Run a graph on those values of ``feed`` that it has inputs for.

        Return the scores and the outputs named in ``kept`` (past input → output), keyed by past input.
        """
        name = "decoder_input_ids" if "decoder_input_ids" in header.inputs else "input_ids"
        ids = np.array([tokens], np.int64)
        bound = {**feed, name: ort.OrtValue.ortvalue_from_numpy(ids)}
        if "decoder_attention_mask" in header.inputs:
            bound["decoder_attention_mask"] = ort.OrtValue.ortvalue_from_numpy(np.ones_like(ids))
        bound = {name: value for name, value in bound.items() if name in header.inputs}
        with translate_ort_errors(header.path, state.steps, state.options):
            logits, *values = session.run_with_ort_values(["logits", *kept.values()], bound, state.options)
        last: Logits = logits.numpy()[0, -1].astype(np.float32, copy=False)
        return last, dict(zip(kept, values, strict=True))

    def _kv_names(self, side: str) -> dict[str, str]:
        """Map the past inputs of one side (decoder or encoder) to the KV outputs."""
        return {
            f"past_key_values.{layer}.{side}.{kind}": f"present.{layer}.{side}.{kind}"
            for layer in range(self.layout.layers)
            for kind in ("key", "value")
        }

    def _empty_past(self) -> dict[str, ort.OrtValue]:
        """Return a placeholder of zero positions for every past input.

        A placeholder with one zero position would be attended to if a graph does not ignore its past.
        """
        shape = (1, self.layout.heads, 0, self.layout.head_dim)
        return {
            name: ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, _DTYPES.get(port.dtype, np.float32)))
            for name, port in self.layout.first.inputs.items()
            if PAST.fullmatch(name)
        }
