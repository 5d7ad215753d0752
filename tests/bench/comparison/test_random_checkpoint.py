"""The model with random weights is one that every reader of checkpoints takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.bench.comparison.random_checkpoint import OPUS_MT, random_checkpoint
from pipeline.bench.comparison.sentences import ENGLISH, words_of
from pipeline.bench.comparison.transformers_files import write_transformers
from pipeline.nmt.compiler.checkpoint import Architecture
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.tokenizer import MarianTokenizer
from tests.conftest import TINY

SMALL = Architecture(32, 1, 2, 4, 4, 48, 64, "relu", 32**0.5, 40, 603, 603)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = random_checkpoint(SMALL, words_of(ENGLISH))
    write_transformers(made, tmp_path)
    found = read_checkpoint(tmp_path)
    assert (found.architecture, found.files) == (SMALL, made.files)
    assert found.weights.keys() == made.weights.keys()
    assert all(np.array_equal(found.weights[name], made.weights[name]) for name in made.weights)
    assert found.weights["lm_head.weight"] is found.weights["encoder.embed_tokens.weight"]


def test_a_checkpoint_from_elsewhere_is_read_as_it_was_written(tmp_path: Path) -> None:
    original = read_checkpoint(TINY)
    write_transformers(original, tmp_path)
    found = read_checkpoint(tmp_path)
    assert (found.architecture, found.files) == (original.architecture, original.files)
    assert all(np.array_equal(found.weights[name], original.weights[name]) for name in original.weights)


def test_its_sentences_are_as_long_as_usual_and_have_no_unknown_pieces(tmp_path: Path) -> None:
    write_transformers(random_checkpoint(SMALL, words_of(ENGLISH)), tmp_path)
    tokenizer = MarianTokenizer.load(tmp_path)
    for sentence in ENGLISH:
        ids = tokenizer.encode(sentence)
        assert tokenizer.unknown_token not in ids
        assert len(sentence.split()) < len(ids) < 1.5 * len(sentence.split()) + 1


def test_source_pieces_never_come_out_as_in_a_trained_model() -> None:
    made = random_checkpoint(SMALL, ["hotel"])
    assert (made.weights["final_logits_bias"] < -20).sum() == 300


def test_its_size_is_opus_mt() -> None:
    assert (OPUS_MT.d_model, OPUS_MT.decoder_layers, OPUS_MT.target_vocabulary) == (512, 6, 65_001)
