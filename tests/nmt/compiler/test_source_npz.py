"""Marian's own files, as in OPUS-MT's archives, give the weights and settings of the converted model."""

import dataclasses
import json
import shutil

import ctranslate2
import numpy as np
import pytest
import sentencepiece
from ctranslate2.converters import OpusMTConverter

from pipeline.errors import ModelError
from pipeline.nmt.compile.marian_npz import read_vocabulary
from pipeline.nmt.compile.source import read_checkpoint
from pipeline.nmt.model import MarianModel
from pipeline.nmt.options import NmtConfig
from tests.conftest import TINY, golden
from tests.nmt.compiler.checkpoints import (
    DAMAGES,
    MODEL_OPTIONS,
    NPZ,
    assert_same_weights,
    marian_weights,
    refusal,
    tiny_config,
    tiny_vocabulary,
    weights_with_empty_pad,
    write_archive,
    write_checkpoint,
    write_vocabulary,
    write_with_pad_of,
)
from tests.nmt.conftest import found_ids


class TestMarianNpz:
    def test_gives_the_weights_of_the_conversion_by_transformers(self, tmp_path):
        checkpoint = read_checkpoint(write_archive(tmp_path))
        assert_same_weights(checkpoint, weights_with_empty_pad())
        assert checkpoint.origin == "Marian npz"

    def test_gives_the_same_sizes_as_the_config_of_transformers(self, tmp_path):
        found = read_checkpoint(write_archive(tmp_path / "a")).architecture
        expected = read_checkpoint(write_checkpoint(tmp_path / "b")).architecture
        # Marian has no limit; 512 is what converted models get.
        assert found == dataclasses.replace(expected, max_positions=512)

    def test_gives_the_settings_that_a_converted_model_has(self, tmp_path):
        checkpoint = read_checkpoint(write_archive(tmp_path))
        for key in ("model_type", "pad_token_id", "eos_token_id", "decoder_start_token_id", "vocab_size", "d_model"):
            assert checkpoint.config[key] == tiny_config()[key], key
        assert json.loads(checkpoint.files["vocab.json"]) == tiny_vocabulary()
        generation = json.loads(checkpoint.files["generation_config.json"])
        assert (generation["num_beams"], generation["length_penalty"], generation["max_length"]) == (6, 1.0, 512)
        assert generation["bad_words_ids"] == [[877]]
        assert generation["decoder_start_token_id"] == 877

    def test_gives_the_languages_that_the_archive_names(self, tmp_path):
        card = "# opus-2020-07-17.zip\n\n* source language(s): eng\n* target language(s): cmn\n"
        (write_archive(tmp_path) / "README.md").write_text(card)
        settings = json.loads(read_checkpoint(tmp_path).files["tokenizer_config.json"])
        assert (settings["source_lang"], settings["target_lang"]) == ("eng", "cmn")

    def test_is_found_without_decoder_yml_if_there_is_one_model_and_one_vocabulary(self, tmp_path):
        (write_archive(tmp_path) / "decoder.yml").unlink()
        assert_same_weights(read_checkpoint(tmp_path), weights_with_empty_pad())

    def test_translates_in_ctranslate2_as_the_weights_read_from_it_do_here(self, tmp_path):
        """An independent reader of the format reads the same model from the archive."""
        archive = write_archive(tmp_path / "archive")
        OpusMTConverter(str(archive)).convert(str(tmp_path / "converted"))
        translator = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32", intra_threads=1)
        here = MarianModel.load(
            write_with_pad_of(tmp_path / "graphs", "merged", read_checkpoint(archive)), NmtConfig(beam_size=1)
        )
        split = sentencepiece.SentencePieceProcessor(model_file=str(TINY / "source.spm"))
        vocabulary = tiny_vocabulary()
        rows = golden("tiny-marian")[:60]
        sources = [split.encode(row["source"], out_type=str) for row in rows]
        results = translator.translate_batch(sources, beam_size=1, max_decoding_length=255)
        theirs = [[vocabulary[piece] for piece in result.hypotheses[0]] for result in results]
        ours = [found_ids(here, row["source_ids"])[:-1] for row in rows]
        assert ours == theirs

    def test_may_have_separate_vocabularies(self, tmp_path):
        weights = marian_weights()
        shared = weights.pop("Wemb")
        weights |= {"encoder_Wemb": shared, "decoder_Wemb": shared[:500]}
        weights["decoder_ff_logit_out_b"] = weights["decoder_ff_logit_out_b"][:, :500]
        options = MODEL_OPTIONS.replace("embeddings-all: true", "embeddings-all: false")
        directory = write_archive(tmp_path, weights, options.replace("tied-embeddings: false", "tied-embeddings: true"))
        pieces = list(tiny_vocabulary())
        write_vocabulary(directory / "opus.src.vocab.yml", pieces[:877])
        write_vocabulary(directory / "opus.trg.vocab.yml", pieces[:500])
        decoding = (directory / "decoder.yml").read_text().replace("opus.vocab", "opus.src.vocab", 1)
        (directory / "decoder.yml").write_text(decoding.replace("opus.vocab", "opus.trg.vocab", 1))
        checkpoint = read_checkpoint(directory)
        assert (checkpoint.architecture.source_vocabulary, checkpoint.architecture.target_vocabulary) == (878, 501)
        assert not checkpoint.config["share_encoder_decoder_embeddings"]
        np.testing.assert_array_equal(checkpoint.weights["decoder.embed_tokens.weight"][:500], shared[:500])
        assert not checkpoint.weights["lm_head.weight"][500].any()
        assert json.loads(checkpoint.files["target_vocab.json"])["<pad>"] == 500
        assert json.loads(checkpoint.files["tokenizer_config.json"])["separate_vocabs"]

    def test_may_have_an_output_projection_of_its_own(self, tmp_path):
        weights = marian_weights()
        own = weights["Wemb"][::-1].copy()
        options = MODEL_OPTIONS.replace("embeddings-all: true", "embeddings-all: false")
        options = options.replace("embeddings-src: false", "embeddings-src: true")
        directory = write_archive(tmp_path, weights | {"decoder_ff_logit_out_W": own.T}, options)
        found = read_checkpoint(directory).weights
        np.testing.assert_array_equal(found["lm_head.weight"][:-1], own)
        np.testing.assert_array_equal(found["decoder.embed_tokens.weight"][:-1], weights["Wemb"])


def without(part):
    return lambda weights: {name: array for name, array in weights.items() if not name.startswith(part)}


DEEPER = MODEL_OPTIONS.replace("enc-depth: 2", "enc-depth: 3")
REFUSED = {
    "missing": (without("decoder_l2_"), MODEL_OPTIONS, "encoder_attn.k_proj.bias, "),
    "unknown": (lambda w: w | {"Wpos": np.zeros((512, 48), np.float32)}, MODEL_OPTIONS, "does not have: Wpos"),
    "of a deeper encoder": (dict, DEEPER, "encoder.layers.2."),
    "without a bias": (without("decoder_ff_logit_out_b"), MODEL_OPTIONS, "has no final_logits_bias"),
    "tied and stored twice": (lambda w: w | {"decoder_ff_logit_out_W": np.zeros((48, 877), np.float32)}, MODEL_OPTIONS, "differ, but the config ties them"),
    "pickled": (lambda w: w | {"Wemb": np.array([{"a": 1}], dtype=object)}, MODEL_OPTIONS, "not a readable Marian model"),
}  # fmt: skip


class TestRefusedNpz:
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("type", "s2s"),
            ("right-left", "true"),
            ("transformer-preprocess", "n"),
            ("transformer-postprocess", "da"),
            ("transformer-postprocess-emb", "nd"),
            ("transformer-postprocess-top", "n"),
            ("transformer-decoder-autoreg", "rnn"),
            ("transformer-train-position-embeddings", "true"),
            ("transformer-no-projection", "true"),
            ("transformer-ffn-depth", "3"),
            ("transformer-ffn-activation", "gelu"),
            ("output-omit-bias", "true"),
        ],
    )
    def test_is_an_option_that_makes_another_model(self, tmp_path, option, value):
        lines = [line for line in MODEL_OPTIONS.splitlines() if not line.startswith(f"{option}:")]
        message = refusal(write_archive(tmp_path, options="\n".join([*lines, f"{option}: {value}"])))
        assert f"--{option} {value}" in message

    @pytest.mark.parametrize("option", ["dim-emb", "enc-depth", "transformer-heads", "transformer-dim-ffn"])
    def test_is_a_size_that_is_missing(self, tmp_path, option):
        lines = [line for line in MODEL_OPTIONS.splitlines() if not line.startswith(f"{option}:")]
        assert f"says {option} ''" in refusal(write_archive(tmp_path, options="\n".join(lines)))

    @pytest.mark.parametrize("name", REFUSED)
    def test_are_other_parameters_than_the_options_need(self, tmp_path, name):
        change, options, reason = REFUSED[name]
        assert reason in refusal(write_archive(tmp_path, change(marian_weights()), options))

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_is_a_damaged_file(self, tmp_path, damage):
        path = write_archive(tmp_path) / NPZ
        path.write_bytes(damage(path.read_bytes()))
        assert "unpack the archive again" in refusal(tmp_path)

    def test_is_a_file_without_options(self, tmp_path):
        np.savez(write_archive(tmp_path) / NPZ, **marian_weights())
        assert "has no special:model.yml" in refusal(tmp_path)

    @pytest.mark.parametrize("name", ["source.spm", "opus.vocab.yml", NPZ])
    def test_is_an_archive_with_a_file_missing(self, tmp_path, name):
        (write_archive(tmp_path) / name).unlink()
        (tmp_path / "other.npz").touch()
        assert name in refusal(tmp_path)

    def test_is_an_ensemble_or_an_ambiguous_model_file(self, tmp_path):
        directory = write_archive(tmp_path)
        shutil.copy(directory / NPZ, directory / "second.npz")
        decoding = directory / "decoder.yml"
        decoding.write_text(decoding.read_text().replace("vocabs:", "  - second.npz\nvocabs:"))
        assert "an ensemble" in refusal(directory)
        decoding.unlink()
        assert f"found {NPZ}, second.npz" in refusal(directory)

    def test_is_one_embedding_for_two_vocabularies(self, tmp_path):
        directory = write_archive(tmp_path)
        shutil.copy(directory / "opus.vocab.yml", directory / "trg.vocab.yml")
        decoding = directory / "decoder.yml"
        decoding.write_text("trg.vocab.yml".join(decoding.read_text().rsplit("opus.vocab.yml", 1)))
        assert "two vocabularies, but one embedding" in refusal(directory)

    def test_is_text_split_by_bpe(self, tmp_path):
        (write_archive(tmp_path) / "source.bpe").touch()
        assert "BPE" in refusal(tmp_path)


class TestMarianVocabulary:
    @pytest.mark.parametrize(
        ("line", "piece"),
        [
            ('"▁the": 2', "▁the"),
            ("▁the: 2", "▁the"),
            ("':': 2", ":"),
            ("'''': 2", "'"),
            ('"\\"": 2', '"'),
            ('"\\\\": 2', "\\"),
            ('"\\x85": 2', "\x85"),
            ('"\\u2028": 2', "\u2028"),
            ("a:b: 2", "a:b"),
            ("null: 2", "null"),
            ("1.5: 2", "1.5"),
            ("#: 2", "#"),
            ("\u2028: 2", "\u2028"),
            ("\x7f: 2", "\x7f"),
            ("? piece\n: 2", "piece"),
            (">>cmn_Hans<<: 2", ">>cmn_Hans<<"),
        ],
    )
    def test_pieces_are_read_however_they_are_quoted(self, tmp_path, line, piece):
        path = tmp_path / "vocab.yml"
        path.write_text(f'"</s>": 0\n<unk>: 1\n{line}\n', "utf-8", newline="\n")
        assert read_vocabulary(path) == {"</s>": 0, "<unk>": 1, piece: 2}

    def test_plain_text_and_json_are_read_too(self, tmp_path):
        (tmp_path / "src.vocab").write_text("</s>\n<unk>\n\u2028\n:\n", "utf-8", newline="\n")
        (tmp_path / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}', "utf-8")
        assert read_vocabulary(tmp_path / "src.vocab") == {"</s>": 0, "<unk>": 1, "\u2028": 2, ":": 3}
        assert read_vocabulary(tmp_path / "vocab.json") == {"</s>": 0, "<unk>": 1}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("</s>: 0\n<unk>: 2\n", "the ids 0 to 1, each once"),
            ("</s>: 0\na: 1\n", "no <unk>"),
            ("</s>: 0\n<unk>\n", "line 2 is '<unk>'"),
            ("", "each once"),
            ("- a\n- b\n", "line 1"),
            ("\udcff", "not a readable vocabulary"),
        ],
    )
    def test_others_are_refused(self, tmp_path, text, reason):
        path = tmp_path / "vocab.yml"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(ModelError, match=reason):
            read_vocabulary(path)

    def test_of_another_size_than_the_embedding_is_refused(self, tmp_path):
        directory = write_archive(tmp_path)
        write_vocabulary(directory / "opus.vocab.yml", list(tiny_vocabulary())[:800])
        assert "has 800 pieces, the embedding 877 rows" in refusal(directory)
        write_vocabulary(directory / "opus.vocab.yml", [*list(tiny_vocabulary())[:876], "<pad>"])
        assert "has a <pad>; expected none" in refusal(directory)
