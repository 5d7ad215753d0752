"""Mutation tests: breaking any rule of the decoder makes the equality tests fail.

Every mutant is a decoder with one rule broken. It must crash or give other tokens for the golden sentences.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import onnxruntime as ort
import pytest

from pipeline.backends.marian.decode.decoder import Decoder, DecoderState
from pipeline.backends.marian.decode.decoders import CachedDecoder
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import beam_search, greedy
from pipeline.backends.nmt_options import NmtConfig
from pipeline.backends.onnx_header import Port
from pipeline.errors import ModelError
from tests.conftest import golden, make_model_dir


def zeros(like, length=None):
    batch, heads, positions, size = like.shape()
    return ort.OrtValue.ortvalue_from_numpy(np.zeros((batch, heads, length or positions, size), np.float32))


class PhantomPosition(CachedDecoder):
    """The first step's placeholders are one zero position long."""

    def _empty_past(self):
        return {name: zeros(value, 1) for name, value in super()._empty_past().items()}


class ZeroEncoderKv(CachedDecoder):
    """Zeros replace encoder KV on cached steps."""

    def _feed(self, state, tokens):
        if state.steps == 1:
            state.encoder_kv = {name: zeros(value) for name, value in state.encoder_kv.items()}
        return super()._feed(state, tokens)


class FedBackEncoderKv(CachedDecoder):
    """Encoder KV returned by a cached step is fed to the next step."""

    def _feed(self, state, tokens):
        if state.steps > 1:
            empty = ort.OrtValue.ortvalue_from_numpy(np.zeros((0, 4, 1, 12), np.float32))
            state.encoder_kv = dict.fromkeys(state.encoder_kv, empty)
        return super()._feed(state, tokens)


class ForgottenPast(CachedDecoder):
    """Decoder KV is not kept: each step sees only its own token."""

    def _feed(self, state, tokens):
        kept = state.decoder_kv
        output = super()._feed(state, tokens)
        if state.steps > 1:
            state.decoder_kv = kept
        return output


class NoMandatoryPast(CachedDecoder):
    """The first step omits its past inputs."""

    def _empty_past(self):
        return {}


class UnknownInput(CachedDecoder):
    """All inputs are bound, even those that the graph does not have."""

    def __init__(self, layout, threads):
        super().__init__(layout, threads)
        everything = {name: Port(name, "float32", ()) for name in ("use_cache_branch", *layout.first.inputs)}
        self.layout = dataclasses.replace(layout, first=dataclasses.replace(layout.first, inputs=everything))


MUTANTS: list[tuple[str, Callable[..., Decoder]]] = [
    ("own-past-15", PhantomPosition),
    ("split", ZeroEncoderKv),
    ("merged", FedBackEncoderKv),
    ("split", ForgottenPast),
    ("merged", NoMandatoryPast),
    ("split", UnknownInput),
]


@pytest.mark.parametrize(("layout", "mutant"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_rule_is_noticed(layout, mutant, tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, layout), NmtConfig(max_tokens=60))
    broken = mutant(model.decoder.layout, 1)
    noticed = 0
    rows = golden("tiny-marian")
    for row in rows:
        try:
            ids = [token.id for token in greedy(SearchRequest(broken, row["source_ids"], model.generation))]
        except ModelError:  # raising also counts as noticing
            ids = []
        noticed += ids != row["target_ids"]
    print(f"{mutant} changes {noticed} of {len(rows)} golden sentences")
    assert noticed >= 1


def test_an_unmasked_pad_token_is_noticed(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    pad, vocabulary = model.generation.pad_token, model.decoder.layout.vocabulary

    class PadWins:
        """Scores of a model whose real tokens all score below zero, so that the pad token's zero is the highest."""

        choose, step_each = Decoder.choose, Decoder.step_each

        def encode(self, source, on_start=None):
            return DecoderState(fixed={})

        def step(self, state, token):
            logits = np.full(vocabulary, -5.0, np.float32)
            logits[pad], logits[0] = 0.0, -1.0
            return logits

    # The bad words in the settings include pad; remove them to test only the mask.
    options = dataclasses.replace(model.generation, bad_words=(), max_tokens=3)
    for search, beams in ((greedy, 1), (beam_search, 4)):
        ids = [t.id for t in search(SearchRequest(PadWins(), [5, 0], dataclasses.replace(options, beams=beams)))]
        assert ids[0] == 0
        assert pad not in ids


def test_forced_and_bad_words_are_honoured(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    row = next(row for row in golden("tiny-marian") if len(row["target_ids"]) > 6)
    first, second, third = row["target_ids"][:3]

    def ids(**changes):
        options = dataclasses.replace(model.generation, **changes)
        return [token.id for token in greedy(SearchRequest(model.decoder, row["source_ids"], options))]

    assert ids(bad_words=((first,),))[0] != first
    without = ids(bad_words=((first, second),))
    assert without[0] == first
    assert without[1] != second
    assert ids(bad_words=((second, first),))[:3] == [first, second, third]
    cut = list(
        greedy(SearchRequest(model.decoder, row["source_ids"], dataclasses.replace(model.generation, max_tokens=3)))
    )
    assert [token.id for token in cut] == [first, second, 0]
    assert [token.truncated for token in cut] == [False, False, True]
