"""Hundreds of damaged model directories: each raises our error or translates exactly like the intact one."""

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from pipeline.backends.marian.model import MarianModel
from pipeline.errors import ModelError
from tests.conftest import LAYOUTS, SETTINGS, TINY, golden, make_model_dir

Damage = Callable[[Path], None]
ENCODER, MERGED = LAYOUTS["merged"]


# --- small ONNX files, right or wrong ----------------------------------------------------------------------------------

port, node = helper.make_tensor_value_info, helper.make_node


def graph(nodes, inputs, outputs, ir=9, opset=18):
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=ir)
    return model.SerializeToString()


FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def merged(heads=4, size=12, kind=FLOAT, rank=4, layers=range(2)):
    shape = ("batch", heads, "past", size)[:rank]
    past = [
        port(f"past_key_values.{i}.{side}.{k}", kind, shape)
        for i in layers for side in ("decoder", "encoder") for k in ("key", "value")
    ]  # fmt: skip
    return [
        port("input_ids", INT64, ("batch", "t")),
        port("encoder_attention_mask", INT64, ("batch", "s")),
        port("encoder_hidden_states", FLOAT, ("batch", "s", 48)),
        port("use_cache_branch", BOOL, (1,)),
        *past,
    ]


def presents(layers=range(2)):
    return [port("logits", FLOAT, ("batch", "t", 878))] + [
        port(f"present.{i}.{side}.{k}", FLOAT, ("batch", 4, "n", 12))
        for i in layers for side in ("decoder", "encoder") for k in ("key", "value")
    ]  # fmt: skip


# --- the damages -------------------------------------------------------------------------------------------------------


def cut(name, share):
    def apply(folder):
        data = (TINY / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return apply


def replace(name, content):
    def apply(folder):
        old = (TINY / name).read_bytes()
        (folder / name).write_bytes(content if isinstance(content, bytes) else content(old))

    return apply


def settings(name, **changes):
    def change(old):
        return json.dumps({**json.loads(old), **changes}).encode()

    return replace(name, change)


def renamed(name, old, new):
    """Rename a port everywhere in a file; the names are equally long, so that the lengths stay right."""
    assert len(old) == len(new)
    return replace(name, lambda data: data.replace(old, new))


def removed(name):
    return lambda folder: (folder / name).unlink()


def damages():
    files = (ENCODER, MERGED, *SETTINGS)
    needed = (ENCODER, MERGED, "source.spm", "target.spm", "vocab.json", "config.json")
    noise = random.Random(0).randbytes(3000)
    for name in files:
        for share in (0.0, 0.0005, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999):
            yield f"{name} cut to {share}", cut(name, share)
        yield f"{name} of zero bytes", replace(name, lambda old: bytes(len(old)))
        yield f"{name} of noise", replace(name, noise)
        yield f"{name} a web page", replace(name, b"<!DOCTYPE html><html><body>404</body></html>" * 20)
        yield (
            f"{name} a large-file pointer",
            replace(name, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        )
        yield f"{name} begins with noise", replace(name, lambda old: noise[:64] + old[64:])
    for name in needed:
        yield f"{name} missing", removed(name)
    for one, other in ((ENCODER, MERGED), (MERGED, ENCODER), (MERGED, "source.spm"), ("source.spm", MERGED)):
        yield f"{one} holds {other}", replace(one, (TINY / other).read_bytes())
    for path in ("decoder_with_past_model.onnx", "no-past/decoder_model.onnx", "int8/encoder_model_int8.onnx"):
        yield f"{MERGED} holds {path}", replace(MERGED, (TINY / path).read_bytes())
    hostile = (
        b"",
        b"null",
        b"[]",
        b"7",
        b'"x"',
        b"{",
        b'{"a":' * 5000,
        b"[" * 200_000,
        b"\xff\xfe\x00",
        b"NaN",
        b'{"a": 1e999}',
    )
    for name in ("vocab.json", "config.json", "generation_config.json", "tokenizer_config.json"):
        for content in hostile:
            yield f"{name} {content[:12]!r}", replace(name, content)
    for what, changed in {
        "negative ids": lambda table: {**table, "</s>": -1},
        "an id too large": lambda table: {**table, "</s>": 10**6},
        "an id twice": lambda table: {**table, "</s>": 5},
        "ids of another kind": lambda table: {**table, "</s>": 0.0},
    }.items():
        yield (
            f"vocab.json with {what}",
            replace("vocab.json", lambda old, c=changed: json.dumps(c(json.loads(old))).encode()),
        )
    for key in ("pad_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id", "max_length"):
        for value in (-1, 10**30, 878, "0", [0], {"a": 1}, 1.5, True):
            if (key, value) != ("max_length", 878) and (key, value) != ("max_length", 10**30):
                yield f"{key} {value!r}", settings("generation_config.json", **{key: value})
    for value in ([], [0, 1], ["a"]):
        yield f"eos_token_id {value!r}", settings("generation_config.json", eos_token_id=value)
    for value in ("x", [["a"]], [[-1]], [[10**9]], [7], {"a": 1}, [[0, "b"]]):
        yield f"bad_words_ids {value!r}", settings("generation_config.json", bad_words_ids=value)
    for key, value in (
        ("length_penalty", "x"),
        ("length_penalty", 1e9),
        ("early_stopping", 5),
        ("no_repeat_ngram_size", -2),
    ):
        yield f"{key} {value!r}", settings("generation_config.json", **{key: value})
    for value in (-5, "512", None, [1], 1.5):
        yield f"max_position_embeddings {value!r}", settings("config.json", max_position_embeddings=value)
    for old, new in (
        (b"use_cache_branch", b"use_cache_brunch"),
        (b"encoder_hidden_states", b"encoder_hidden_stages"),
        (b"past_key_values.1.encoder.value", b"past_key_values.9.encoder.value"),
        (b"past_key_values.0.decoder.key", b"past_key_values.0.decoder.kay"),
        (b"present.1.decoder.key", b"present.7.decoder.key"),
        (b"logits", b"lodgit"),
        (b"input_ids", b"output_id"),
    ):
        yield f"{MERGED} with {new.decode()}", renamed(MERGED, old, new)
    yield f"{ENCODER} without its output", renamed(ENCODER, b"last_hidden_state", b"lost_hidden_state")
    yield f"{ENCODER} without its mask", renamed(ENCODER, b"attention_mask", b"retention_mask")
    logits = [node("Identity", ["encoder_hidden_states"], ["logits"])]
    built = {
        "no nodes": graph([], merged(), presents()),
        "a cycle": graph(
            [node("Neg", ["a"], ["b"]), node("Neg", ["b"], ["a"]), node("Neg", ["a"], ["logits"])], merged(), presents()
        ),
        "huge heads": graph(logits, merged(heads=2**40), presents()),
        "huge head size": graph(logits, merged(size=2**62), presents()),
        "no heads": graph(logits, merged(heads=0), presents()),
        "symbolic heads": graph(logits, merged(heads="h"), presents()),
        "past of rank 2": graph(logits, merged(rank=2), presents()),
        "past of strings": graph(logits, merged(kind=STRING), presents()),
        "a layer left out": graph(logits, merged(layers=range(1, 3)), presents(range(1, 3))),
        "a layer far away": graph(logits, merged(layers=range(10**9, 10**9 + 1)), presents()),
        "no presents": graph(logits, merged(), [port("logits", FLOAT, ("b", "t", 878))]),
        "another vocabulary": graph(logits, merged(), [port("logits", FLOAT, ("b", "t", 5)), *presents()[1:]]),
        "an unknown operator": graph([node("Marian", ["input_ids"], ["logits"])], merged(), presents()),
        "an opset of the future": graph(logits, merged(), presents(), opset=999),
        "an IR of the future": graph(logits, merged(), presents(), ir=999),
        "a layer of 5000 digits": graph(
            logits, [*merged(), port(f"past_key_values.{'9' * 5000}.decoder.key", FLOAT, ())], presents()
        ),
        "no outputs": graph(logits, merged(), []),
        "an unknown input": graph(logits, [*merged(), port("position_ids", INT64, ("b", "t"))], presents()),
    }
    for name, data in built.items():
        yield f"{MERGED} with {name}", replace(MERGED, data)


DAMAGES = dict(damages())
# Harmless damage: optional files, equivalent values, unused bytes.
HARMLESS = {
    "config.json cut to 0.9999",  # the last byte is a line end
    "generation_config.json cut to 0.9999",
    "tokenizer_config.json cut to 0.9999",
    "eos_token_id [0]",
    "forced_eos_token_id [0]",
    "decoder_model_merged.onnx holds no-past/decoder_model.onnx",  # slower, but a model
    *(f"{name} b'{{\"a\": 1e999}}'" for name in ("config.json", "generation_config.json", "tokenizer_config.json")),
}


def test_there_are_hundreds_of_damaged_directories():
    assert len(DAMAGES) >= 200


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_directory_is_refused_or_translates_exactly(name, tmp_path):
    folder = make_model_dir(tmp_path, "merged")
    for path in folder.iterdir():  # copies, so that the damage stays here
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    DAMAGES[name](folder)
    row = golden("tiny-marian")[0]
    text = None
    with contextlib.suppress(ModelError):
        text = MarianModel.load(folder).translate(row["source"])
    assert text in (None, row["text"])
    assert (text is None) == (name not in HARMLESS)
