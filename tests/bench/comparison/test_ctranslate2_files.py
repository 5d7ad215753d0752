"""A checkpoint written for CTranslate2 translates like transformers."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.bench.comparison.ctranslate2_files import write_ctranslate2
from pipeline.bench.comparison.engines import Candidate, open_engine
from pipeline.bench.comparison.random_checkpoint import random_checkpoint
from pipeline.nmt.compiler.checkpoint import Architecture
from pipeline.nmt.compiler.source import read_checkpoint
from tests.conftest import TINY, golden

SMALL = Architecture(32, 1, 2, 4, 4, 48, 64, "relu", 32**0.5, 40, 603, 603)


def test_float32_ids_equal_those_of_transformers(tmp_path: Path) -> None:
    write_ctranslate2(read_checkpoint(TINY), tmp_path, "float32")
    engine = open_engine(Candidate("", "ctranslate2", str(tmp_path), 0), 1)
    for row in golden("tiny-marian"):
        assert engine.translate(row["source_ids"], 256) == row["target_ids"][:-1]


def test_writing_leaves_the_checkpoint_unchanged(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(TINY)
    for kind in ("int8", "float32"):  # quantising must not change the checkpoint
        (tmp_path / kind).mkdir()
        write_ctranslate2(checkpoint, tmp_path / kind, kind)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    write_ctranslate2(read_checkpoint(TINY), fresh, "float32")
    assert (tmp_path / "float32" / "model.bin").read_bytes() == (fresh / "model.bin").read_bytes()
    assert (tmp_path / "int8" / "model.bin").stat().st_size < (fresh / "model.bin").stat().st_size / 2


def test_a_sentence_has_the_requested_number_of_tokens(tmp_path: Path) -> None:
    write_ctranslate2(read_checkpoint(TINY), tmp_path, "int8")
    engine = open_engine(Candidate("", "ctranslate2", str(tmp_path), 0), 1)
    row = golden("tiny-marian")[0]
    natural = len(row["target_ids"])
    for tokens in (1, natural - 1, natural + 5):
        assert len(engine.decode(row["source_ids"], tokens)) == tokens


def test_only_shortlisted_tokens_are_generated(tmp_path: Path) -> None:
    allowed = [0, 1, *range(100, 140)]
    write_ctranslate2(read_checkpoint(TINY), tmp_path, "int8", allowed)
    source = golden("tiny-marian")[0]["source_ids"]
    short = open_engine(Candidate("", "ctranslate2", str(tmp_path), 0, {"vmap": True}), 1).decode(source, 20)
    assert set(short) <= set(allowed)
    assert not set(open_engine(Candidate("", "ctranslate2", str(tmp_path), 0), 1).decode(source, 20)) <= set(allowed)


def test_a_pad_row_of_zeros_is_left_out(tmp_path: Path) -> None:
    write_ctranslate2(random_checkpoint(SMALL, ["hotel"]), tmp_path, "float32")
    config = json.loads((tmp_path / "config.json").read_text())
    vocabulary = json.loads((tmp_path / "shared_vocabulary.json").read_text("utf-8"))
    assert (config["decoder_start_token"], len(vocabulary)) == ("</s>", 602)
