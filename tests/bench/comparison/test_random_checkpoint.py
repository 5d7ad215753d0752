"""The random checkpoint is valid for all readers of checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.bench.comparison.random_checkpoint import OPUS_MT, random_checkpoint, write_transformers
from pipeline.bench.comparison.sentences import ENGLISH, words_of
from pipeline.nmt.compiler.checkpoint import Architecture
from pipeline.nmt.compiler.source import read_checkpoint
from pipeline.nmt.tokenizer import MarianTokenizer
from tests.conftest import TINY

SMALL = Architecture(32, 1, 2, 4, 4, 48, 64, "relu", 32**0.5, 40, 603, 603)


def test_a_written_checkpoint_is_read_back_unchanged(tmp_path: Path) -> None:
    made = random_checkpoint(SMALL, words_of(ENGLISH))
    write_transformers(made, tmp_path)
    found = read_checkpoint(tmp_path)
    assert (found.architecture, found.files) == (SMALL, made.files)
    assert found.weights.keys() == made.weights.keys()
    assert all(np.array_equal(found.weights[name], made.weights[name]) for name in made.weights)
    assert found.weights["lm_head.weight"] is found.weights["encoder.embed_tokens.weight"]


def test_a_real_checkpoint_is_read_back_unchanged(tmp_path: Path) -> None:
    original = read_checkpoint(TINY)
    write_transformers(original, tmp_path)
    found = read_checkpoint(tmp_path)
    assert (found.architecture, found.files) == (original.architecture, original.files)
    assert all(np.array_equal(found.weights[name], original.weights[name]) for name in original.weights)


def test_sentences_have_a_typical_length_and_no_unknown_pieces(tmp_path: Path) -> None:
    write_transformers(random_checkpoint(SMALL, words_of(ENGLISH)), tmp_path)
    tokenizer = MarianTokenizer.load(tmp_path)
    for sentence in ENGLISH:
        ids = tokenizer.encode(sentence)
        assert tokenizer.unknown_token not in ids
        assert len(sentence.split()) < len(ids) < 1.5 * len(sentence.split()) + 1


def test_source_pieces_have_a_low_bias_as_in_a_trained_model() -> None:
    made = random_checkpoint(SMALL, ["hotel"])
    assert (made.weights["final_logits_bias"] < -20).sum() == 300


def test_the_default_size_is_that_of_opus_mt() -> None:
    assert (OPUS_MT.d_model, OPUS_MT.decoder_layers, OPUS_MT.target_vocabulary) == (512, 6, 65_001)
