"""The alignment head that the compiler chooses by measurement."""

import json
import shutil

import numpy as np
import pytest
from compiled import marian_weights
from safetensors.numpy import save_file

from pipeline import MarianModel
from pipeline.backends.marian.compile.build import LEAST_AGREEMENT, compile_model
from pipeline.backends.marian.decode.streaming import ALIGNMENT
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence
from pipeline.glossary.terms import Glossary, Term
from tests.conftest import SETTINGS, SHIPPED_TRANSLATORS, TINY, golden

DEMO = SHIPPED_TRANSLATORS["demo-en-zh"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The demo's translator as it was before it was compiled, with text to measure with."""
    folder = tmp_path_factory.mktemp("checkpoint")
    for name in SETTINGS:
        shutil.copy(DEMO / name, folder)
    weights = {name: np.ascontiguousarray(value) for name, value in marian_weights(DEMO).items()}
    size = json.loads((DEMO / "config.json").read_text())["vocab_size"]
    save_file(weights | {"final_logits_bias": np.zeros((1, size), np.float32)}, folder / "model.safetensors")
    lines = [row["source"] for row in golden("demo-en-zh")[:40]]
    (folder / "sample.txt").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.mark.slow
def test_the_head_that_was_trained_to_align_is_found(checkpoint, tmp_path):
    report = compile_model(checkpoint, tmp_path / "out", weights="fp32")
    assert report.alignment.head == 0  # the training guides head 0 of each layer
    assert report.alignment.agreement > 0.8 > LEAST_AGREEMENT
    model = MarianModel.load(tmp_path / "out")
    assert model.decoder.aligned
    glossary = Glossary((Term("Chang Wei", "张伟"),))
    *_, end = model.stream(TranslationRequest(SourceSentence(0, "en", "Do you know Chang Wei?"), glossary=glossary))
    assert (end.terms, end.missed_terms) == (("Chang Wei",), ())


@pytest.mark.slow
def test_a_head_that_is_named_is_given_out(checkpoint, tmp_path):
    report = compile_model(checkpoint, tmp_path / "out", weights="fp32", alignment=(1, 0))
    assert report.alignment is None
    assert MarianModel.load(tmp_path / "out").decoder.aligned


def test_a_model_whose_heads_do_not_align_gives_out_none(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.backends.marian.compile.build.LEAST_AGREEMENT", 1.01)
    report = compile_model(TINY, tmp_path / "out", weights="fp32")
    assert report.alignment is None or report.alignment.agreement <= 1
    model = MarianModel.load(tmp_path / "out")
    assert ALIGNMENT not in model.decoder.layout.first.outputs
    assert not model.decoder.aligned
