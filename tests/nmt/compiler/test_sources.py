"""A checkpoint of any kind gives the same weights, and what is no whole Marian model is refused with the reason."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from safetensors.numpy import save_file

from pipeline.errors import ModelError
from pipeline.nmt.compiler.assemble import sinusoids
from pipeline.nmt.compiler.checkpoint import Checkpoint, expected_shapes
from pipeline.nmt.compiler.source import read_checkpoint
from tests.conftest import LAYOUTS, ROOT, TINY
from tests.nmt.compiler.checkpoints import (
    Weights,
    half,
    tiny_config,
    true_weights,
    write_checkpoint,
    write_export,
    write_settings,
)

EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
Q_PROJ = "model.encoder.layers.0.self_attn.q_proj.weight"


def expected_weights() -> Weights:
    """What every kind of source must give: transformers' weights under the names of the builder."""
    saved = {name.removeprefix("model."): array for name, array in true_weights().items()}
    embedding, bias = saved.pop("shared.weight"), saved.pop("final_logits_bias")
    return saved | dict.fromkeys(EMBEDDINGS, embedding) | {"final_logits_bias": bias[0]}


def assert_same_weights(checkpoint: Checkpoint) -> None:
    expected = expected_weights()
    assert checkpoint.weights.keys() == expected.keys() == expected_shapes(checkpoint.architecture).keys()
    for name, array in checkpoint.weights.items():
        assert array.dtype == np.float32
        assert array.flags.c_contiguous, name
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def refusal(directory: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_checkpoint(directory)
    message = str(caught.value)
    assert str(directory) in message
    return message


class TestSafetensors:
    def test_are_read_as_transformers_wrote_them(self, tmp_path: Path) -> None:
        checkpoint = read_checkpoint(write_checkpoint(tmp_path))
        assert_same_weights(checkpoint)
        assert checkpoint.origin == "safetensors"

    def test_give_the_sizes_and_options_of_the_config(self, tmp_path: Path) -> None:
        architecture = read_checkpoint(write_checkpoint(tmp_path)).architecture
        assert (architecture.d_model, architecture.encoder_heads, architecture.decoder_ffn) == (48, 4, 128)
        assert (architecture.source_vocabulary, architecture.target_vocabulary) == (878, 878)
        assert (architecture.activation, architecture.max_positions) == ("swish", 256)
        assert architecture.embedding_scale == math.sqrt(48)

    def test_bring_the_other_files_of_the_directory_along_unchanged(self, tmp_path: Path) -> None:
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
    def test_may_be_stored_in_another_precision(self, tmp_path: Path, stored: type) -> None:
        # The tiny model's weights are exact in fp16.
        weights = {name: array.astype(stored) for name, array in true_weights().items()}
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, weights)))

    def test_may_be_stored_as_bfloat16(self, tmp_path: Path) -> None:
        weights = {name: array.astype(ml_dtypes.bfloat16) for name, array in true_weights().items()}
        found = read_checkpoint(write_checkpoint(tmp_path, weights)).weights
        np.testing.assert_array_equal(found[Q_PROJ.removeprefix("model.")], weights[Q_PROJ].astype(np.float32))

    def test_may_be_in_several_files(self, tmp_path: Path) -> None:
        assert_same_weights(read_checkpoint(write_shards(tmp_path)))

    def test_hold_a_tied_matrix_once_and_give_it_under_each_name_as_one_array(self, tmp_path: Path) -> None:
        found = read_checkpoint(write_checkpoint(tmp_path)).weights
        assert len({id(found[name]) for name in EMBEDDINGS}) == 1

    @pytest.mark.parametrize(
        "name", ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    )
    def test_may_hold_a_tied_matrix_under_any_of_its_names(self, tmp_path: Path, name: str) -> None:
        weights = true_weights()
        weights[name] = weights.pop("model.shared.weight")
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, weights)))

    def test_may_hold_the_positions_rounded_to_half_precision(self, tmp_path: Path) -> None:
        weights = true_weights() | {
            f"model.{side}.embed_positions.weight": sinusoids(256, 48) for side in ("encoder", "decoder")
        }
        assert_same_weights(read_checkpoint(write_checkpoint(tmp_path, half(weights))))

    def test_may_have_an_output_projection_of_its_own(self, tmp_path: Path) -> None:
        own = true_weights()["model.shared.weight"][::-1].copy()
        directory = write_checkpoint(tmp_path, true_weights() | {"lm_head.weight": own}, {"tie_word_embeddings": False})
        found = read_checkpoint(directory).weights
        np.testing.assert_array_equal(found["lm_head.weight"], own)
        np.testing.assert_array_equal(found["decoder.embed_tokens.weight"], true_weights()["model.shared.weight"])

    def test_may_have_separate_vocabularies(self, tmp_path: Path) -> None:
        weights = true_weights()
        source = weights.pop("model.shared.weight")
        target, bias = source[:500].copy(), weights.pop("final_logits_bias")[:, :500].copy()
        weights |= {"model.encoder.embed_tokens.weight": source, "model.decoder.embed_tokens.weight": target}
        config = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 500}
        directory = write_checkpoint(tmp_path, weights | {"final_logits_bias": bias}, config)
        pieces = list(json.loads((TINY / "vocab.json").read_text("utf-8")))[:499]
        (directory / "target_vocab.json").write_text(json.dumps({p: i for i, p in enumerate([*pieces, "<pad>"])}))
        checkpoint = read_checkpoint(directory)
        assert (checkpoint.architecture.source_vocabulary, checkpoint.architecture.target_vocabulary) == (878, 500)
        np.testing.assert_array_equal(checkpoint.weights["lm_head.weight"], target)
        assert "target_vocab.json" in checkpoint.files


def write_shards(folder: Path) -> Path:
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


class TestRefused:
    @pytest.mark.parametrize("kind", ["mbart", "m2m_100", "t5", "bart", "opennmt", None])
    def test_is_every_architecture_but_marian(self, tmp_path: Path, kind: str | None) -> None:
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
            ("scale_embedding", "yes"),
            ("d_model", 0),
            ("encoder_layers", None),
            ("decoder_attention_heads", 5),
            ("quantization_config", {"bits": 4}),
        ],
    )
    def test_is_an_option_that_the_graphs_do_not_have(self, tmp_path: Path, key: str, value: Any) -> None:
        message = refusal(write_checkpoint(tmp_path, config={key: value}))
        assert key.split("_")[0] in message

    def test_is_a_partial_checkpoint_with_three_names_and_the_count(self, tmp_path: Path) -> None:
        weights = {name: array for name, array in true_weights().items() if "decoder.layers.1." not in name}
        message = refusal(write_checkpoint(tmp_path, weights))
        assert "decoder.layers.1.encoder_attn.k_proj.bias, " in message
        assert "and 23 more" in message

    def test_are_weights_of_another_size(self, tmp_path: Path) -> None:
        weights = true_weights()
        weights[Q_PROJ] = weights[Q_PROJ][:, :40].copy()
        assert "q_proj.weight has the shape [48, 40], its config wants [48, 48]" in refusal(
            write_checkpoint(tmp_path, weights)
        )

    def test_are_weights_that_would_be_ignored(self, tmp_path: Path) -> None:
        weights = true_weights() | {"model.encoder.layernorm_embedding.weight": np.ones(48, np.float32)}
        assert "encoder.layernorm_embedding.weight" in refusal(write_checkpoint(tmp_path, weights))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_are_weights_that_are_not_finite(self, tmp_path: Path, value: float) -> None:
        weights = true_weights()
        weights[Q_PROJ][3, 5] = value
        assert "q_proj.weight is empty or holds values that are not finite" in refusal(
            write_checkpoint(tmp_path, weights)
        )

    def test_are_quantised_weights(self, tmp_path: Path) -> None:
        weights = true_weights()
        weights[Q_PROJ] = weights[Q_PROJ].astype(np.int8)
        assert "quantised" in refusal(write_checkpoint(tmp_path, weights))

    @pytest.mark.parametrize("name", ["lm_head.weight", "model.decoder.embed_tokens.weight"])
    def test_are_different_matrices_where_the_config_ties_them(self, tmp_path: Path, name: str) -> None:
        weights = true_weights()
        weights[name] = weights["model.shared.weight"] + 1
        assert "differ, but the config ties them" in refusal(write_checkpoint(tmp_path, weights))

    def test_is_one_matrix_where_the_config_wants_two(self, tmp_path: Path) -> None:
        assert "lacks the weights lm_head.weight" in refusal(
            write_checkpoint(tmp_path, config={"tie_word_embeddings": False})
        )
        split = write_checkpoint(tmp_path, config={"share_encoder_decoder_embeddings": False})
        assert "does not have: shared.weight" in refusal(split)

    def test_is_a_shared_matrix_for_vocabularies_of_different_sizes(self, tmp_path: Path) -> None:
        assert "its config wants [500, 48]" in refusal(write_checkpoint(tmp_path, config={"decoder_vocab_size": 500}))

    def test_are_positions_by_another_formula(self, tmp_path: Path) -> None:
        interleaved = sinusoids(256, 48).reshape(256, 2, 24).transpose(0, 2, 1).reshape(256, 48).copy()
        weights = true_weights() | {"model.decoder.embed_positions.weight": interleaved}
        assert "does not hold sinusoids" in refusal(write_checkpoint(tmp_path, weights))

    def test_is_a_vocabulary_larger_than_the_embedding(self, tmp_path: Path) -> None:
        directory = write_checkpoint(tmp_path)
        table = json.loads((TINY / "vocab.json").read_text("utf-8"))
        (directory / "vocab.json").write_text(json.dumps(table | {"one more": 878}))
        assert "vocab.json has 879 entries, the embedding 878 rows" in refusal(directory)

    @pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "config.json"])
    def test_is_a_directory_without_its_tokenizer_or_config(self, tmp_path: Path, name: str) -> None:
        directory = write_checkpoint(tmp_path)
        (directory / name).unlink()
        assert f"lacks {name}" in refusal(directory)

    @pytest.mark.parametrize(
        "damage", [lambda b: b[:-4096], lambda b: b[:100], lambda b: b"", lambda b: b"\xff" * len(b)]
    )
    def test_is_a_damaged_file(self, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
        path = write_checkpoint(tmp_path) / "model.safetensors"
        path.write_bytes(damage(path.read_bytes()))
        assert "not a readable safetensors file" in refusal(tmp_path)

    def test_is_an_incomplete_set_of_shards(self, tmp_path: Path) -> None:
        directory = write_shards(tmp_path)
        (directory / "model-00002-of-00003.safetensors").unlink()
        assert "model-00002-of-00003.safetensors" in refusal(directory)

    def test_is_an_index_that_leads_out_of_the_directory(self, tmp_path: Path) -> None:
        directory = write_shards(tmp_path / "model")
        shutil.copy(TINY / "model.safetensors", tmp_path / "other.safetensors")
        index = directory / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": dict.fromkeys(true_weights(), "../other.safetensors")}))
        assert "not a file of this directory" in refusal(directory)

    def test_is_a_directory_that_holds_no_checkpoint(self, tmp_path: Path) -> None:
        (tmp_path / "tf_model.h5").touch()
        assert "found tf_model.h5" in refusal(tmp_path)
        assert "no such model directory" in refusal(tmp_path / "nowhere")


class TestOnnx:
    @pytest.mark.parametrize("layout", sorted(LAYOUTS))
    def test_exports_of_every_layout_give_the_weights_back(self, tmp_path: Path, layout: str) -> None:
        checkpoint = read_checkpoint(write_export(tmp_path, layout))
        assert_same_weights(checkpoint)
        assert checkpoint.architecture == read_checkpoint(write_checkpoint(tmp_path / "other")).architecture
        kinds = {"merged": "ONNX (merged)", "one-file": "ONNX (one file)"}
        assert checkpoint.origin == kinds.get(layout, "ONNX (split)")

    def test_graphs_may_be_in_the_folder_that_hubs_put_them_in(self, tmp_path: Path) -> None:
        assert_same_weights(read_checkpoint(write_export(tmp_path, "merged", below="onnx")))

    def test_a_tied_matrix_is_one_array(self, tmp_path: Path) -> None:
        found = read_checkpoint(write_export(tmp_path, "split")).weights
        assert len({id(found[name]) for name in EMBEDDINGS}) == 1

    def test_weights_stored_in_half_precision_are_widened(self, tmp_path: Path) -> None:
        write_settings(tmp_path)
        for path in (TINY / "fp16").iterdir():
            shutil.copy(path, tmp_path / path.name.replace("_fp16", ""))
        assert_same_weights(read_checkpoint(tmp_path))

    def test_the_demo_model_is_read(self) -> None:
        checkpoint = read_checkpoint(ROOT / "models" / "demo" / "nmt-en-zh")
        assert checkpoint.weights["encoder.layers.2.fc1.weight"].any()

    def test_fp16_files_are_taken_where_there_are_no_others(self, tmp_path: Path) -> None:
        write_settings(tmp_path)
        for path in (TINY / "fp16").iterdir():
            shutil.copy(path, tmp_path)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_fp32_files_are_taken_where_there_are_both(self, tmp_path: Path) -> None:
        write_export(tmp_path, "merged")
        for path in (*(TINY / "int8").iterdir(), *(TINY / "q4").iterdir()):
            shutil.copy(path, tmp_path)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_weights_may_be_in_an_external_file(self, tmp_path: Path) -> None:
        write_export(tmp_path, "merged")
        for path in tmp_path.glob("*.onnx"):
            model = onnx.load(path)
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}_data", size_threshold=64)
        assert_same_weights(read_checkpoint(tmp_path))

    @pytest.mark.parametrize("layout", ["merged", "own-past-15", "one-file"])
    def test_parameter_names_tell_where_nodes_have_none(self, tmp_path: Path, layout: str) -> None:
        """As exporters before PyTorch 1.13 wrote them: MatMul_12."""
        for path in write_export(tmp_path, layout).glob("*.onnx"):
            edit(path, lambda node, number: setattr(node, "name", f"{node.op_type}_{number}"))
        assert_same_weights(read_checkpoint(tmp_path))

    @pytest.mark.parametrize("layout", ["merged", "own-past-15", "one-file"])
    def test_node_names_tell_where_parameters_have_none(self, tmp_path: Path, layout: str) -> None:
        """As tools that simplify or deduplicate graphs leave them."""
        for path in write_export(tmp_path, layout).glob("*.onnx"):
            model = onnx.load(path)
            short = {tensor.name: f"t{number}" for number, tensor in enumerate(model.graph.initializer)}
            for tensor in model.graph.initializer:
                tensor.name = short[tensor.name]
            onnx.save(model, path)
            edit(path, lambda node, _, short=short: rename_inputs(node, short))
        assert_same_weights(read_checkpoint(tmp_path))

    @pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"])
    @pytest.mark.parametrize("layout", ["merged", "one-file"])
    def test_graphs_that_onnx_runtime_has_optimised_are_still_understood(
        self, tmp_path: Path, layout: str, level: str
    ) -> None:
        for path in write_export(tmp_path, layout).glob("*.onnx"):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.optimized_model_filepath = str(path)
            options.log_severity_level = 3
            onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        assert_same_weights(read_checkpoint(tmp_path))

    def test_weights_may_be_transposed_in_the_graph_and_projections_be_gemms(self, tmp_path: Path) -> None:
        path = write_export(tmp_path, "split") / "decoder_model.onnx"
        (tmp_path / "decoder_with_past_model.onnx").unlink()
        model = onnx.load(path)
        arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        for node in list(model.graph.node):
            if node.op_type == "MatMul" and node.input[1] in arrays and node.name.endswith("fc1/MatMul"):
                add = next(other for other in model.graph.node if node.output[0] in other.input)
                bias = next(name for name in add.input if name in arrays)
                gemm = onnx.helper.make_node(
                    "Gemm", [node.input[0], f"{node.name}_t", bias], add.output, node.name, transB=1
                )
                put_initializer(model, f"{node.name}_t", arrays[node.input[1]].T)
                node.CopyFrom(gemm)
                model.graph.node.remove(add)
            elif node.op_type == "MatMul" and node.input[1] in arrays:
                put_initializer(model, f"{node.name}_t", arrays[node.input[1]].T)
                turn = onnx.helper.make_node("Transpose", [f"{node.name}_t"], [f"{node.name}_turned"], perm=[1, 0])
                node.input[1] = f"{node.name}_turned"
                model.graph.node.insert(0, turn)
        onnx.save(model, path)
        assert_same_weights(read_checkpoint(tmp_path))


def put_initializer(model: onnx.ModelProto, name: str, array: Any) -> None:
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))


def edit(path: Path, change: Callable[[onnx.NodeProto, int], None]) -> None:
    """Apply ``change`` to every node of a file, those in branches too."""
    model = onnx.load(path)
    graphs = [model.graph]
    for graph in graphs:
        for number, node in enumerate(graph.node):
            change(node, number)
            graphs += [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    onnx.save(model, path)


def rename_inputs(node: onnx.NodeProto, names: dict[str, str]) -> None:
    node.input[:] = [names.get(name, name) for name in node.input]


class TestRefusedOnnx:
    @pytest.mark.parametrize("precision", ["int8", "q4"])
    def test_is_a_quantised_export(self, tmp_path: Path, precision: str) -> None:
        write_settings(tmp_path)
        for path in (TINY / precision).iterdir():
            shutil.copy(path, tmp_path)
        assert "quantised graphs only" in refusal(tmp_path)
        for path in tmp_path.glob("*.onnx"):
            path.rename(tmp_path / path.name.replace(f"_{precision}", ""))
        assert "is quantised (it has " in refusal(tmp_path)

    def test_is_a_graph_with_fused_projections_with_what_could_not_be_found(self, tmp_path: Path) -> None:
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        model = onnx.load(path)
        arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        parts = [node for node in model.graph.node if re.search(r"layers.0/self_attn/[qkv]_proj/", node.name)]
        matrices = [arrays[node.input[1]] for node in parts if node.op_type == "MatMul"]
        put_initializer(model, "qkv_weight", np.concatenate(matrices, axis=1))
        fused = onnx.helper.make_node("Attention", [parts[0].input[0], "qkv_weight"], ["fused"], domain="com.microsoft")
        model.graph.node.append(fused)
        for node in parts:
            model.graph.node.remove(node)
        onnx.save(model, path)
        message = refusal(tmp_path)
        assert "the graphs were optimised (they have Attention)" in message
        assert "encoder.layers.0.self_attn.k_proj.bias" in message

    def test_is_an_export_whose_names_are_gone(self, tmp_path: Path) -> None:
        for path in write_export(tmp_path, "merged").glob("*.onnx"):
            model = onnx.load(path)
            short = {tensor.name: f"t{number}" for number, tensor in enumerate(model.graph.initializer)}
            for tensor in model.graph.initializer:
                tensor.name = short[tensor.name]
            onnx.save(model, path)
            edit(
                path,
                lambda node, number, short=short: (rename_inputs(node, short), setattr(node, "name", f"n{number}")),
            )
        assert "a Marian model of this config does not have: t" in refusal(tmp_path)

    def test_is_an_encoder_alone_or_a_decoder_that_cannot_start(self, tmp_path: Path) -> None:
        directory = write_export(tmp_path, "split")
        (directory / "decoder_model.onnx").unlink()
        assert "lacks a decoder that can take the first step" in refusal(directory)

    @pytest.mark.parametrize(
        "damage", [lambda b: b[:-4096], lambda b: b[:100], lambda b: b"", lambda b: b"\xff" * len(b)]
    )
    def test_is_a_damaged_graph(self, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        path.write_bytes(damage(path.read_bytes()))
        assert "not a readable ONNX model" in refusal(tmp_path)

    @pytest.mark.parametrize("change", ["missing", "short", "outside"])
    def test_is_an_external_file_that_is_not_whole(self, tmp_path: Path, change: str) -> None:
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        model = onnx.load(path)
        onnx.save(model, path, save_as_external_data=True, location="data.bin", size_threshold=64)
        data = tmp_path / "data.bin"
        if change == "missing":
            data.unlink()
        elif change == "short":
            data.write_bytes(data.read_bytes()[:-500])
        else:
            data.rename(tmp_path.parent / "data.bin")
            for tensor in (model := onnx.load(path, load_external_data=False)).graph.initializer:
                for entry in tensor.external_data:
                    entry.value = "../data.bin" if entry.key == "location" else entry.value
            onnx.save(model, path)
        assert "not a readable ONNX model" in refusal(tmp_path)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"activation_function": "relu"}, "computes swish, its config says relu"),
            ({"scale_embedding": False}, "scales embeddings by 6.928"),
            ({"decoder_layers": 3}, "has 2 layers of 4 heads, its config says 3 of 4"),
            ({"decoder_attention_heads": 6}, "has 2 layers of 4 heads, its config says 2 of 6"),
            ({"encoder_layers": 3}, "encoder.layers.2."),
            ({"encoder_layers": 1}, "encoder.layers.1."),
            ({"d_model": 96}, "scales embeddings by 6.928"),
            ({"encoder_ffn_dim": 96}, "fc1.weight has the shape [128, 48], its config wants [96, 48]"),
            ({"model_type": "bart"}, "model of the type 'bart'"),
        ],
    )
    def test_is_a_config_of_another_model(self, tmp_path: Path, change: dict[str, Any], reason: str) -> None:
        write_export(tmp_path, "merged")
        write_settings(tmp_path, change)
        assert reason in refusal(tmp_path)

    def test_is_a_graph_with_a_weight_that_marian_does_not_have(self, tmp_path: Path) -> None:
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        model = onnx.load(path)
        put_initializer(model, "encoder.layer_norm.weight", np.ones(48, np.float32))
        output = model.graph.output[0].name
        model.graph.node[-1].output[0] = "before"
        model.graph.node.append(
            onnx.helper.make_node("Mul", ["before", "encoder.layer_norm.weight"], [output], "/layer_norm/Mul")
        )
        onnx.save(model, path)
        assert "does not have: encoder.layer_norm.weight" in refusal(tmp_path)


def test_positions_are_those_of_transformers() -> None:
    # Marian's first row: sine of 0, cosine of 0; then 10000^(-2i/d) for position 1.
    table = sinusoids(4, 48)
    np.testing.assert_array_equal(table[0], np.repeat([0, 1], 24))
    np.testing.assert_allclose(table[1, :24], np.sin(10_000.0 ** (-np.arange(24) / 24)), rtol=1e-6)
    np.testing.assert_allclose(table[3, 24:], np.cos(3 * 10_000.0 ** (-np.arange(24) / 24)), rtol=1e-6)
    assert tiny_config()["max_position_embeddings"] == 256
