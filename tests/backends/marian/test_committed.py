"""Greedy search after committed tokens, and states that forget tokens."""

import dataclasses
import itertools

import numpy as np
import pytest

from pipeline.backends.marian.decode.decoders import load_decoder
from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest
from pipeline.backends.marian.decode.layout import find_layout
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import greedy
from tests.backends.marian.test_decoder import PAD
from tests.backends.marian.test_streaming import edited
from tests.conftest import compiled_tiny, golden, make_model_dir


def ids(decoder, source, options, committed):
    return [token.id for token in greedy(SearchRequest(decoder, source, options, committed=committed))]


def one_by_one(decoder, source, options, committed):
    state, history = decoder.encode(source), [options.start_token, *committed]
    for token in history[:-1]:
        decoder.step(state, token)
    while history[-1] != options.end_token and len(history) < options.max_tokens:
        history.append(decoder.choose(state, history[-1], options.pad_token).token)
    return [*history[len(committed) + 1 :], *([options.end_token] if history[-1] != options.end_token else [])]


@pytest.mark.parametrize("weights", ["", "int8", "int4"])
def test_greedy_search_goes_on_after_committed_tokens(weights, tmp_path):
    model = MarianModel.load(compiled_tiny(weights) if weights else make_model_dir(tmp_path, "merged"))
    options = dataclasses.replace(model.generation, max_tokens=40)
    differ = 0
    for row, other in itertools.pairwise(golden("tiny-marian")[:8]):
        # Tokens of another sentence: greedy search alone would not choose them.
        for committed in (other["target_ids"][:2], row["target_ids"][:3]):
            found = ids(model.decoder, row["source_ids"], options, committed)
            assert found == one_by_one(model.decoder, row["source_ids"], options, committed)
            differ += [*committed, *found] != row["target_ids"]
    assert differ >= 3


def test_no_token_is_generated_beyond_the_limit():
    model = MarianModel.load(compiled_tiny("fp32"))
    row = golden("tiny-marian")[0]
    options = GenerationOptions(PAD, 0, PAD, max_tokens=3)
    for committed in (row["target_ids"][:3], row["target_ids"][:5]):
        assert ids(model.decoder, row["source_ids"], options, committed) == []


def without_rows(graph):
    """Change a step graph to one that chooses after the last token only, as older compilers wrote it."""
    import onnx

    (final,) = [node for node in graph.graph.node if node.name == "final"]
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array(-1, np.int64), "last"))
    last = onnx.helper.make_node("Gather", [final.input[0], "last"], ["final"], "final", axis=1)
    graph.graph.node[list(graph.graph.node).index(final)].CopyFrom(last)
    for output in graph.graph.output:
        if output.name in ("token", "log_probability", "logits"):
            output.type.tensor_type.shape.dim[0].dim_value = 1


def test_a_model_compiled_by_an_older_version_can_be_used(tmp_path):
    model = MarianModel.load(edited(tmp_path, "step.onnx", without_rows))
    for row in golden("tiny-marian")[:10]:
        options, source = dataclasses.replace(model.generation, max_tokens=60), row["source_ids"]
        for known in (0, 3):
            assert ids(model.decoder, source, options, row["target_ids"][:known]) == row["target_ids"][known:]
        state = model.decoder.encode(source)
        assert model.decoder.force(state, [PAD, *row["target_ids"][:3]]).argmax() == row["target_ids"][3]


def test_a_state_that_was_truncated_goes_on_like_one_that_saw_only_the_rest():
    decoder = load_decoder(find_layout(compiled_tiny()))
    state, other = decoder.encode([5, 6, 7, 0]), decoder.encode([5, 6, 7, 0])
    decoder.force(state, [PAD, 400, 401, 402])
    fork = state.fork()
    decoder.truncate(state, 2)
    assert state.tokens == (PAD, 400)
    for token in (PAD, 400):
        decoder.step(other, token)
    for token in (410, 411):
        found, expected = decoder.step(state, token), decoder.step(other, token)
        known = np.isfinite(expected)
        assert np.abs(found[known] - expected[known]).max() < 1e-4
    assert fork.tokens == (PAD, 400, 401, 402)
    assert decoder.step(fork, 403).argmax() == decoder.step(fork_of([PAD, 400, 401, 402], decoder), 403).argmax()
    decoder.truncate(state, 0)
    assert decoder.step(state, PAD).argmax() == decoder.step(decoder.encode([5, 6, 7, 0]), PAD).argmax()


def fork_of(tokens, decoder):
    state = decoder.encode([5, 6, 7, 0])
    for token in tokens:
        decoder.step(state, token)
    return state
