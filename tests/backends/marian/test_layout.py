"""Layouts are detected from graph inputs and outputs; models that cannot run are rejected with the reason."""

import shutil
from pathlib import Path

import onnx
import onnxruntime
import pytest

from pipeline.backends.marian.decode.layout import Kind, Role, classify, find_layout
from pipeline.backends.onnx_header import OnnxHeader, Port, read_header
from pipeline.errors import ModelError
from tests.conftest import ENCODER, LAYOUTS, TINY, make_model_dir

ROLES = {
    "encoder_model.onnx": Role.ENCODER,
    "decoder_model.onnx": Role.FIRST_STEP,
    "decoder_with_past_model.onnx": Role.WITH_PAST,
    "decoder_model_merged.onnx": Role.MERGED,
}


@pytest.mark.parametrize("name", ROLES)
def test_the_header_agrees_with_onnxruntime(name):
    header = read_header(TINY / name)
    session = onnxruntime.InferenceSession(str(TINY / name), providers=["CPUExecutionProvider"])
    for ports, nodes in ((header.inputs, session.get_inputs()), (header.outputs, session.get_outputs())):
        assert list(ports) == [node.name for node in nodes]
        assert [list(port.shape) for port in ports.values()] == [node.shape for node in nodes]
        kinds = {"float32": "tensor(float)", "int64": "tensor(int64)", "bool": "tensor(bool)"}
        assert [kinds[port.dtype] for port in ports.values()] == [node.type for node in nodes]


@pytest.mark.parametrize("name", ROLES)
def test_weights_listed_among_the_inputs_are_excluded(name, tmp_path):
    """Exporters before IR version 4 had to list weights there."""
    graph = onnx.load(TINY / name).graph
    for weight in graph.initializer:
        graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    onnx.save(onnx.helper.make_model(graph), tmp_path / name)
    assert len(graph.input) > len(read_header(TINY / name).inputs)
    assert read_header(tmp_path / name).inputs == read_header(TINY / name).inputs


@pytest.mark.parametrize("name", ROLES)
def test_a_graph_is_classified_by_its_ports_not_its_file_name(name, tmp_path):
    shutil.copy(TINY / name, tmp_path / "a.onnx")
    assert classify(read_header(tmp_path / "a.onnx")) is ROLES[name]


def test_a_decoder_that_cannot_run_the_first_step_is_rejected():
    header = read_header(TINY / "decoder_with_past_model.onnx")
    header.inputs["decoder_attention_mask"] = header.inputs["encoder_attention_mask"]
    assert "as written by transformers.onnx; it cannot run the first step" in str(classify(header))


OWN, CROSS = "past_key_values.0.decoder.key", "past_key_values.0.encoder.key"
STEP = "input_ids position_ids seqlens_k total_sequence_length"


@pytest.mark.parametrize(
    ("inputs", "outputs", "role"),
    [
        ("input_ids attention_mask", "last_hidden_state", Role.ENCODER),
        ("input_ids", "last_hidden_state", "an encoder that lacks the inputs attention_mask"),
        ("input_ids", "present.0.encoder.key", Role.STREAMING_ENCODER),
        ("input_ids attention_mask", "sentence", "neither an encoder nor a decoder"),
        (STEP, "token log_probability logits output_ids", Role.STREAMING_STEP),
        (STEP, "token log_probability logits", "a streaming step that lacks output_ids"),
        ("encoder_hidden_states", "logits", "a decoder that lacks the input input_ids"),
        (f"use_cache_branch input_ids encoder_hidden_states {OWN} {CROSS}", "logits", Role.MERGED),
        (f"use_cache_branch input_ids {OWN} {CROSS}", "logits", "a merged decoder that lacks encoder_hidden_s"),
        (f"input_ids {OWN} {CROSS}", "logits", Role.WITH_PAST),
        (f"input_ids encoder_hidden_states {CROSS}", "logits", "a decoder that takes encoder KV but lacks"),
        (f"input_ids encoder_hidden_states {OWN}", "logits", Role.OWN_PAST),
        ("input_ids encoder_hidden_states", "logits present.0.encoder.key", Role.FIRST_STEP),
        ("input_ids encoder_hidden_states", "logits present.0.decoder.key", Role.NO_PAST),
        ("input_ids decoder_input_ids", "logits", Role.ONE_FILE),
        ("input_ids", "logits", "a decoder that lacks encoder_hidden_states"),
        ("input_ids pixel_values", "logits", "not a Marian graph: it has the inputs pixel_values"),
    ],
)
def test_a_graph_that_cannot_be_used_is_told_from_one_that_can(inputs, outputs, role):
    ports = ({name: Port(name, "float32", ()) for name in names.split()} for names in (inputs, outputs))
    found = classify(OnnxHeader(Path("a.onnx"), *ports))
    assert found is role if isinstance(role, Role) else str(found).startswith(role)


KINDS = {
    "merged": Kind.MERGED,
    "split": Kind.SPLIT,
    "old-split": Kind.SPLIT,
    "own-past-15": Kind.OWN_PAST,
    "own-past-16": Kind.OWN_PAST,
    "no-past": Kind.NO_PAST,
    "first-step": Kind.NO_PAST,
    "one-file": Kind.ONE_FILE,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kind_and_sizes_come_from_the_graph(layout, tmp_path):
    found = find_layout(make_model_dir(tmp_path, layout))
    assert found.kind is KINDS[layout]
    keeps_kv = found.kind in (Kind.MERGED, Kind.SPLIT, Kind.OWN_PAST)
    assert (found.layers, found.heads, found.head_dim) == ((2, 4, 12) if keeps_kv else (0, 0, 0))


@pytest.mark.parametrize(
    ("layout", "missing", "lacks"),
    [
        ("merged", ENCODER, "an encoder"),
        ("merged", "decoder_model_merged.onnx", "a decoder that can take the first step"),
        ("split", ENCODER, "an encoder"),
        ("split", "decoder_model.onnx", "a decoder that can take the first step"),
        ("own-past-15", ENCODER, "an encoder"),
    ],
)
def test_a_missing_graph_is_named_with_what_was_found(layout, missing, lacks, tmp_path):
    with pytest.raises(ModelError) as caught:
        find_layout(make_model_dir(tmp_path, layout, leave_out=missing))
    message = str(caught.value)
    assert f"lacks {lacks}" in message
    assert "optimum-cli export onnx" in message
    assert all(Path(name).name in message for name in LAYOUTS[layout] if name != missing)


def test_no_model_directory_and_no_onnx_files(tmp_path):
    with pytest.raises(ModelError, match="no such model directory"):
        find_layout(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"has no \.onnx files"):
        find_layout(tmp_path)


def test_an_unreadable_directory_is_reported(tmp_path, monkeypatch):
    def refused(path, pattern):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "glob", refused)
    with pytest.raises(ModelError, match=r"cannot be read \(Permission denied\); check its permissions"):
        find_layout(tmp_path)


def test_a_suffix_selects_another_precision(tmp_path):
    (tmp_path / "onnx").mkdir()
    for name in LAYOUTS["merged"]:
        shutil.copy(TINY / name, tmp_path / "onnx" / name.replace(".onnx", "_quantized.onnx"))
    assert find_layout(tmp_path, "_quantized").encoder.path.name == "encoder_model_quantized.onnx"
    with pytest.raises(ModelError, match="there are files with '_quantized'"):
        find_layout(tmp_path)


def test_an_uncompiled_checkpoint_gives_an_error_with_the_compile_command(tmp_path):
    with pytest.raises(ModelError, match="has no .onnx files; export it with"):
        find_layout(tmp_path)
    for name in ("model.safetensors", "pytorch_model.bin"):
        (tmp_path / name).touch()
        with pytest.raises(ModelError, match="compile it with: python -m pipeline.models compile"):
            find_layout(tmp_path)
        (tmp_path / name).unlink()
