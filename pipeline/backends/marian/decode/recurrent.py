"""Decoder of models whose decoder is recurrent: a state of constant size, one token a run, a shortlist for each source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ....core import common_length
from ....errors import ModelError
from ...onnx_header import OnnxHeader
from ...onnx_session import open_session, translate_ort_errors
from ..compile.assemble import BIAS, DECODER, ENCODER, marian_sinusoids
from ..compile.checkpoint import Array, Checkpoint, QuantisedMatrix
from ..compile.graph import Precision
from ..compile.model_graphs import Precisions, build_encoder, build_recurrent_step
from .decoder import Choice, DecoderState, Logits
from .graphs import Kind, Layout
from .shortlist import Shortlist
from .streaming import ALIGNMENT, BoundStep, StreamingDecoder, StreamingState
from .tokenizer import CHARACTERS, UNKNOWN

PRECISIONS = {
    "fp32": Precisions(*[Precision.FP32] * 4),
    "int8": Precisions(Precision.INT8_ROWS, Precision.INT8, Precision.INT8, Precision.INT8),
}


class _Cells(BoundStep):
    """Input and output buffers of one hypothesis."""

    def __init__(self, decoder: RecurrentDecoder, state: RecurrentState, history: Sequence[Array]) -> None:
        super().__init__(decoder.session, state.encoder_kv)
        self._decoder, self._state, self.ids = decoder, state, state.ids
        self.history = list(history)
        """The states [layers, d_model] before the first token, and after each."""
        self.rows: list[Array] = []
        """The attention of each token over the source, [S]."""
        self.cells = self.history[-1].copy()
        self.embedded = np.zeros((1, 1, self.cells.shape[1]), np.float32)
        self.logits = np.zeros((1, len(state.ids)), np.float32)
        self.best, self.best_logit = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.float32)
        self.total = np.zeros((1, 1), np.float32)
        for name, value in state.fixed.items():
            self.binding.bind_ortvalue_input(name, value)
        self.bind_input("embedded", self.embedded)
        for layer, cell in enumerate(self.cells):
            # Each state is read before it is written, by the only node that reads it.
            self.bind_input(f"past.{layer}", cell.reshape(1, 1, -1))
            self.bind_output(f"present.{layer}", cell.reshape(1, 1, -1))
        for name in ("logits", "best", "best_logit", "total"):
            self.bind_output(name, getattr(self, name))
        self._bind_alignment()

    def _bind_alignment(self) -> None:
        source = next(iter(self._encoder_kv.values())).shape()[2]
        self.alignment = np.zeros((1, 1, source), np.float32)
        self.bind_output(ALIGNMENT, self.alignment)

    def look_at(self, encoder_kv: Mapping[str, ort.OrtValue]) -> None:
        super().look_at(encoder_kv)
        self._bind_alignment()

    def fork(self, steps: int) -> _Cells:
        other = _Cells(self._decoder, self._state, self.history[: steps + 1])
        other.look_at(self._encoder_kv)
        other.rows = self.rows[:steps]
        if self.alignment is not None and other.alignment is not None:
            other.alignment[:] = self.alignment
        return other

    def truncate(self, steps: int) -> None:
        if steps < len(self.history) - 1:
            del self.history[steps + 1 :], self.rows[steps:]
            self.cells[:] = self.history[-1]


@dataclass
class RecurrentState(StreamingState):
    """State of one sentence. ``fixed`` has the shortlisted rows of the output projection, if there is a shortlist."""

    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """The target id of each row of scores."""


class RecurrentDecoder(StreamingDecoder):
    """Runs the graphs of a checkpoint with a recurrent decoder, which are built when it is loaded."""

    takes_several = False
    aligned = guided = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        place: Path,
        threads: int,
        *,
        weights: str = "int8",
        shortlist: Shortlist | None = None,
        banned: Sequence[int] = (),
    ) -> None:
        """``place``: what messages call the model. ``banned``: target ids that are never written."""
        a = checkpoint.architecture
        bias = checkpoint.weights[BIAS].copy()
        bias[list(banned)] = -np.inf
        checkpoint = dataclasses.replace(checkpoint, weights={**checkpoint.weights, BIAS: bias})
        precisions = PRECISIONS[weights]
        encoder = build_encoder(checkpoint, precisions)
        step = build_recurrent_step(checkpoint, precisions, shortlisted=shortlist is not None)
        header = OnnxHeader(place, {}, {})
        self.layout = Layout(
            kind=Kind.RECURRENT,
            encoder=header,
            first=header,
            later=header,
            layers=a.decoder_layers,
            heads=a.decoder_heads,
            head_dim=a.d_model // a.decoder_heads,
            vocabulary=a.target_vocabulary,
        )
        self._encoder = open_session(place, threads, encoder.SerializeToString())
        self._first = self._later = open_session(place, threads, step.SerializeToString())
        self._name_kv()
        self._architecture, self._shortlist, self._bias = a, shortlist, bias
        self._source, self._target = (_scaled(checkpoint.weights[name]) for name in (ENCODER, DECODER))
        self._scale = np.float32(a.embedding_scale)
        self._positions = marian_sinusoids(a.max_positions, a.d_model)
        self._vocabulary = self._pad = a.target_vocabulary
        self._known = np.isfinite(bias)
        self.output_ids = np.arange(a.target_vocabulary)

    @property
    def session(self) -> ort.InferenceSession:
        """The session of the step graph."""
        return self._first

    def encode(self, source: Sequence[int], on_start: Callable[[DecoderState], None] | None = None) -> DecoderState:
        state = RecurrentState({}, ids=self.output_ids)
        if on_start:
            on_start(state)
        if len(source) > len(self._positions):
            raise ModelError(f"{self.layout.first.path}: a source of {len(source)} tokens; split it into sentences")
        values, scales = self._source
        ids = list(source)
        embedded = values[ids] * (scales[ids] * self._scale)[:, None] + self._positions[: len(ids)]
        if self._shortlist is not None:
            state.ids = self._shortlist.candidates(source)
            values, scales = self._target
            rows = values[state.ids] * scales[state.ids, None]
            state.fixed = {"rows": _value(rows), "biases": _value(self._bias[state.ids])}
        assert self._encoder is not None
        with translate_ort_errors(self.layout.first.path, 0, state.options):
            kv = self._encoder.run_with_ort_values(
                self._kv_outputs, {"embedded": _value(embedded[None])}, state.options
            )
        state.encoder_kv = dict(zip(self._kv_inputs, kv, strict=True))
        return state

    def choose(self, state: DecoderState, token: int, pad: int) -> Choice:
        assert isinstance(state, RecurrentState)
        cells = self._run_one(state, token)
        best = int(state.ids[cells.best[0, 0]])
        return Choice(best, float(cells.best_logit[0, 0]) - float(cells.total[0, 0]), best)

    def attention(self, state: DecoderState, tokens: Sequence[int]) -> NDArray[np.float32] | None:
        assert isinstance(state, RecurrentState)
        same = common_length(state.tokens, tokens)
        self.truncate(state, same)
        for token in tokens[same:]:
            self._run_one(state, token)
        assert isinstance(state.memory, _Cells)
        return np.stack(state.memory.rows)

    def revealed(self, state: DecoderState) -> DecoderState:
        assert isinstance(state, RecurrentState)
        return super().revealed(state) if state.whole_kv else state.fork()

    def truncate(self, state: DecoderState, steps: int) -> None:
        assert isinstance(state, RecurrentState)
        state.tokens = state.tokens[:steps]
        if isinstance(state.memory, _Cells):
            state.memory.truncate(steps)

    def step_each(self, states: Sequence[DecoderState], tokens: Sequence[int]) -> list[Logits]:
        """In one run: each hypothesis is a position of the graph, and none sees another."""
        if len(states) == 1:
            return super().step_each(states, tokens)
        several = [self._prepared(state, token) for state, token in zip(states, tokens, strict=True)]
        first = states[0]
        pasts = np.stack([cells.cells for cells in several], axis=1)  # [layers, hypotheses, d_model]
        feed = {f"past.{layer}": _value(past[None]) for layer, past in enumerate(pasts)}
        feed |= {"embedded": _value(np.concatenate([cells.embedded for cells in several], axis=1))}
        names = ["logits", ALIGNMENT, *(f"present.{layer}" for layer in range(len(pasts)))]
        with translate_ort_errors(self.layout.first.path, first.steps, first.options):
            values = self._first.run_with_ort_values(names, {**feed, **first.fixed, **first.encoder_kv}, first.options)
        logits, alignment, *presents = (value.numpy() for value in values)
        for at, (state, token, cells) in enumerate(zip(states, tokens, several, strict=True)):
            cells.cells[:] = [present[0, at] for present in presents]
            cells.logits[:] = logits[at]
            self._keep(state, token, cells, alignment[0, at])
        return [self._scores(cells) for cells in several]

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> Logits:
        assert isinstance(state, RecurrentState)
        return self._scores([self._run_one(state, token) for token in tokens][-1])

    def _scores(self, cells: _Cells) -> Logits:
        scores = np.full(self._vocabulary + 1, -np.inf, np.float32)  # the last is that of the pad token
        scores[cells.ids] = cells.logits[0]
        return scores

    def _run_one(self, state: RecurrentState, token: int) -> _Cells:
        """Run the step graph over a token, and return the buffers it wrote to."""
        cells = self._prepared(state, token)
        with translate_ort_errors(self.layout.first.path, state.steps, state.options):
            self._first.run_with_iobinding(cells.binding, state.options)
        assert cells.alignment is not None
        self._keep(state, token, cells, cells.alignment[0, 0])
        return cells

    def _keep(self, state: DecoderState, token: int, cells: _Cells, attention: Array) -> None:
        """Keep what a run over a token wrote to the buffers of its hypothesis, and its attention."""
        assert cells.alignment is not None
        cells.alignment[0, 0] = attention  # for ``attended``
        cells.history.append(cells.cells.copy())
        cells.rows.append(attention.copy())
        state.tokens += (token,)

    def _prepared(self, state: DecoderState, token: int) -> _Cells:
        """The buffers of a hypothesis, with its newest token."""
        assert isinstance(state, RecurrentState)
        cells = state.memory
        if cells is None:
            a = self._architecture
            cells = state.memory = _Cells(self, state, [np.zeros((a.decoder_layers, a.d_model), np.float32)])
        assert isinstance(cells, _Cells)
        steps, row = state.steps, cells.embedded[0, 0]
        if token == self._pad and not steps:  # nothing precedes the first token
            row[:] = self._positions[0]
        elif (0 <= token < self._vocabulary or token >= CHARACTERS) and steps < len(self._positions):
            token, values, scales = token if token < CHARACTERS else UNKNOWN, *self._target
            np.multiply(values[token], scales[token] * self._scale, out=row)
            row += self._positions[steps]
        else:
            raise ModelError(
                f"{self.layout.first.path}: token {token} cannot occur as token {steps} of a target sentence"
            )
        return cells


def _scaled(table: Array | QuantisedMatrix) -> tuple[NDArray[Any], Array]:
    """The rows of a table, and the factor of each."""
    if isinstance(table, QuantisedMatrix):
        return table.values, table.scales
    return table, np.ones(len(table), np.float32)


def _value(array: NDArray[np.generic]) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
