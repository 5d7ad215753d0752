"""Decoder of the streaming layout: the graph extends its KV buffers in place and chooses the next token itself."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ....errors import ModelError
from ...onnx_session import translate_ort_errors
from .decoder import Choice, Decoder, DecoderState, Logits
from .graphs import COMPILE_HINT, Layout
from .tokenizer import CHARACTERS, UNKNOWN

ALIGNMENT = "alignment"
"""Additional output of a graph compiled with an alignment head."""
# Initial capacity of a sentence's KV buffers, in positions. They double when full.
_INITIAL_CAPACITY = 64


class BoundStep(ABC):
    """Input and output buffers of one hypothesis, bound once so that a step only triggers the run."""

    def __init__(self, session: ort.InferenceSession, encoder_kv: Mapping[str, ort.OrtValue]) -> None:
        self._session, self._encoder_kv = session, encoder_kv
        self._values: dict[str, ort.OrtValue] = {}  # keeps the bound values alive, which the binding does not do
        self.binding = session.io_binding()
        self.alignment: NDArray[np.float32] | None = None
        """Attention of the last run's tokens over the source [1, tokens, S], if there is an alignment head."""
        for name, value in encoder_kv.items():
            self.binding.bind_ortvalue_input(name, value)

    def look_at(self, encoder_kv: Mapping[str, ort.OrtValue]) -> None:
        """Use other cross-attention keys and values, of a source of any length, from the next run on."""
        self._encoder_kv = encoder_kv
        for name, value in encoder_kv.items():
            self.binding.bind_ortvalue_input(name, value)

    def bind_input(self, name: str, array: NDArray[np.generic]) -> None:
        self._values[name] = ort.OrtValue.ortvalue_from_numpy(array)  # shares the array's memory
        self.binding.bind_ortvalue_input(name, self._values[name])

    def bind_output(self, name: str, array: NDArray[np.generic]) -> None:
        value = self._values[f"{name} written"] = ort.OrtValue.ortvalue_from_numpy(array)
        self.binding.bind_ortvalue_output(name, value)

    @abstractmethod
    def fork(self, steps: int) -> BoundStep:
        """Independent buffers after the same ``steps`` tokens."""


class _Memory(BoundStep):
    """The buffers of a graph that extends its KV."""

    def __init__(
        self, session: ort.InferenceSession, layout: Layout, encoder_kv: Mapping[str, ort.OrtValue], capacity: int
    ) -> None:
        super().__init__(session, encoder_kv)
        self._layout = layout
        self.kv = np.zeros((2 * layout.layers, 1, layout.heads, capacity, layout.head_dim), np.float32)
        """Keys and values of all layers [2 · layers, 1, heads, capacity, head_dim]."""
        self.token = np.zeros(0, np.int64)
        """The token chosen after each new one [T]; in graphs of older versions after the last one [1]."""
        self.log_probability = np.zeros(0, np.float32)
        self._each = layout.first.outputs["token"].shape != (1,)
        self._lengths = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._ids, self._positions = np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64)
        self._logits: Logits | None = None
        for index, buffer in enumerate(self.kv):
            name = f"{index // 2}.decoder.{('key', 'value')[index % 2]}"
            self.bind_input(f"past_key_values.{name}", buffer)
            self.bind_output(f"present.{name}", buffer)
        for name, array in zip(("seqlens_k", "total_sequence_length"), self._lengths, strict=True):
            self.bind_input(name, array)
        self._bind_choices(1)

    @property
    def capacity(self) -> int:
        return self.kv.shape[3]

    def copied(self, capacity: int, steps: int) -> _Memory:
        """Return a copy of the first ``steps`` positions with capacity for ``capacity`` positions."""
        other = _Memory(self._session, self._layout, self._encoder_kv, capacity)
        other.kv[:, :, :, :steps] = self.kv[:, :, :, :steps]
        other.alignment = None if self.alignment is None else self.alignment.copy()
        return other

    def fork(self, steps: int) -> _Memory:
        return self.copied(self.capacity, steps)

    def look_at(self, encoder_kv: Mapping[str, ort.OrtValue]) -> None:
        super().look_at(encoder_kv)
        self.alignment = None
        self._ids = np.zeros((1, 0), np.int64)  # so that the next run binds an alignment of the new length

    def _bind_choices(self, rows: int) -> None:
        self.token, self.log_probability = np.zeros(rows, np.int64), np.zeros(rows, np.float32)
        self.bind_output("token", self.token)
        self.bind_output("log_probability", self.log_probability)

    def feed(self, tokens: Sequence[int], steps: int) -> None:
        """Write the inputs of the next run: ``tokens``, preceded by ``steps`` earlier tokens."""
        if self._ids.shape[1] != len(tokens):
            self._ids, self._positions = np.zeros((1, len(tokens)), np.int64), np.zeros((1, len(tokens)), np.int64)
            self.bind_input("input_ids", self._ids)
            self.bind_input("position_ids", self._positions)
            if self._each and len(self.token) != len(tokens):
                self._bind_choices(len(tokens))
                if self._logits is not None:
                    self._bind_logits(self._logits.shape[1])
            if ALIGNMENT in self._layout.first.outputs:
                source = next(iter(self._encoder_kv.values())).shape()[2]
                self.alignment = np.zeros((1, len(tokens), source), np.float32)
                self.bind_output(ALIGNMENT, self.alignment)
        self._ids[0] = tokens
        total = steps + len(tokens)
        self._positions[0] = np.arange(steps, total)
        self._lengths[0][0], self._lengths[1][0] = total - 1, total

    def logits(self, rows: int) -> Logits:
        """Return the buffer to which further runs write their scores: [T, rows], or [1, rows]; see ``token``."""
        return self._bind_logits(rows) if self._logits is None else self._logits

    def _bind_logits(self, rows: int) -> Logits:
        self._logits = np.zeros((len(self.token), rows), np.float32)
        self.bind_output("logits", self._logits)
        return self._logits


@dataclass
class StreamingState(DecoderState):
    """State of one sentence. ``decoder_kv`` stays empty: decoder KV is in ``memory``, written only by the graph."""

    memory: BoundStep | None = None
    whole_kv: Mapping[str, ort.OrtValue] = field(default_factory=dict)
    """``encoder_kv`` of the whole source, while some of its positions are hidden."""

    def look_at(self, encoder_kv: Mapping[str, ort.OrtValue]) -> None:
        """Look at another source, or part of it, from the next run on."""
        self.encoder_kv = encoder_kv
        if self.memory is not None:
            self.memory.look_at(encoder_kv)

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
        return dataclasses.replace(self, memory=self.memory.fork(self.steps) if self.memory else None)


class StreamingDecoder(Decoder):
    """Runs the two graphs of ``pipeline.models compile``: an encoder that returns cross-attention KV, and a step."""

    takes_several = True  # GroupQueryAttention is causal

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        self.aligned = ALIGNMENT in layout.first.outputs
        self._name_kv()
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

    def _name_kv(self) -> None:
        names = [f"{layer}.encoder.{kind}" for layer in range(self.layout.layers) for kind in ("key", "value")]
        self._kv_inputs = [f"past_key_values.{name}" for name in names]
        self._kv_outputs = [f"present.{name}" for name in names]

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
            kv = self._encoder.run_with_ort_values(self._kv_outputs, feed, state.options)
        state.encoder_kv = dict(zip(self._kv_inputs, kv, strict=True))
        return state

    def choose(self, state: DecoderState, token: int, pad: int) -> Choice:
        if pad != self._pad:
            return super().choose(state, token, pad)
        memory = self._run_step(state, (token,), scores=False)
        token = int(memory.token[0])
        return Choice(token, float(memory.log_probability[0]), token)

    def attention(self, state: DecoderState, tokens: Sequence[int]) -> NDArray[np.float32] | None:
        if not self.aligned:
            return None
        self.truncate(state, 0)
        self._run_step(state, tuple(tokens), scores=False)
        assert isinstance(state, StreamingState)
        return state.alignment

    def attended(self, state: DecoderState) -> NDArray[np.float32] | None:
        assert isinstance(state, StreamingState)
        if state.memory is None or state.memory.alignment is None:
            return None
        row: NDArray[np.float32] = state.memory.alignment[0, -1]
        return row

    def hide(self, state: DecoderState, positions: Sequence[int]) -> None:
        assert isinstance(state, StreamingState)
        state.whole_kv = state.whole_kv or state.encoder_kv
        length = next(iter(state.encoder_kv.values())).shape()[2]
        visible = np.delete(np.arange(length), positions)
        fewer = {
            name: ort.OrtValue.ortvalue_from_numpy(np.take(value.numpy(), visible, axis=2))
            for name, value in state.encoder_kv.items()
        }
        state.look_at(fewer)

    def revealed(self, state: DecoderState) -> DecoderState:
        assert isinstance(state, StreamingState)
        whole = state.whole_kv or state.encoder_kv
        return dataclasses.replace(state, encoder_kv=whole, whole_kv={}, tokens=(), memory=None)

    def can_write(self, token: int) -> bool:
        return token < self._vocabulary and bool(self._known[token])

    def truncate(self, state: DecoderState, steps: int) -> None:
        state.tokens = state.tokens[:steps]  # later runs overwrite the buffers from there

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> Logits:
        memory = self._run_step(state, tokens, scores=True)
        scores = np.full(self._vocabulary, -np.inf, np.float32)
        scores[self.output_ids] = memory.logits(len(self.output_ids))[-1]
        return scores

    def _run_step(self, state: DecoderState, tokens: tuple[int, ...], *, scores: bool) -> _Memory:
        """Run the step graph over ``tokens`` and return the memory it wrote to."""
        assert isinstance(state, StreamingState)
        fed = [UNKNOWN if token >= CHARACTERS else token for token in tokens]
        if unknown := [token for token in fed if not (token < self._vocabulary and self._known[token])]:
            raise ModelError(f"{self.layout.first.path}: token {unknown[0]} cannot occur in a target sentence")
        needed = state.steps + len(tokens)
        memory = state.memory
        assert memory is None or isinstance(memory, _Memory)
        if memory is None:
            memory = _Memory(self._first, self.layout, state.encoder_kv, max(_INITIAL_CAPACITY, needed))
        elif memory.capacity < needed:
            memory = memory.copied(max(2 * memory.capacity, needed), state.steps)
        state.memory = memory
        memory.feed(fed, state.steps)
        if scores:
            memory.logits(len(self.output_ids))
        with translate_ort_errors(self.layout.first.path, state.steps, state.options):
            self._first.run_with_iobinding(memory.binding, state.options)
        state.tokens += tokens
        return memory
