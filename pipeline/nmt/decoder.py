"""Encoder and decoder over ONNX Runtime: ``encode(source) → DecoderState``, ``step(state, token) → StepOutput``.

What must hold (why: without it translations are silently wrong, or the third step fails):

- every mandatory past input is fed at the first step, with a placeholder of length zero;
- the encoder runs once a sentence; encoder KV is kept from the step that computes it and is fed, the same objects, at
  every later step; what a cached step returns in its place is never asked for;
- KV stays in ``OrtValue``s and never becomes a Python array;
- inputs are bound by name, and only those that the graph has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from pipeline.errors import ModelError
from pipeline.nmt.layout import PAST, Layout

Logits = NDArray[np.float32]


def _quiet_options() -> ort.RunOptions:
    options = ort.RunOptions()
    options.log_severity_level = 4  # errors arrive as exceptions; on the terminal they would tear the subtitles
    return options


@dataclass
class DecoderState:
    """One sentence in translation. Made by ``encode``, changed by ``step`` alone."""

    fixed: Mapping[str, ort.OrtValue]
    """What the encoder computed: attention mask [1, S], hidden states [1, S, d_model]."""
    encoder_kv: Mapping[str, ort.OrtValue] = field(default_factory=dict)
    """Past input name → cross-attention key or value [1, heads, S, head_dim]. Written once, by the first step."""
    decoder_kv: Mapping[str, ort.OrtValue] = field(default_factory=dict)
    """Past input name → self-attention key or value [1, heads, steps, head_dim]."""
    steps: int = 0
    options: ort.RunOptions = field(default_factory=_quiet_options)

    def terminate(self) -> None:
        """Stop a step that is running on another thread; that step raises, and this state is of no more use."""
        self.options.terminate = True


@dataclass(frozen=True, eq=False)
class StepOutput:
    """Scores of the next token."""

    logits: Logits
    """[vocabulary], as the model gave them: nothing masked."""


class Decoder(ABC):
    """A model's encoder and decoder sessions, for one layout. States are independent; threads may share a decoder."""

    def __init__(self, layout: Layout, threads: int) -> None:
        self.layout = layout
        self._encoder = _session(layout.encoder.path, threads)
        kv = [
            (f"past_key_values.{i}.{side}.{kind}", f"present.{i}.{side}.{kind}")
            for i in range(layout.layers)
            for side in ("decoder", "encoder")
            for kind in ("key", "value")
        ]
        self._decoder_kv = {past: present for past, present in kv if ".decoder." in past}
        self._encoder_kv = {past: present for past, present in kv if ".encoder." in past}

    def encode(self, source: Sequence[int], on_start: Callable[[DecoderState], None] | None = None) -> DecoderState:
        """Run the encoder over ``source`` ids (with the end-of-sentence id).

        ``on_start`` receives the state before the run, so that another thread can terminate it.
        """
        ids = np.array([source], np.int64)
        mask = ort.OrtValue.ortvalue_from_numpy(np.ones_like(ids))
        state = DecoderState(fixed={})
        if on_start:
            on_start(state)
        feed = {"input_ids": ort.OrtValue.ortvalue_from_numpy(ids), "attention_mask": mask}
        (hidden,) = self._encoder.run_with_ort_values(["last_hidden_state"], feed, state.options)
        state.fixed = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden}
        return state

    @abstractmethod
    def step(self, state: DecoderState, token: int) -> StepOutput:
        """Feed ``token`` (the decoder start token first) and return the scores of the one that follows."""

    def _run(
        self, session: ort.InferenceSession, state: DecoderState, token: int, feed: dict[str, ort.OrtValue], first: bool
    ) -> StepOutput:
        feed["input_ids"] = ort.OrtValue.ortvalue_from_numpy(np.array([[token]], np.int64))
        # Encoder KV is asked for once: a cached step returns an empty tensor in its place.
        wanted = {**self._decoder_kv, **self._encoder_kv} if first else self._decoder_kv
        logits, *presents = session.run_with_ort_values(["logits", *wanted.values()], feed, state.options)
        kv = dict(zip(wanted, presents, strict=True))
        if first:
            state.encoder_kv = {name: kv[name] for name in self._encoder_kv}
        state.decoder_kv = {name: kv[name] for name in self._decoder_kv}
        state.steps += 1
        scores: Logits = logits.numpy()[0, -1]
        return StepOutput(scores)


class MergedDecoder(Decoder):
    """One graph with ``use_cache_branch``: 4 past inputs a layer, mandatory at every step."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        assert layout.merged is not None
        self._session = _session(layout.merged.path, threads)
        self._flags = {flag: ort.OrtValue.ortvalue_from_numpy(np.array([flag])) for flag in (False, True)}
        # Zero positions. One zero position would be attended to wherever a graph does not ignore its past.
        empty = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, layout.heads, 0, layout.head_dim), np.float32))
        self._no_past = {name: empty for name in layout.merged.inputs if PAST.fullmatch(name)}

    def step(self, state: DecoderState, token: int) -> StepOutput:
        first = state.steps == 0
        past = self._no_past if first else {**state.decoder_kv, **state.encoder_kv}
        feed = {**state.fixed, **past, "use_cache_branch": self._flags[not first]}
        return self._run(self._session, state, token, feed, first)


class SplitDecoder(Decoder):
    """Two graphs: the first step computes all KV, later steps take it."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        assert layout.first_step is not None
        assert layout.with_past is not None
        self._first = _session(layout.first_step.path, threads)
        self._later = _session(layout.with_past.path, threads)
        self._later_inputs = set(layout.with_past.inputs)

    def step(self, state: DecoderState, token: int) -> StepOutput:
        if state.steps == 0:
            return self._run(self._first, state, token, dict(state.fixed), True)
        feed = {name: value for name, value in state.fixed.items() if name in self._later_inputs}
        return self._run(self._later, state, token, {**feed, **state.decoder_kv, **state.encoder_kv}, False)


def load_decoder(layout: Layout, threads: int = 1) -> Decoder:
    """The decoder class for a layout, with its sessions open. ``threads`` 0 leaves the number to ONNX Runtime."""
    return MergedDecoder(layout, threads) if layout.merged else SplitDecoder(layout, threads)


def _session(path: Path, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Idle threads that spin take the cores from the recogniser.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exception classes share no base of their own
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"ONNX Runtime {ort.__version__} cannot load {path}: {reason}; fetch or export it again"
        ) from error
