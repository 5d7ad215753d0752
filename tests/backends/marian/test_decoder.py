"""Decoder invariants in every layout, and equality with transformers token for token.

The decoder's rules, and the tests that fail if a rule is broken (tests/backends/marian/test_mutations.py breaks them):

1. a past of length zero at the first step: test_the_first_step_is_fed_a_past_of_length_zero, PhantomPosition,
   NoMandatoryPast;
2. the encoder runs once, its KV stays the same objects, KV of cached steps is not fed back:
   test_the_encoder_runs_once_and_its_kv_is_the_same_object_at_every_step,
   test_a_cached_step_does_not_request_encoder_kv, FedBackEncoderKv;
3. no zeros for encoder KV: ZeroEncoderKv;
4. inputs are bound by name, and only those of the graph: test_all_inputs_are_fed_and_nothing_else, UnknownInput;
5. pad masked, forced and bad words honoured: test_an_unmasked_pad_token_is_noticed,
   test_forced_and_bad_words_are_honoured, test_other_settings_give_the_ids_of_transformers;
6. equal to transformers: test_greedy_ids_equal_those_of_transformers, test_beam_search_ids_equal_those_of_transformers.
"""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from sacrebleu.metrics import CHRF

from pipeline.backends.marian.decode import generation
from pipeline.backends.marian.decode.decoder import Decoder, DecoderState
from pipeline.backends.marian.decode.decoders import PrefixDecoder, load_decoder
from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest, Stopwatch
from pipeline.backends.marian.decode.layout import find_layout
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import beam_search, greedy
from pipeline.backends.nmt_options import NmtConfig
from pipeline.errors import DecodingStoppedError, ModelError
from tests.backends.marian.conftest import found_ids
from tests.conftest import FIXTURES, LAYOUTS, SHIPPED_TRANSLATORS, TINY, golden, make_model_dir, tiny_with

PAD = 877  # the tiny model's last id; ids from 380 on are target pieces


def spied(decoder):
    """Record every run: (graph file, inputs, requested outputs)."""
    runs: list[tuple[str, dict[str, ort.OrtValue], list[str]]] = []
    for attribute, session in list(vars(decoder).items()):
        if isinstance(session, ort.InferenceSession):
            setattr(decoder, attribute, _Spy(session, attribute, runs))
    return runs


class _Spy:
    def __init__(self, session, name, runs):
        self.session, self.name, self.runs = session, name, runs

    def run_with_ort_values(self, outputs, feed, options):
        self.runs.append((self.name, dict(feed), list(outputs)))
        return self.session.run_with_ort_values(outputs, feed, options)


def distance(some, others):
    """The largest difference of two models' scores. Both must mask the same tokens."""
    finite = np.isfinite(some)
    assert np.array_equal(finite, np.isfinite(others))
    return float(np.abs(some[finite] - others[finite]).max())


def assert_equals_transformers(model, rows):
    """Source ids, greedy ids and text of at least fifty sentences."""
    assert len(rows) >= 50
    for row in rows:
        assert model.tokenizer.encode(row["source"]) == row["source_ids"]
        tokens = found_ids(model, row["source_ids"])
        assert tokens == row["target_ids"], row["source"]
        assert model.tokenizer.decode(tokens) == row["text"]


def test_greedy_ids_equal_those_of_transformers(model_dir):
    assert_equals_transformers(MarianModel.load(model_dir, NmtConfig(max_tokens=512)), golden("tiny-marian"))


@pytest.mark.slow
def test_beam_search_ids_equal_those_of_transformers(model_dir):
    model = MarianModel.load(model_dir, NmtConfig(beam_size=4, max_tokens=512))
    for row in golden("tiny-marian")[::3]:
        tokens = list(beam_search(SearchRequest(model.decoder, row["source_ids"], model.generation)))
        assert [token.id for token in tokens] == row["beam_4_ids"], row["source"]
        assert [token.last for token in tokens] == [False] * (len(tokens) - 1) + [True]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_decoder_kv_the_ids_are_the_same(layout, tmp_path):
    folder = make_model_dir(tmp_path, layout)
    model, decoder = MarianModel.load(folder, NmtConfig(max_tokens=512)), PrefixDecoder(find_layout(folder), 1)
    for row in golden("tiny-marian")[::5]:
        assert [t.id for t in greedy(SearchRequest(decoder, row["source_ids"], model.generation))] == row["target_ids"]


@pytest.mark.parametrize(("name", "least"), [("fp16", 0.98), ("int8", 0.8), ("q4", 0.6)])
def test_quantised_files_run_and_mostly_agree(name, least, tmp_path):
    folder = make_model_dir(tmp_path / "model", "merged")
    for path in (TINY / name).iterdir():
        (folder / path.name).symlink_to(path)
    model = MarianModel.load(folder, NmtConfig(file_suffix=f"_{name}", max_tokens=512))
    rows = golden("tiny-marian")
    same = tokens = equal = 0
    texts: list[str] = []
    for row in rows:
        ids = found_ids(model, row["source_ids"])
        same += ids == row["target_ids"]
        tokens += len(row["target_ids"])
        equal += sum(a == b for a, b in zip(ids, row["target_ids"], strict=False))
        texts.append(model.tokenizer.decode(ids))
    chrf = CHRF().corpus_score(texts, [[row["text"] for row in rows]]).score
    agreement = f"{same} of {len(rows)} sentences and {100 * equal / tokens:.1f} % of tokens as in fp32"
    print(f"{name}: {agreement}, chrF {chrf:.1f} against the fp32 translations")
    assert equal / tokens >= least


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED_TRANSLATORS)
def test_the_shipped_models_agree_with_transformers_up_to_quantisation(name):
    model = MarianModel.load(SHIPPED_TRANSLATORS[name])
    rows = golden(name)
    assert all(model.tokenizer.encode(row["source"]) == row["source_ids"] for row in rows)
    for beams, search, key in ((1, greedy, "target_ids"), (4, beam_search, "beam_4_ids")):
        options = dataclasses.replace(model.generation, beams=beams)
        ids = [[token.id for token in search(SearchRequest(model.decoder, row["source_ids"], options))] for row in rows]
        same = sum(found == row[key] for found, row in zip(ids, rows, strict=True))
        print(f"beams {beams}: {same} of {len(rows)} sentences as in fp32")
        assert same >= len(rows) - 4


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_all_inputs_are_fed_and_nothing_else(layout, tmp_path):
    decoder = load_decoder(find_layout(make_model_dir(tmp_path, layout)))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 0])
    for token in (PAD, 399, 400):
        decoder.step(state, token)
    found = decoder.layout
    headers = {"_encoder": found.encoder, "_first": found.first, "_later": found.later}
    for name, feed, _ in runs:
        header = headers[name]
        assert set(feed) == set(header.inputs)


def test_the_first_step_is_fed_a_past_of_length_zero(tmp_path):
    decoder = load_decoder(find_layout(make_model_dir(tmp_path, "merged")))
    runs = spied(decoder)
    decoder.step(decoder.encode([5, 6, 7, 0]), 399)
    past = {name: value.shape() for name, value in runs[1][1].items() if name.startswith("past_key_values")}
    assert len(past) == 8
    assert set(map(tuple, past.values())) == {(1, 4, 0, 12)}


def test_the_encoder_runs_once_and_its_kv_is_the_same_object_at_every_step(cached_model_dir):
    decoder = load_decoder(find_layout(cached_model_dir))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 8, 0])
    decoder.step(state, 399)
    kept = dict(state.encoder_kv)
    assert {tuple(value.shape()) for value in kept.values()} == {(1, 4, 5, 12)}
    for token in (400, 401, 402):
        decoder.step(state, token)
        assert all(state.encoder_kv[name] is value for name, value in kept.items())
    assert [name for name, _, _ in runs].count("_encoder") == 1
    for _, feed, _ in runs[2:]:
        assert all(feed[name] is value for name, value in kept.items())


def test_a_cached_step_does_not_request_encoder_kv(cached_model_dir):
    decoder = load_decoder(find_layout(cached_model_dir))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 0])
    for token in (399, 400, 401):
        decoder.step(state, token)
    for _, _, outputs in runs[2:]:
        assert not [name for name in outputs if ".encoder." in name]
        assert len(outputs) == 1 + 4


def test_kv_never_becomes_an_array(cached_model_dir):
    decoder = load_decoder(find_layout(cached_model_dir))
    state = decoder.encode([5, 6, 7, 0])
    decoder.step(state, 399)
    for kv in (state.encoder_kv, state.decoder_kv):
        assert len(kv) == 4
        assert all(isinstance(value, ort.OrtValue) for value in kv.values())


def test_a_step_depends_on_the_source_and_the_prefix(model_dir):
    decoder = load_decoder(find_layout(model_dir))

    def scores(source, tokens):
        state = decoder.encode(source)
        return [decoder.step(state, token) for token in tokens][-1]

    base = scores([5, 6, 7, 0], [399, 400, 401])
    assert distance(base, scores([5, 8, 7, 0], [399, 400, 401])) > 0.01
    assert distance(base, scores([5, 6, 7, 0], [402, 400, 401])) > 0.01


@pytest.mark.slow
def test_threads_may_share_one_model(model_dir):
    model = MarianModel.load(model_dir, NmtConfig(cached_sentences=0))
    rows = [row for row in golden("tiny-marian")[:20] if model.translate(row["source"]) == row["text"]]
    assert len(rows) >= 15  # the others are split into sentences first

    def work(_):
        return [row["source"] for row in rows if model.translate(row["source"]) != row["text"]]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [[]] * 4


def test_terminating_one_state_stops_it_and_its_forks_and_leaves_the_model_usable(model_dir):
    decoder = load_decoder(find_layout(model_dir))
    state = decoder.encode([5, 6, 7, 0])
    decoder.step(state, 399)
    other = decoder.encode([5, 6, 7, 0])
    forks = state.fork(), state.fork().fork()
    state.terminate()
    for stopped in (state, *forks):
        with pytest.raises(DecodingStoppedError, match="was stopped"):
            decoder.step(stopped, 400)
    assert decoder.step(other, 399).shape == (PAD + 1,)


def test_a_fork_is_independent_and_shares_static_values(model_dir):
    decoder = load_decoder(find_layout(model_dir))
    state = decoder.encode([5, 6, 7, 0])
    decoder.step(state, 399)
    other = state.fork()
    expected = decoder.step(state, 400)
    decoder.step(state, 401)
    assert other.tokens == (399,)
    assert np.array_equal(decoder.step(other, 400), expected)
    assert other.fixed is state.fixed
    assert all(other.encoder_kv[name] is value for name, value in state.encoder_kv.items())


def test_forced_tokens_give_the_same_scores_as_single_steps(model_dir):
    decoder = load_decoder(find_layout(model_dir))
    tokens = [399, 400, 401, 402]
    one_by_one = decoder.encode([5, 6, 7, 0])
    expected = [decoder.step(one_by_one, token) for token in tokens][-1]
    together = decoder.encode([5, 6, 7, 0])
    output = decoder.force(together, tokens[:2])
    output = decoder.force(together, tokens[2:])
    assert together.tokens == one_by_one.tokens
    assert distance(output, expected) < 1e-4
    assert output.argmax() == expected.argmax()
    assert decoder.step(together, 403).argmax() == decoder.step(one_by_one, 403).argmax()


def test_a_model_with_non_finite_scores_is_rejected(tmp_path):
    folder = make_model_dir(tmp_path, "merged")
    model = onnx.load(folder / "encoder_model.onnx")
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            weight.CopyFrom(onnx.numpy_helper.from_array(np.full(weight.dims, np.nan, np.float32), weight.name))
    (folder / "encoder_model.onnx").unlink()
    onnx.save(model, folder / "encoder_model.onnx")
    with pytest.raises(ModelError, match="the scores are not all finite numbers; export the model again"):
        MarianModel.load(folder)


def test_a_failing_run_raises_model_error(tmp_path):
    decoder = load_decoder(find_layout(make_model_dir(tmp_path, "merged")))
    with pytest.raises(ModelError, match="failed at step 0"):
        decoder.encode([10**6, 0])


def test_maximum_length_in_beam_search_is_flagged(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"), NmtConfig(beam_size=4, max_tokens=3))
    row = next(row for row in golden("tiny-marian") if len(row["beam_4_ids"]) > 6)
    tokens = list(beam_search(SearchRequest(model.decoder, row["source_ids"], model.generation)))
    assert len(tokens) == 3
    assert tokens[-1].id == model.generation.end_token
    assert [token.truncated for token in tokens] == [False, False, True]


@pytest.mark.slow
def test_beam_search_streams_before_its_end(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"), NmtConfig(beam_size=4))
    runs = spied(model.decoder)
    early = 0
    for row in golden("tiny-marian")[:30]:
        steps_before = len(runs)
        search = beam_search(SearchRequest(model.decoder, row["source_ids"], model.generation))
        next(search)
        at_first = len(runs) - steps_before
        rest = len(list(search))
        early += at_first < len(runs) - steps_before and rest > 0
    assert early >= 20


SEARCH = (greedy, beam_search)
VARIANTS = json.loads((FIXTURES / "golden-variants.json").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant["settings"]))
def test_other_settings_give_the_ids_of_transformers(variant, tmp_path):
    given = dict(variant["settings"])
    beams = given.pop("num_beams")
    folder = tiny_with(tmp_path, "generation_config.json", given)
    model = MarianModel.load(folder, NmtConfig(beam_size=beams, max_tokens=512))
    for row in variant["rows"][:: 3 if beams > 1 else 1]:
        tokens = list(
            SEARCH[beams > 1](SearchRequest(model.decoder, model.tokenizer.encode(row["source"]), model.generation))
        )
        assert [token.id for token in tokens] == row["ids"], row["source"]


class Stubborn:
    """Scores of a decoder that prefers 5, then 6, then the end token, with any prefix."""

    steps = 0
    choose, step_each = Decoder.choose, Decoder.step_each

    def encode(self, source, on_start=None):
        return DecoderState(fixed={})

    def step(self, state, token):
        self.steps += 1
        state.tokens += (token,)
        logits = np.full(8, -50.0, np.float32)
        logits[[5, 6, 0]] = 3.0, 2.0, 1.0
        return logits


@pytest.mark.parametrize("beams", [1, 3])
def test_a_guard_that_fires_is_flagged(beams):
    options = GenerationOptions(7, 0, 7, beams=beams, max_tokens=20, no_repeat_ngram=1, length_penalty=0.0)
    tokens = list(SEARCH[beams > 1](SearchRequest(Stubborn(), [0], options)))
    ids = [token.id for token in tokens]
    assert len(set(ids)) == len(ids)
    if beams == 1:
        assert ids == [5, 6, 0]
        assert [token.guarded for token in tokens] == [False, True, True]
    free = dataclasses.replace(options, no_repeat_ngram=0, bad_words=((5,),), max_tokens=3)
    tokens = list(SEARCH[beams > 1](SearchRequest(Stubborn(), [0], free)))
    assert 5 not in [token.id for token in tokens]
    assert tokens[0].guarded


@pytest.mark.parametrize("beams", [1, 4])
def test_the_search_ends_at_the_step_where_the_time_runs_out(beams):
    decoder = Stubborn()
    options = GenerationOptions(7, 0, 7, beams=beams, max_tokens=100)
    tokens = list(SEARCH[beams > 1](SearchRequest(decoder, [0], options, expired=lambda: decoder.steps >= 1)))
    assert decoder.steps == 1
    assert tokens[-1].last
    assert tokens[-1].truncated or tokens[-1].id == 0


def test_a_stopwatch_counts_the_time_in_its_blocks_alone(monkeypatch):
    now_s = 0.0
    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: now_s))
    stopwatch = Stopwatch(3.0)
    for seconds, expired in ((2.0, False), (1.0, False), (0.5, True)):
        with stopwatch:
            now_s += seconds
            assert stopwatch.expired() == expired
        now_s += 60.0
        assert stopwatch.expired() == expired
