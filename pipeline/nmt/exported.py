"""Decoders for the layouts that exporters write: with a cache of all KV, with decoder KV alone, or with none."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime as ort

from pipeline.nmt.decoder import Decoder, DecoderState, StepOutput
from pipeline.nmt.layout import Layout


class CachedDecoder(Decoder):
    """A first step that computes all KV, later steps that take it; in two graphs, or merged into one with a switch."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        self._decoder_kv, self._encoder_kv = self._kv_names("decoder"), self._kv_names("encoder")
        self._switch = {flag: ort.OrtValue.ortvalue_from_numpy(np.array([flag])) for flag in (False, True)}
        self._placeholders = self._no_past()

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> StepOutput:
        layout = self.layout
        if not state.steps:
            feed = {**state.fixed, **self._placeholders, "use_cache_branch": self._switch[False]}
            kept = {**self._decoder_kv, **self._encoder_kv}
            output, kv = self._run(self._first, layout.first, state, tokens, feed, kept)
            state.encoder_kv = {name: kv.pop(name) for name in self._encoder_kv}
        else:
            feed = {**state.fixed, **state.decoder_kv, **state.encoder_kv, "use_cache_branch": self._switch[True]}
            # Encoder KV is not asked for: a cached step returns an empty tensor in its place.
            output, kv = self._run(self._later, layout.later, state, tokens, feed, self._decoder_kv)
        state.decoder_kv = kv
        state.tokens += tokens
        return output


class OwnPastDecoder(Decoder):
    """A graph that takes its own past and computes cross-attention anew at every step: 15 inputs for 6 layers, or 16
    with a switch."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(layout, threads)
        self._decoder_kv = self._kv_names("decoder")
        self._switch = {flag: ort.OrtValue.ortvalue_from_numpy(np.array([flag])) for flag in (False, True)}
        self._placeholders = self._no_past()

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> StepOutput:
        past = state.decoder_kv if state.steps else self._placeholders
        feed = {**state.fixed, **past, "use_cache_branch": self._switch[state.steps > 0]}
        output, kv = self._run(self._first, self.layout.first, state, tokens, feed, self._decoder_kv)
        state.decoder_kv = kv
        state.tokens += tokens
        return output


class PrefixDecoder(Decoder):
    """No decoder KV: the whole prefix is fed at every step. Runs on the first-step graph of every layout."""

    def __init__(self, layout: Layout, threads: int) -> None:
        super().__init__(dataclasses.replace(layout, later=layout.first), threads)
        self._rest = {**self._no_past(), "use_cache_branch": ort.OrtValue.ortvalue_from_numpy(np.array([False]))}

    def _feed(self, state: DecoderState, tokens: tuple[int, ...]) -> StepOutput:
        prefix = state.tokens + tokens
        feed = {**state.fixed, **self._rest}
        output, _ = self._run(self._first, self.layout.first, state, prefix, feed, {})
        state.tokens = prefix
        return output
