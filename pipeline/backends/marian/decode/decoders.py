"""The decoder for each layout: with a cache of KV, without one; or the streaming one."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime as ort

from ...machine import give_back_memory
from .decoder import Decoder, DecoderState, Logits
from .graphs import Kind, Layout
from .streaming import StreamingDecoder


def load_decoder(layout: Layout, threads: int = 1) -> Decoder:
    """Create the decoder for a layout and open its sessions. ``threads``: per run; 0 lets ONNX Runtime decide."""
    decoder = _CLASSES.get(layout.kind, CachedDecoder)(layout, threads)
    give_back_memory()
    return decoder


class CachedDecoder(Decoder):
    """The first step computes all KV; later steps reuse it.

    The steps are two graphs, or one graph, with or without a switch input. A graph that takes decoder KV only recomputes
    cross-attention at every step.
    """

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        self._decoder_kv = self._kv_names("decoder")
        self._encoder_kv = {} if layout.kind is Kind.OWN_PAST else self._kv_names("encoder")
        self._switch = {flag: ort.OrtValue.ortvalue_from_numpy(np.array([flag])) for flag in (False, True)}
        self._placeholders = self._empty_past()

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> Logits:
        if not state.steps:
            feed = {**state.fixed, **self._placeholders, "use_cache_branch": self._switch[False]}
            kept = {**self._decoder_kv, **self._encoder_kv}
            output, kv = self._run(self._first, self.layout.first, state, tokens, feed, kept)
            state.encoder_kv = {name: kv.pop(name) for name in self._encoder_kv}
        else:
            feed = {**state.fixed, **state.decoder_kv, **state.encoder_kv, "use_cache_branch": self._switch[True]}
            # Do not request encoder KV: a cached step returns an empty tensor for it.
            output, kv = self._run(self._later, self.layout.later, state, tokens, feed, self._decoder_kv)
        state.decoder_kv = kv
        state.tokens += tokens
        return output


class PrefixDecoder(Decoder):
    """Feeds the whole prefix at every step, without decoder KV. Works with the first-step graph of every layout."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(dataclasses.replace(layout, later=layout.first), threads)
        self._rest = {**self._empty_past(), "use_cache_branch": ort.OrtValue.ortvalue_from_numpy(np.array([False]))}

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> Logits:
        prefix = state.tokens + tokens
        feed = {**state.fixed, **self._rest}
        output, _ = self._run(self._first, self.layout.first, state, prefix, feed, {})
        state.tokens = prefix
        return output


_CLASSES: dict[Kind, type[Decoder]] = {
    Kind.STREAMING: StreamingDecoder,
    Kind.NO_PAST: PrefixDecoder,
    Kind.ONE_FILE: PrefixDecoder,
}
