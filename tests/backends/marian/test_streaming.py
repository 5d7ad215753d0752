"""Tests specific to the streaming layout; test_decoder.py has the tests for every layout, including this one."""

import dataclasses

import numpy as np
import pytest

from pipeline.backends.marian.decode.decoder import Decoder
from pipeline.backends.marian.decode.decoders import load_decoder
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.decode.layout import Kind, find_layout
from pipeline.backends.marian.decode.streaming import StreamingDecoder
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import greedy
from pipeline.backends.nmt_options import NmtConfig
from pipeline.errors import ModelError
from tests.backends.marian.conftest import found_ids
from tests.conftest import LAYOUTS, TINY, compiled_tiny, golden, make_model_dir

PAD = 877


@pytest.fixture
def model(tmp_path):
    return MarianModel.load(make_model_dir(tmp_path, "streaming"), NmtConfig(max_tokens=512))


def test_the_streaming_layout_is_preferred_to_its_source(tmp_path):
    folder = make_model_dir(tmp_path, "streaming")
    for name in LAYOUTS["merged"]:
        (folder / name).symlink_to(TINY / name)
    assert find_layout(folder).kind is Kind.STREAMING


@pytest.mark.parametrize("weights", ["fp32", "int8"])
def test_a_source_may_hold_words_of_the_target_language(weights):
    """A word that source.spm cannot split is looked up in the vocabulary as a whole, and may be a target piece."""
    ours, theirs = MarianModel.load(compiled_tiny(weights)), MarianModel.load(TINY)
    source = ours.tokenizer.encode("Where is 出发 hotel?")
    assert 383 in source
    tokens = [found_ids(m, source) for m in (ours, theirs)]
    assert tokens[0] == tokens[1]


def test_the_token_chosen_in_the_graph_has_the_highest_score(model):
    for row in golden("tiny-marian")[:30]:
        inside, outside = model.decoder.encode(row["source_ids"]), model.decoder.encode(row["source_ids"])
        for token in (PAD, *row["target_ids"][:-1]):
            chosen = model.decoder.choose(inside, token, PAD)
            reference = Decoder.choose(model.decoder, outside, token, PAD)
            assert chosen.token == reference.token
            assert chosen.log_probability == pytest.approx(reference.log_probability, abs=1e-4)


def test_greedy_search_does_not_request_scores(model, monkeypatch):
    monkeypatch.setattr(StreamingDecoder, "_feed", lambda *_: pytest.fail("all scores were asked for"))
    row = golden("tiny-marian")[0]
    assert found_ids(model, row["source_ids"]) == row["target_ids"]


def test_another_pad_token_than_the_graphs_is_masked_outside(model):
    state = model.decoder.encode(golden("tiny-marian")[0]["source_ids"])
    first = model.decoder.choose(state.fork(), PAD, PAD).token
    assert model.decoder.choose(state.fork(), PAD, first).token != first


def test_kv_is_written_in_place_and_encoder_kv_stays_the_same_object(model):
    state = model.decoder.encode([5, 6, 7, 8, 0])
    kept = dict(state.encoder_kv)
    assert {tuple(value.shape()) for value in kept.values()} == {(1, 4, 5, 16)}  # heads of 12, filled up to 16
    model.decoder.step(state, PAD)
    buffer, before = state.memory.kv, state.memory.kv.copy()
    model.decoder.step(state, 399)
    assert state.memory.kv is buffer
    assert np.array_equal(buffer[:, :, :, 0], before[:, :, :, 0])
    assert (buffer[:, :, :, 1] != before[:, :, :, 1]).any()
    assert not buffer[:, :, :, 2:].any()
    assert all(state.encoder_kv[name] is value for name, value in kept.items())


def test_a_sentence_longer_than_the_buffers_goes_on(model, tmp_path):
    merged = load_decoder(find_layout(make_model_dir(tmp_path / "merged", "merged")))
    endless = dataclasses.replace(model.generation, bad_words=((PAD,), (0,)), max_tokens=150)
    source = golden("tiny-marian")[0]["source_ids"]
    found = [token.id for token in greedy(SearchRequest(model.decoder, source, endless))]
    assert len(found) == 150
    assert found == [token.id for token in greedy(SearchRequest(merged, source, endless))]


def test_forcing_beyond_the_capacity_grows_the_buffers(model):
    tokens = [PAD, *(400 + n % 50 for n in range(100))]
    one_by_one, together = model.decoder.encode([5, 6, 0]), model.decoder.encode([5, 6, 0])
    for token in tokens:
        expected = model.decoder.step(one_by_one, token)
    output = model.decoder.force(together, tokens)
    assert output.argmax() == expected.argmax()
    assert output.max() == pytest.approx(expected.max(), abs=1e-4)


def test_a_token_that_cannot_occur_in_a_target_sentence_is_rejected():
    model = MarianModel.load(compiled_tiny("int8"))
    with pytest.raises(ModelError, match="token 9 cannot occur in a target sentence"):
        model.decoder.step(model.decoder.encode([5, 0]), 9)
    with pytest.raises(ModelError, match="token 878 cannot occur in a target sentence"):
        model.decoder.step(model.decoder.encode([5, 0]), 878)


def edited(folder, name, edit):
    """The compiled tiny model in ``folder``, with one graph edited."""
    import onnx

    folder = make_model_dir(folder, "streaming")
    graph = onnx.load(folder / name)
    edit(graph)
    (folder / name).unlink()
    onnx.save(graph, folder / name)
    return folder


def test_a_graph_without_its_metadata_is_refused(tmp_path):
    folder = edited(tmp_path, "step.onnx", lambda graph: graph.ClearField("metadata_props"))
    with pytest.raises(ModelError, match="has no metadata for its vocabulary"):
        load_decoder(find_layout(folder))


@pytest.mark.parametrize("wrong", [878, -1])
def test_a_graph_that_names_ids_outside_its_vocabulary_is_refused(tmp_path, wrong):
    from onnx import numpy_helper

    def edit(graph):
        (ids,) = [tensor for tensor in graph.graph.initializer if tensor.name == "ids"]
        changed = numpy_helper.to_array(ids).copy()
        changed[3] = wrong
        ids.CopyFrom(numpy_helper.from_array(changed, "ids"))

    with pytest.raises(ModelError, match="names ids outside its vocabulary"):
        load_decoder(find_layout(edited(tmp_path, "step.onnx", edit)))


def test_an_encoder_that_lacks_an_output_is_refused(tmp_path):
    def edit(graph):
        (output,) = [output for output in graph.graph.output if output.name == "present.1.encoder.value"]
        graph.graph.output.remove(output)

    with pytest.raises(ModelError, match=r"encoder\.onnx.*present\.1\.encoder\.value"):
        load_decoder(find_layout(edited(tmp_path, "encoder.onnx", edit)))
