"""What must hold in every layout, and equality with transformers token for token.

Which test fails when which rule is broken is shown by tests/nmt/test_mutations.py.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from pipeline import Models
from pipeline.nmt.decoder import Decoder, load_decoder
from pipeline.nmt.layout import find_layout
from pipeline.nmt.model import MarianModel
from pipeline.nmt.search import greedy
from tests.conftest import golden, make_model_dir


def spied(decoder: Decoder) -> list[tuple[str, dict[str, ort.OrtValue], list[str]]]:
    """Record every run: (graph file, what it was fed, what it was asked for)."""
    runs: list[tuple[str, dict[str, ort.OrtValue], list[str]]] = []
    for attribute, session in list(vars(decoder).items()):
        if isinstance(session, ort.InferenceSession):
            setattr(decoder, attribute, _Spy(session, attribute, runs))
    return runs


class _Spy:
    def __init__(self, session: ort.InferenceSession, name: str, runs: list) -> None:
        self.session, self.name, self.runs = session, name, runs

    def run_with_ort_values(self, outputs: list[str], feed: dict[str, ort.OrtValue], options: ort.RunOptions) -> list:
        self.runs.append((self.name, dict(feed), list(outputs)))
        return self.session.run_with_ort_values(outputs, feed, options)


def test_greedy_ids_equal_those_of_transformers(model_dir: Path) -> None:
    model = MarianModel.load(model_dir, max_tokens=512)
    rows = golden("tiny-marian")
    assert len(rows) >= 50
    for row in rows:
        assert model.tokenizer.encode(row["source"]) == row["source_ids"]
        tokens = [token.id for token in greedy(model.decoder, row["source_ids"], model.generation)]
        assert tokens == row["target_ids"], row["source"]
        assert model.tokenizer.decode(tokens) == row["text"]


def test_the_shipped_model_equals_transformers(demo_models: Models) -> None:
    model = demo_models.translation
    rows = golden("demo")
    assert len(rows) >= 50
    for row in rows:
        assert model.tokenizer.encode(row["source"]) == row["source_ids"]
        tokens = [token.id for token in greedy(model.decoder, row["source_ids"], model.generation)]
        assert tokens == row["target_ids"], row["source"]
        assert model.tokenizer.decode(tokens) == row["text"]


def test_all_inputs_are_fed_and_nothing_else(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 0])
    for token in (decoder.layout.vocabulary - 1, 9, 10):
        decoder.step(state, token)
    layout = decoder.layout
    headers = {
        "_encoder": layout.encoder,
        "_session": layout.merged,
        "_first": layout.first_step,
        "_later": layout.with_past,
    }
    for name, feed, _ in runs:
        header = headers[name]
        assert header is not None
        assert set(feed) == set(header.inputs)


def test_the_first_step_is_fed_a_past_of_length_zero(tmp_path: Path) -> None:
    decoder = load_decoder(find_layout(make_model_dir(tmp_path, "merged")))
    runs = spied(decoder)
    decoder.step(decoder.encode([5, 6, 7, 0]), 9)
    past = {name: value.shape() for name, value in runs[1][1].items() if name.startswith("past_key_values")}
    assert len(past) == 8
    assert set(map(tuple, past.values())) == {(1, 4, 0, 12)}


def test_the_encoder_runs_once_and_its_kv_is_the_same_object_at_every_step(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 8, 0])
    decoder.step(state, 9)
    kept = dict(state.encoder_kv)
    assert {tuple(value.shape()) for value in kept.values()} == {(1, 4, 5, 12)}
    for token in (10, 11, 12):
        decoder.step(state, token)
        assert all(state.encoder_kv[name] is value for name, value in kept.items())
    assert [name for name, _, _ in runs].count("_encoder") == 1
    for _, feed, _ in runs[2:]:
        assert all(feed[name] is value for name, value in kept.items())


def test_a_cached_step_is_not_asked_for_encoder_kv(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    runs = spied(decoder)
    state = decoder.encode([5, 6, 7, 0])
    for token in (9, 10, 11):
        decoder.step(state, token)
    for _, _, outputs in runs[2:]:
        assert not [name for name in outputs if ".encoder." in name]
        assert len(outputs) == 1 + 4


def test_kv_never_becomes_an_array(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    state = decoder.encode([5, 6, 7, 0])
    decoder.step(state, 9)
    for kv in (state.encoder_kv, state.decoder_kv):
        assert len(kv) == 4
        assert all(isinstance(value, ort.OrtValue) for value in kv.values())


def test_a_step_depends_on_the_source_and_on_what_was_said(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))

    def scores(source: list[int], tokens: list[int]) -> np.ndarray:
        state = decoder.encode(source)
        return [decoder.step(state, token).logits for token in tokens][-1]

    base = scores([5, 6, 7, 0], [9, 10, 11])
    assert np.abs(base - scores([5, 8, 7, 0], [9, 10, 11])).max() > 0.01
    assert np.abs(base - scores([5, 6, 7, 0], [12, 10, 11])).max() > 0.01


def test_threads_may_share_one_model(model_dir: Path) -> None:
    model = MarianModel.load(model_dir)
    rows = golden("tiny-marian")[:20]
    wrong: list[str] = []

    def work() -> None:
        wrong.extend(row["source"] for row in rows if model.translate(row["source"]) != row["text"])

    rows = [row for row in rows if model.translate(row["source"]) == row["text"]]
    assert len(rows) >= 15  # the others are split into sentences first
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_terminating_one_state_stops_it_and_leaves_the_model_usable(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    state = decoder.encode([5, 6, 7, 0])
    decoder.step(state, 9)
    other = decoder.encode([5, 6, 7, 0])
    state.terminate()
    with pytest.raises(Exception, match="(?i)terminate"):
        decoder.step(state, 10)
    assert decoder.step(other, 9).logits.shape == (decoder.layout.vocabulary,)
