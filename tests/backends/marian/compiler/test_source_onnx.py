"""Marian's weights are read exactly from ONNX exports of every layout, or the export is refused with a reason."""

import json
import re
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest

from pipeline.backends.marian.compile.build import compile_model
from pipeline.backends.marian.compile.checkpoint_files import read_checkpoint
from pipeline.backends.marian.model import MarianModel
from pipeline.errors import ModelError
from tests.backends.marian.compiler.checkpoints import (
    DAMAGES,
    EMBEDDINGS,
    assert_same_weights,
    refusal,
    write_checkpoint,
    write_export,
    write_settings,
)
from tests.conftest import LAYOUTS, TINY


class TestOnnx:
    @pytest.mark.parametrize("layout", sorted(LAYOUTS))
    def test_exports_of_every_layout_give_the_weights_back(self, tmp_path, layout):
        checkpoint = read_checkpoint(write_export(tmp_path, layout))
        assert_same_weights(checkpoint)
        assert checkpoint.architecture == read_checkpoint(write_checkpoint(tmp_path / "other")).architecture
        kinds = {"merged": "ONNX (merged)", "one-file": "ONNX (one file)"}
        assert checkpoint.origin == kinds.get(layout, "ONNX (split)")

    def test_graphs_may_be_in_the_folder_that_hubs_put_them_in(self, tmp_path):
        assert_same_weights(read_checkpoint(write_export(tmp_path, "merged", below="onnx")))

    def test_a_tied_matrix_is_one_array(self, tmp_path):
        found = read_checkpoint(write_export(tmp_path, "split")).weights
        assert len({id(found[name]) for name in EMBEDDINGS}) == 1

    def test_weights_stored_in_half_precision_are_widened(self, tmp_path):
        write_settings(tmp_path)
        for path in (TINY / "fp16").iterdir():
            shutil.copy(path, tmp_path / path.name.replace("_fp16", ""))
        assert_same_weights(read_checkpoint(tmp_path))

    def test_graphs_that_compute_in_half_precision_are_read(self, tmp_path):
        """As written by the hub's converters, which also round the scale of the embeddings."""
        from onnxruntime.transformers.float16 import convert_float_to_float16

        write_settings(tmp_path)
        for name in ("encoder_model", "decoder_model_merged"):
            graph = onnx.load(TINY / f"{name}.onnx")
            half = convert_float_to_float16(graph, keep_io_types=True, disable_shape_infer=True)
            onnx.save(half, tmp_path / f"{name}_fp16.onnx")
        assert_same_weights(read_checkpoint(tmp_path))

    def test_fp16_files_are_used_if_there_are_no_others(self, tmp_path):
        write_settings(tmp_path)
        for path in (TINY / "fp16").iterdir():
            shutil.copy(path, tmp_path)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_fp32_files_are_preferred(self, tmp_path):
        write_export(tmp_path, "merged")
        for path in (*(TINY / "int8").iterdir(), *(TINY / "q4").iterdir()):
            shutil.copy(path, tmp_path)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_padding_rows_are_cut_off(self, tmp_path):
        """Fine-tuning may pad embeddings. Such an export does not load directly, and the error advises compiling it."""
        write_export(tmp_path, "no-past")
        config = json.loads((tmp_path / "config.json").read_text())
        rows = config["vocab_size"]
        padded = dict.fromkeys(("vocab_size", "decoder_vocab_size"), rows + 2)
        (tmp_path / "config.json").write_text(json.dumps(config | padded))
        for path in tmp_path.glob("*.onnx"):
            model = onnx.load(path)
            for weight in model.graph.initializer:
                array = onnx.numpy_helper.to_array(weight)
                array = np.pad(array, [(0, 2 * (size == rows)) for size in array.shape])
                weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
            for size in (size for output in model.graph.output for size in output.type.tensor_type.shape.dim):
                if size.dim_value == rows:
                    size.dim_value = rows + 2
            onnx.save(model, path)
        with pytest.raises(ModelError, match=f"the decoder scores {rows + 2};.*pipeline.models compile cuts it"):
            MarianModel.load(tmp_path)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_weights_may_be_in_an_external_file(self, tmp_path):
        write_export(tmp_path, "merged")
        for path in tmp_path.glob("*.onnx"):
            model = onnx.load(path)
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}_data", size_threshold=64)
        assert_same_weights(read_checkpoint(tmp_path))

    def test_each_branch_of_a_merged_decoder_may_hold_the_weights_itself(self, tmp_path):
        path = write_export(tmp_path, "merged") / "decoder_model_merged.onnx"
        model = onnx.load(path)
        branches = [attribute.g for node in model.graph.node for attribute in node.attribute]
        for branch, number in zip(branches, range(2), strict=True):
            names = {tensor.name: f"{tensor.name}_of_{number}" for tensor in model.graph.initializer}
            for tensor in model.graph.initializer:
                branch.initializer.append(tensor)
                branch.initializer[-1].name = names[tensor.name]
            for node in branch.node:
                rename_inputs(node, names)
        model.graph.ClearField("initializer")
        onnx.save(model, path)
        assert_same_weights(read_checkpoint(tmp_path))
        # If the branches differ, the file is refused.
        changed = next(tensor for tensor in branches[0].initializer if tensor.name.startswith("onnx::MatMul"))
        changed.raw_data = bytes(len(changed.raw_data))
        onnx.save(model, path)
        assert "two different" in refusal(tmp_path)

    @pytest.mark.parametrize("layout", ["merged", "own-past-15", "one-file"])
    def test_parameter_names_suffice_without_node_names(self, tmp_path, layout):
        """Exporters before PyTorch 1.13 named nodes MatMul_12."""
        for path in write_export(tmp_path, layout).glob("*.onnx"):
            edit(path, lambda node, number: setattr(node, "name", f"{node.op_type}_{number}"))
        assert_same_weights(read_checkpoint(tmp_path))

    def test_exports_of_pytorchs_newer_exporter_are_read(self, tmp_path):
        """Node names without modules, the tied matrix named lm_head, a mask of fixed length."""
        path = write_export(tmp_path, "first-step") / "decoder_model.onnx"
        model = onnx.load(path)
        shared = next(tensor for tensor in model.graph.initializer if tensor.name == "model.shared.weight")
        shared.name = "model.lm_head.weight"
        projection = next(node for node in model.graph.node if node.name == "/lm_head/MatMul")
        turn = onnx.helper.make_node("Transpose", [shared.name], ["val_1"], "", perm=[1, 0])
        softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
        mask = onnx.helper.make_node("Add", [softmax.input[0], "copy"], ["masked"])
        projection.input[1] = "val_1"
        model.graph.node.insert(list(model.graph.node).index(softmax), mask)
        softmax.input[0] = "masked"
        model.graph.node.insert(0, turn)
        put_initializer(model, "copy", np.zeros((1, 1, 5, 5), np.float32))
        onnx.save(model, path)
        edit(path, lambda node, number: rename_inputs(node, {"model.shared.weight": shared.name}))
        edit(path, lambda node, number: setattr(node, "name", f"node_{node.op_type}_{number}"))
        assert_same_weights(read_checkpoint(tmp_path))

    @pytest.mark.parametrize("layout", ["merged", "own-past-15", "one-file"])
    def test_node_names_suffice_without_parameter_names(self, tmp_path, layout):
        """As written by tools that simplify or deduplicate graphs."""
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
    def test_graphs_optimised_by_onnx_runtime_are_read(self, tmp_path, layout, level):
        for path in write_export(tmp_path, layout).glob("*.onnx"):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.optimized_model_filepath = str(path)
            options.log_severity_level = 3
            onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        assert_same_weights(read_checkpoint(tmp_path))

    def test_weights_may_be_transposed_in_the_graph_and_projections_be_gemms(self, tmp_path):
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


def put_initializer(model, name, array):
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))


def edit(path, change):
    """Apply ``change`` to every node of a file, including those in branches."""
    model = onnx.load(path)
    graphs = [model.graph]
    for graph in graphs:
        for number, node in enumerate(graph.node):
            change(node, number)
            graphs += [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    onnx.save(model, path)


def rename_inputs(node, names):
    node.input[:] = [names.get(name, name) for name in node.input]


class TestRefusedOnnx:
    @pytest.mark.parametrize("precision", ["int8", "q4"])
    def test_is_a_quantised_export(self, tmp_path, precision):
        write_settings(tmp_path)
        for path in (TINY / precision).iterdir():
            shutil.copy(path, tmp_path)
        assert "quantised graphs only" in refusal(tmp_path)
        for path in tmp_path.glob("*.onnx"):
            path.rename(tmp_path / path.name.replace(f"_{precision}", ""))
        assert "is quantised (it has " in refusal(tmp_path)

    def test_is_a_graph_with_fused_projections_listing_the_missing_weights(self, tmp_path):
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

    def test_is_an_export_whose_names_are_gone(self, tmp_path):
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

    def test_is_a_compiled_model(self, tmp_path):
        compile_model(write_export(tmp_path / "export", "merged"), tmp_path / "compiled", weights="fp32")
        assert "compiled already" in refusal(tmp_path / "compiled")

    def test_is_an_encoder_alone_or_a_decoder_that_cannot_start(self, tmp_path):
        directory = write_export(tmp_path, "split")
        (directory / "decoder_model.onnx").unlink()
        assert "lacks a decoder that can take the first step" in refusal(directory)

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_is_a_damaged_graph(self, tmp_path, damage):
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        path.write_bytes(damage(path.read_bytes()))
        assert "not a readable ONNX model" in refusal(tmp_path)

    @pytest.mark.parametrize("change", ["missing", "short", "outside"])
    def test_is_an_external_file_that_is_not_whole(self, tmp_path, change):
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
            ({"encoder_ffn_dim": 96}, "fc1.weight has the shape [128, 48], its config expects [96, 48]"),
            ({"model_type": "bart"}, "model of the type 'bart'"),
        ],
    )
    def test_is_a_config_of_another_model(self, tmp_path, change, reason):
        write_export(tmp_path, "merged")
        write_settings(tmp_path, change)
        assert reason in refusal(tmp_path)

    def test_is_a_graph_without_the_scale_of_its_config(self, tmp_path):
        path = write_export(tmp_path, "merged") / "encoder_model.onnx"
        edit(path, lambda node, _: setattr(node, "op_type", "Identity" if node.name == "/Mul" else node.op_type))
        assert "scales embeddings by 1.0" in refusal(tmp_path)

    def test_is_a_graph_with_a_weight_that_marian_does_not_have(self, tmp_path):
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
