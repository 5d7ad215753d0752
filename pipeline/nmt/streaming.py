"""Decoder of the streaming layout: the graph extends its KV buffers in place and chooses the next token itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from pipeline.errors import ModelError
from pipeline.nmt.decoder import Choice, Decoder, DecoderState, Logits, StepOutput
from pipeline.nmt.layout import COMPILE_HINT, Layout
from pipeline.nmt.session import translate_ort_errors

ALIGNMENT = "alignment"
"""Additional output of a graph compiled with an alignment head."""
# Initial capacity of a sentence's KV buffers, in positions. They double when full.
_INITIAL_CAPACITY = 64


class _Memory:
    """Input and output buffers of one hypothesis, bound once so that a step only triggers the run."""

    def __init__(
        self, session: ort.InferenceSession, layout: Layout, encoder_kv: Mapping[str, ort.OrtValue], capacity: int
    ) -> None:
        self._session, self._layout, self._encoder_kv = session, layout, encoder_kv
        self.kv = np.zeros((2 * layout.layers, 1, layout.heads, capacity, layout.head_dim), np.float32)
        """Keys and values of all layers [2 · layers, 1, heads, capacity, head_dim]."""
        self.token = np.zeros(1, np.int64)
        self.log_probability = np.zeros(1, np.float32)
        self._lengths = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._ids, self._positions = np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64)
        self._logits: Logits | None = None
        self._values: list[ort.OrtValue] = []  # keeps the bound values alive, which the binding does not do
        self.binding = session.io_binding()
        for name, value in encoder_kv.items():
            self.binding.bind_ortvalue_input(name, value)
        for index, buffer in enumerate(self.kv):
            name = f"{index // 2}.decoder.{('key', 'value')[index % 2]}"
            value = self._value(buffer)
            self.binding.bind_ortvalue_input(f"past_key_values.{name}", value)
            self.binding.bind_ortvalue_output(f"present.{name}", value)
        for name, array in zip(("seqlens_k", "total_sequence_length"), self._lengths, strict=True):
            self.binding.bind_ortvalue_input(name, self._value(array))
        self.binding.bind_ortvalue_output("token", self._value(self.token))
        self.binding.bind_ortvalue_output("log_probability", self._value(self.log_probability))
        self.alignment: NDArray[np.float32] | None = None

    @property
    def capacity(self) -> int:
        return self.kv.shape[3]

    def copied(self, capacity: int, steps: int) -> _Memory:
        """Return a copy of the first ``steps`` positions with capacity for ``room`` positions."""
        other = _Memory(self._session, self._layout, self._encoder_kv, capacity)
        other.kv[:, :, :, :steps] = self.kv[:, :, :, :steps]
        other.alignment = None if self.alignment is None else self.alignment.copy()
        return other

    def _value(self, array: NDArray[np.generic]) -> ort.OrtValue:
        value = ort.OrtValue.ortvalue_from_numpy(array)  # shares the array's memory
        self._values.append(value)
        return value

    def feed(self, tokens: Sequence[int], steps: int) -> None:
        """Write the inputs of the next run: ``tokens``, preceded by ``steps`` earlier tokens."""
        if self._ids.shape[1] != len(tokens):
            self._ids, self._positions = np.zeros((1, len(tokens)), np.int64), np.zeros((1, len(tokens)), np.int64)
            self.binding.bind_ortvalue_input("input_ids", self._value(self._ids))
            self.binding.bind_ortvalue_input("position_ids", self._value(self._positions))
            if ALIGNMENT in self._layout.first.outputs:
                source = next(iter(self._encoder_kv.values())).shape()[2]
                self.alignment = np.zeros((1, len(tokens), source), np.float32)
                self.binding.bind_ortvalue_output(ALIGNMENT, self._value(self.alignment))
        self._ids[0] = tokens
        total = steps + len(tokens)
        self._positions[0] = np.arange(steps, total)
        self._lengths[0][0], self._lengths[1][0] = total - 1, total

    def logits(self, rows: int) -> Logits:
        """Return the buffer [rows] to which all further runs write their scores."""
        if self._logits is None:
            self._logits = np.zeros((1, rows), np.float32)
            self.binding.bind_ortvalue_output("logits", self._value(self._logits))
        result: Logits = self._logits[0]
        return result


@dataclass
class StreamingState(DecoderState):
    """State of one sentence. ``decoder_kv`` stays empty: decoder KV is in ``memory``, written only by the graph."""

    memory: _Memory | None = None

    @property
    def alignment(self) -> NDArray[np.float32] | None:
        """Attention of the last run's tokens over the source: [tokens, S], each row sums to 1.

        None if the model was compiled without an alignment head.
        """
        if self.memory is None or self.memory.alignment is None:
            return None
        weights: NDArray[np.float32] = self.memory.alignment[0].copy()
        return weights

    def fork(self) -> StreamingState:
        """Return an independent state that shares encoder KV and has a copy of decoder KV."""
        memory = self.memory.copied(self.memory.capacity, self.steps) if self.memory else None
        return dataclasses.replace(self, memory=memory)


class StreamingDecoder(Decoder):
    """Runs the two graphs of ``pipeline.models compile``: an encoder that returns cross-attention KV, and a step."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        names = [f"{layer}.encoder.{kind}" for layer in range(layout.layers) for kind in ("key", "value")]
        self._kv_inputs = [f"past_key_values.{name}" for name in names]
        self._kv_outputs = [f"present.{name}" for name in names]
        metadata = self._first.get_modelmeta().custom_metadata_map
        try:
            self._vocabulary, self._pad = int(metadata["vocabulary"]), int(metadata["pad_token"])
        except (KeyError, ValueError):
            raise ModelError(
                f"{layout.first.path} has no metadata for its vocabulary and pad token; {COMPILE_HINT}"
            ) from None
        self.output_ids = self._read_output_ids()
        self._known = np.zeros(self._vocabulary, np.bool_)
        self._known[self.output_ids] = True

    def _read_output_ids(self) -> NDArray[np.int64]:
        """Return the id of each row of scores, from a run of the pad token over a source of one zero position."""
        layout = self.layout
        nothing = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, layout.heads, 1, layout.head_dim), np.float32))
        state = StreamingState({}, encoder_kv=dict.fromkeys(self._kv_inputs, nothing))
        memory = _Memory(self._first, layout, state.encoder_kv, 1)
        memory.feed((self._pad,), 0)
        memory.binding.bind_output("output_ids")
        with translate_ort_errors(layout.first.path, 0, state.options):
            self._first.run_with_iobinding(memory.binding, state.options)
        ids: NDArray[np.int64] = memory.binding.get_outputs()[-1].numpy()
        if ids.ndim != 1 or not ((ids >= 0) & (ids < self._vocabulary)).all():
            raise ModelError(f"{layout.first.path} names ids outside its vocabulary; {COMPILE_HINT}")
        return ids

    def encode(self, source: Sequence[int], on_start: Callable[[DecoderState], None] | None = None) -> DecoderState:
        state = StreamingState({})
        if on_start:
            on_start(state)
        assert self._encoder is not None
        assert self.layout.encoder is not None
        feed = {"input_ids": ort.OrtValue.ortvalue_from_numpy(np.array([source], np.int64))}
        with translate_ort_errors(self.layout.encoder.path, 0, state.options):
            found = self._encoder.run_with_ort_values(self._kv_outputs, feed, state.options)
        state.encoder_kv = dict(zip(self._kv_inputs, found, strict=True))
        return state

    def choose(self, state: DecoderState, token: int, pad: int) -> Choice:
        if pad != self._pad:
            return super().choose(state, token, pad)
        memory = self._run_step(state, (token,), scores=False)
        return Choice(int(memory.token[0]), float(memory.log_probability[0]))

    @property
    def causal(self) -> bool:
        return True  # GroupQueryAttention is always causal

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> StepOutput:
        memory = self._run_step(state, tokens, scores=True)
        scores = np.full(self._vocabulary, -np.inf, np.float32)
        scores[self.output_ids] = memory.logits(len(self.output_ids))
        return StepOutput(scores)

    def _run_step(self, state: DecoderState, tokens: tuple[int, ...], *, scores: bool) -> _Memory:
        """Run the step graph over ``tokens`` and return the memory it wrote to."""
        assert isinstance(state, StreamingState)
        if unknown := [token for token in tokens if not (token < self._vocabulary and self._known[token])]:
            raise ModelError(f"{self.layout.first.path}: token {unknown[0]} cannot occur in a target sentence")
        needed = state.steps + len(tokens)
        memory = state.memory
        if memory is None:
            memory = _Memory(self._first, self.layout, state.encoder_kv, max(_INITIAL_CAPACITY, needed))
        elif memory.capacity < needed:
            memory = memory.copied(max(2 * memory.capacity, needed), state.steps)
        state.memory = memory
        memory.feed(tokens, state.steps)
        if scores:
            memory.logits(len(self.output_ids))
        with translate_ort_errors(self.layout.first.path, state.steps, state.options):
            self._first.run_with_iobinding(memory.binding, state.options)
        state.tokens += tokens
        return memory
