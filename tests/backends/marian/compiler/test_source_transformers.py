"""Directories that transformers wrote are read completely. Incomplete or other models are refused with a reason."""

import json
import math
import os
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.backends.marian.compile.assemble import sinusoids
from pipeline.backends.marian.compile.build import compile_model
from pipeline.backends.marian.compile.checkpoint_files import read_checkpoint
from pipeline.backends.marian.model import MarianModel
from tests.backends.marian.compiler.checkpoints import (
    DAMAGES,
    EMBEDDINGS,
    assert_same_weights,
    half,
    refusal,
    tiny_vocabulary,
    true_weights,
    write_checkpoint,
    write_settings,
)
from tests.conftest import TINY, golden

Q_PROJ = "model.encoder.layers.0.self_attn.q_proj.weight"


class TestSafetensors:
    def test_are_read_as_transformers_wrote_them(self, tmp_path):
        checkpoint = read_checkpoint(write_checkpoint(tmp_path))
        assert_same_weights(checkpoint)
        assert checkpoint.origin == "safetensors"

    def test_give_the_sizes_and_options_of_the_config(self, tmp_path):
        architecture = read_checkpoint(write_checkpoint(tmp_path)).architecture
        assert (architecture.d_model, architecture.encoder_heads, architecture.decoder_ffn) == (48, 4, 128)
        assert (architecture.source_vocabulary, architecture.target_vocabulary) == (878, 878)
        assert (architecture.activation, architecture.max_positions) == ("swish", 256)
        assert architecture.embedding_scale == math.sqrt(48)

    def test_bring_the_other_files_of_the_directory_along_unchanged(self, tmp_path):
        files = read_checkpoint(write_checkpoint(tmp_path)).files
        assert sorted(files) == [
            "generation_config.json",
            "source.spm",
            "target.spm",
            "tokenizer_config.json",
            "vocab.json",
        ]
        assert files["source.spm"] == (TINY / "source.spm").read_bytes()

    @pytest.mark.parametrize("stored", [np.float16, np.float64])
    def test_may_be_stored_in_another_precision(self, tmp_path, stored):
        # The tiny model's weights are exact in fp16.
        weights = {name: array.astype(stored) for name, array in true_weights().items()}
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, weights)))

    def test_may_be_stored_as_bfloat16(self, tmp_path):
        weights = {name: array.astype(ml_dtypes.bfloat16) for name, array in true_weights().items()}
        found = read_checkpoint(write_checkpoint(tmp_path, weights)).weights
        np.testing.assert_array_equal(found[Q_PROJ.removeprefix("model.")], weights[Q_PROJ].astype(np.float32))

    def test_may_be_in_several_files(self, tmp_path):
        assert_same_weights(read_checkpoint(write_shards(tmp_path)))

    def test_hold_a_tied_matrix_once_and_give_it_under_each_name_as_one_array(self, tmp_path):
        found = read_checkpoint(write_checkpoint(tmp_path)).weights
        assert len({id(found[name]) for name in EMBEDDINGS}) == 1

    @pytest.mark.parametrize(
        "name", ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    )
    def test_may_hold_a_tied_matrix_under_any_of_its_names(self, tmp_path, name):
        weights = true_weights()
        weights[name] = weights.pop("model.shared.weight")
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, weights)))

    def test_may_hold_the_positions_rounded_to_half_precision(self, tmp_path):
        weights = true_weights() | {
            f"model.{side}.embed_positions.weight": sinusoids(256, 48) for side in ("encoder", "decoder")
        }
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, half(weights))))

    def test_may_have_an_output_projection_of_its_own(self, tmp_path):
        own = true_weights()["model.shared.weight"][::-1].copy()
        directory = write_checkpoint(tmp_path, true_weights() | {"lm_head.weight": own}, {"tie_word_embeddings": False})
        found = read_checkpoint(directory).weights
        np.testing.assert_array_equal(found["lm_head.weight"], own)
        np.testing.assert_array_equal(found["decoder.embed_tokens.weight"], true_weights()["model.shared.weight"])

    def test_may_have_padding_rows_after_the_vocabulary(self, tmp_path):
        """As after fine-tuning that rounds the embedding's size up."""
        weights = true_weights()
        weights["model.shared.weight"] = np.pad(weights["model.shared.weight"], ((0, 2), (0, 0)))
        weights["final_logits_bias"] = np.pad(weights["final_logits_bias"], ((0, 0), (0, 2)))
        directory = write_checkpoint(tmp_path / "in", weights, {"vocab_size": 880, "decoder_vocab_size": 880})
        checkpoint = read_checkpoint(directory)
        assert_same_weights(checkpoint)
        assert len({id(checkpoint.weights[name]) for name in EMBEDDINGS}) == 1
        compile_model(directory, tmp_path / "out", weights="int8")
        row = golden("tiny-marian")[0]
        assert MarianModel.load(tmp_path / "out").translate(row["source"]) == row["text"]

    def test_may_have_separate_vocabularies(self, tmp_path):
        weights = true_weights()
        source = weights.pop("model.shared.weight")
        target, bias = source[:500].copy(), weights.pop("final_logits_bias")[:, :500].copy()
        weights |= {"model.encoder.embed_tokens.weight": source, "model.decoder.embed_tokens.weight": target}
        config = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 500}
        directory = write_checkpoint(tmp_path, weights | {"final_logits_bias": bias}, config)
        pieces = list(tiny_vocabulary())[:499]
        (directory / "target_vocab.json").write_text(json.dumps({p: i for i, p in enumerate([*pieces, "<pad>"])}))
        checkpoint = read_checkpoint(directory)
        assert (checkpoint.architecture.source_vocabulary, checkpoint.architecture.target_vocabulary) == (878, 500)
        np.testing.assert_array_equal(checkpoint.weights["lm_head.weight"], target)
        assert "target_vocab.json" in checkpoint.files


def write_shards(folder):
    """The tiny model in three files with an index, as transformers splits large ones."""
    write_settings(folder)
    weights, places = true_weights(), {}
    for number in range(3):
        names = sorted(weights)[number::3]
        file = f"model-{number + 1:05}-of-00003.safetensors"
        save_file({name: weights[name] for name in names}, folder / file)
        places |= dict.fromkeys(names, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def interleaved():
    return sinusoids(256, 48).reshape(256, 2, 24).transpose(0, 2, 1).reshape(256, 48).copy()


def spoiled(value):
    """A matrix with one value changed."""
    matrix = true_weights()[Q_PROJ]
    matrix[3, 5] = value
    return matrix


TIED = "differ, but the config ties them"
REFUSED = {
    "partial": (lambda w: {n: a for n, a in w.items() if "decoder.layers.1." not in n}, {}, "decoder.layers.1.encoder_attn.k_proj.bias, "),
    "counted": (lambda w: {n: a for n, a in w.items() if "decoder.layers.1." not in n}, {}, "and 23 more"),
    "of another size": (lambda w: w | {Q_PROJ: w[Q_PROJ][:, :40].copy()}, {}, "q_proj.weight has the shape [48, 40], its config expects [48, 48]"),
    "ignored": (lambda w: w | {"model.encoder.layernorm_embedding.weight": np.ones(48, np.float32)}, {}, "encoder.layernorm_embedding.weight"),
    "not a number": (lambda w: w | {Q_PROJ: spoiled(np.nan)}, {}, "q_proj.weight is empty or holds values that are not finite"),
    "infinite": (lambda w: w | {Q_PROJ: spoiled(-np.inf)}, {}, "q_proj.weight is empty or holds values that are not finite"),
    "int8": (lambda w: w | {Q_PROJ: w[Q_PROJ].astype(np.int8)}, {}, f"model.safetensors: {Q_PROJ} is stored as"),
    "float8": (lambda w: w | {Q_PROJ: w[Q_PROJ].astype(ml_dtypes.float8_e4m3fn)}, {}, f"model.safetensors: {Q_PROJ} is stored as"),
    "another head": (lambda w: w | {"lm_head.weight": w["model.shared.weight"] + 1}, {}, TIED),
    "another embedding": (lambda w: w | {"model.decoder.embed_tokens.weight": w["model.shared.weight"] + 1}, {}, TIED),
    "one of two matrices": (dict, {"tie_word_embeddings": False}, "lacks the weights lm_head.weight"),
    "one of two embeddings": (dict, {"share_encoder_decoder_embeddings": False}, "does not have: shared.weight"),
    "one of two sizes": (dict, {"decoder_vocab_size": 500}, "its config expects [500, 48]"),
    "other positions": (lambda w: w | {"model.decoder.embed_positions.weight": interleaved()}, {}, "does not hold sinusoids"),
}  # fmt: skip


class TestRefused:
    @pytest.mark.parametrize("name", REFUSED)
    def test_are_other_weights_than_those_of_the_config(self, tmp_path, name):
        change, config, reason = REFUSED[name]
        assert reason in refusal(write_checkpoint(tmp_path, change(true_weights()), config))

    @pytest.mark.parametrize("kind", ["mbart", "m2m_100", "t5", "bart", "opennmt", None])
    def test_is_every_architecture_but_marian(self, tmp_path, kind):
        assert f"model of the type {kind!r}" in refusal(write_checkpoint(tmp_path, config={"model_type": kind}))

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("normalize_before", True),
            ("normalize_embedding", True),
            ("layernorm_embedding", True),
            ("add_final_layer_norm", True),
            ("static_position_embeddings", False),
            ("activation_function", "gelu_new"),
            ("activation_function", ["swish"]),
            ("scale_embedding", "yes"),
            ("d_model", 0),
            ("encoder_layers", None),
            ("decoder_attention_heads", 5),
            ("quantization_config", {"bits": 4}),
        ],
    )
    def test_is_an_option_that_the_graphs_do_not_have(self, tmp_path, key, value):
        message = refusal(write_checkpoint(tmp_path, config={key: value}))
        assert key.split("_")[0] in message

    def test_is_a_vocabulary_larger_than_the_embedding(self, tmp_path):
        directory = write_checkpoint(tmp_path)
        table = tiny_vocabulary()
        (directory / "vocab.json").write_text(json.dumps(table | {"one more": 878}))
        assert "vocab.json has 879 entries, the embedding 878 rows" in refusal(directory)

    def test_is_a_separate_target_vocabulary_that_is_missing(self, tmp_path):
        (write_checkpoint(tmp_path) / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
        assert "lacks target_vocab.json" in refusal(tmp_path)

    @pytest.mark.parametrize("text", ["[1, 2]", "{", "\udcff"])
    def test_is_a_vocabulary_that_is_no_json_object(self, tmp_path, text):
        (write_checkpoint(tmp_path) / "vocab.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        assert "vocab.json" in refusal(tmp_path)

    @pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "config.json"])
    def test_is_a_directory_without_its_tokenizer_or_config(self, tmp_path, name):
        directory = write_checkpoint(tmp_path)
        (directory / name).unlink()
        assert f"lacks {name}" in refusal(directory)

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_is_a_damaged_file(self, tmp_path, damage):
        path = write_checkpoint(tmp_path) / "model.safetensors"
        path.write_bytes(damage(path.read_bytes()))
        assert "not a readable safetensors file" in refusal(tmp_path)

    def test_is_an_incomplete_set_of_shards(self, tmp_path):
        directory = write_shards(tmp_path)
        (directory / "model-00002-of-00003.safetensors").unlink()
        assert "model-00002-of-00003.safetensors" in refusal(directory)

    def test_is_an_index_that_leads_out_of_the_directory(self, tmp_path):
        directory = write_shards(tmp_path / "model")
        shutil.copy(TINY / "model.safetensors", tmp_path / "other.safetensors")
        index = directory / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": dict.fromkeys(true_weights(), "../other.safetensors")}))
        assert "not a file of this directory" in refusal(directory)

    def test_is_a_directory_that_holds_no_checkpoint(self, tmp_path):
        (tmp_path / "tf_model.h5").touch()
        assert "found tf_model.h5" in refusal(tmp_path)
        assert "no such model directory" in refusal(tmp_path / "nowhere")

    def test_is_a_directory_that_may_not_be_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)
        assert "is not readable; check its permissions" in refusal(tmp_path)
