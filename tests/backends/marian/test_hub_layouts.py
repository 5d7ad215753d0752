"""Repositories with the file lists of real hub repositories, given by id or language pair, and incomplete ones."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.backends.marian.compiled import is_compiled
from pipeline.backends.marian.decode.exports import compilable_exports, fallback_exports, runnable_exports
from pipeline.backends.marian.load import find_translation_models, load_translation_model, loaded_as
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import load_config
from tests.conftest import TINY, golden
from tests.store.hub_server import COMMIT, HubServer, command, failed, models, used

SPLIT, MERGED, BUNDLED = "TigreGotico/opus-mt-en-eu-onnx", "Xenova/opus-mt-af-en", "Xenova/opus-mt-en-zh"
GRAPHS = ("encoder_model", "decoder_model", "decoder_with_past_model")
# Files of these repositories other than graphs.
SETTINGS = ("source.spm", "target.spm", "vocab.json", "config.json", "generation_config.json")
SUFFIXES = ("", "_fp16", "_int8", "_uint8", "_quantized", "_q4", "_q4f16", "_bnb4")
NOWHERE = "http://127.0.0.1:9"
ROW = golden("tiny-marian")[0]
TEXT = ROW["source"]


def split_repository():
    """A TigreGotico repository: all files at the root in fp32, and the same files under int8/."""
    files = {f"{graph}.onnx": TINY / f"{graph}.onnx" for graph in GRAPHS}
    files |= {name: TINY / name for name in SETTINGS} | {"special_tokens_map.json": TINY / "generation_config.json"}
    return {"README.md": TINY / "config.json", **files, **{f"int8/{name}": path for name, path in files.items()}}


def merged_repository(half):
    """A Xenova repository: settings at the root, graphs in every precision under onnx/. ``half`` is a work folder."""
    files = {name: TINY / name for name in (*SETTINGS, "tokenizer_config.json")}
    files |= dict.fromkeys(("tokenizer.json", "quantize_config.json", "special_tokens_map.json"), TINY / "config.json")
    for graph in (*GRAPHS, "decoder_model_merged"):
        for suffix in SUFFIXES:
            files[f"onnx/{graph}{suffix}.onnx"] = TINY / f"{graph}.onnx"
        made = TINY / "int8" / f"{graph}_int8.onnx"
        if made.is_file():
            files |= {f"onnx/{graph}{suffix}.onnx": made for suffix in ("_int8", "_uint8", "_quantized")}
        files[f"onnx/{graph}_fp16.onnx"] = stored_in_half(TINY / f"{graph}.onnx", half / f"{graph}_fp16.onnx")
    return files


def stored_in_half(source, destination):
    """A graph with its matrices in fp16."""
    model = onnx.load(source)
    for index, tensor in enumerate(list(model.graph.initializer)):
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2:
            name = tensor.name
            half = numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float16"), f"{name}_fp16")
            model.graph.initializer[index].CopyFrom(half)
            cast = helper.make_node("Cast", [half.name], [name], f"{name}_cast", to=TensorProto.FLOAT)
            model.graph.node.insert(0, cast)
    onnx.save(model, destination)
    return destination


def with_data_outside(folder, end):
    """A split export at the root with external weights in files with the given ending."""
    files = {name: TINY / name for name in SETTINGS}
    for graph in GRAPHS:
        name = f"{graph}.onnx"
        model = onnx.load(TINY / name)
        onnx.save(model, folder / name, save_as_external_data=True, location=f"{name}{end}", size_threshold=64)
        files |= {name: folder / name, f"{name}{end}": folder / f"{name}{end}"}
    return files


@pytest.fixture
def hub(tmp_path):
    half = tmp_path / "half"
    half.mkdir()
    merged = merged_repository(half)
    german = {
        name: path for name, path in merged.items() if name != "tokenizer_config.json"
    }  # it names English, Chinese
    server = HubServer({SPLIT: split_repository(), MERGED: german, BUNDLED: merged})
    yield server
    server.close()


def fetched(hub):
    """The downloaded graphs and their external weights."""
    return {file for file, _ in hub.ranges if ".onnx" in file}


def translate(home, url, *arguments):
    return command(home, url, "nmt", *arguments, stdin=f"{TEXT}\n".encode())


def loaded(home, url, config, text):
    """The translation by the configured models, and their directories."""
    with used(home, url):
        options = load_config(str(config))
        (((_, target), nmt),) = options.translators.items()
        directories = [directory for _, directory in find_translation_models(nmt)]
        model = load_translation_model(options.languages.source, target, nmt, directories)
        return model.translate(text), directories


def write_config(folder, *lines):
    path = folder / "mine.toml"
    path.write_text("\n".join(lines))
    return path


def assets(home, repository):
    """The files kept for a model beside the hub's cache."""
    folder = home / "assets" / "streaming-speech-translation" / repository.replace("/", "--")
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.is_dir() else []


@pytest.mark.slow
def test_a_language_pair_suffices_and_the_smallest_complete_export_is_fetched(hub, home):
    first = translate(home, hub.url, "--source", "en", "--target", "eu")
    assert first.returncode == 0, first.stderr
    assert first.stderr.splitlines()[0] == f"en → eu: {SPLIT}"
    assert fetched(hub) == {"encoder_model.onnx", "decoder_model.onnx"}  # not the later steps' copy, nor int8/
    (compiled,) = assets(home, SPLIT)
    assert compiled.startswith(f"{COMMIT}-auto-v")
    again = translate(home, NOWHERE, "--source", "eng", "--target", "eus")
    assert again.stdout == first.stdout
    assert first.stdout.strip()


@pytest.mark.slow
def test_two_steps_through_english_equal_two_separate_translations(hub, home, tmp_path):
    config = write_config(
        tmp_path, '[languages]\nsource = "af"\ntarget = "eu"', '[nmt]\nmodel = "auto"\nweights = "fp32"'
    )
    translation, directories = loaded(home, hub.url, config, TEXT)
    assert [directory.parent.name for directory in directories] == [name.replace("/", "--") for name in (MERGED, SPLIT)]
    model = MarianModel.load(TINY)
    assert translation == model.translate(model.translate(TEXT))
    assert translation not in ("", ROW["text"])


def test_a_separate_precision_folder_serves_the_requested_suffix(hub, home):
    done = translate(home, hub.url, "--source", "en", "--target", "eu", "--file-suffix", "_int8")
    assert done.returncode == 0, done.stderr
    assert fetched(hub) == {
        f"int8/{graph}.onnx" for graph in GRAPHS
    }  # including the graph for later steps, because the export is run as it is
    assert done.stdout == f"{ROW['text']}\n"
    (placed,) = assets(home, SPLIT)
    assert placed.endswith("_int8")


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["", "int8/"])
def test_eight_bit_files_run_as_they_are_if_nothing_else_exists(settings, hub, home, tmp_path):
    files = {f"{settings}{name}": TINY / name for name in SETTINGS}
    for graph in ("encoder_model", "decoder_model_merged"):
        files[f"int8/{graph}.onnx"] = TINY / "int8" / f"{graph}_int8.onnx"
    hub.repositories[SPLIT] = files
    done = translate(home, hub.url, "--source", "en", "--target", "eu")
    assert done.returncode == 0, done.stderr
    assert "cannot be compiled and is run as downloaded, which is slower" in done.stderr
    folder = tmp_path / "by-hand"
    folder.mkdir()
    for name, path in files.items():
        (folder / Path(name).name).symlink_to(path)
    assert done.stdout == f"{MarianModel.load(folder).translate(TEXT)}\n"
    again = translate(home, NOWHERE, "--source", "en", "--target", "eu")
    assert again.stdout == done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("end", ["_data", ".data"])
def test_external_weights_are_compiled_and_run(end, hub, home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    hub.repositories[SPLIT] = with_data_outside(outside, end)
    languages = '[languages]\nsource = "en"\ntarget = "eu"'
    compiled = write_config(tmp_path, languages, '[nmt]\nmodel = "auto"\nweights = "fp32"')
    translation, (directory,) = loaded(home, hub.url, compiled, TEXT)
    assert translation == ROW["text"]
    assert "-fp32-v" in directory.name
    as_is = write_config(tmp_path, languages, '[nmt]\nmodel = "auto"\nweights = "as-is"')
    translation, (directory,) = loaded(home, hub.url, as_is, TEXT)
    assert translation == ROW["text"]
    assert fetched(hub) == {f"{graph}.onnx{kind}" for graph in GRAPHS for kind in ("", end)}
    assert not any(path.is_symlink() for path in directory.iterdir())
    before = {path.name: path.stat().st_ino for path in directory.iterdir()}
    assert loaded(home, NOWHERE, as_is, TEXT) == (translation, [directory])
    assert {path.name: path.stat().st_ino for path in directory.iterdir()} == before  # not written again


def test_a_repository_that_lacks_its_listed_files_gives_one_error(hub, home):
    hub.repositories[SPLIT] = {
        name: path for name, path in split_repository().items() if not name.endswith("decoder_model.onnx")
    }
    line = failed(translate(home, hub.url, "--source", "en", "--target", "eu"))
    assert f"{SPLIT} has no decoder_model" in line
    assert "its largest files are decoder_with_past_model.onnx" in line
    assert "choose another model" in line
    assert fetched(hub) == set()


def test_missing_external_weights_give_one_error(hub, home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    files = with_data_outside(outside, "_data")
    del files["decoder_model.onnx_data"]
    hub.repositories[SPLIT] = files
    line = failed(translate(home, hub.url, "--source", "en", "--target", "eu"))
    assert "decoder_model.onnx" in line
    assert "fetch or export it again" in line


@pytest.mark.slow
def test_the_list_of_pairs_shows_which_models_are_cached(hub, home):
    def states():
        done = models(home, NOWHERE, "list", "--pairs", "--json")
        assert done.returncode == 0, done.stderr
        return {row["repository"]: row["state"] for row in json.loads(done.stdout)}

    before = states()
    assert set(before.values()) == {"missing"}
    assert models(home, hub.url, "pull", SPLIT).returncode == 0
    assert states() == before | {SPLIT: "compiled"}
    header, *rows = models(home, NOWHERE, "list", "--pairs").stdout.splitlines()
    assert header.split() == ["PAIR", "MODEL", "LAYOUT", "MB", "LICENCE", "STATE", "NOTE"]
    assert len(rows) > 130
    (row,) = [row.split() for row in rows if SPLIT in row]
    assert row == ["en", "→", "eu", SPLIT, "split", "fp32", "630", "Apache-2.0", "compiled"]
    assert "leave --config out" in failed(models(home, NOWHERE, "list", "--pairs", "--config", "demo-zh"), 2)


def test_exports_are_tried_from_the_best():
    def decoders(exports):
        return [(export.settings + export.names[1], len(export.graphs)) for export in exports]

    fp32 = [(f"{folder}decoder_model{kind}.onnx", 2) for folder in ("onnx/", "") for kind in ("_merged", "")]
    half = [(name.replace(".onnx", "_fp16.onnx"), graphs) for name, graphs in fp32]
    assert decoders(compilable_exports(half=False)) == fp32
    assert decoders(compilable_exports(half=True)) == [*fp32, *half]
    run = [(name, 2 if "merged" in name else 3) for name, _ in fp32]
    assert decoders(runnable_exports("")) == run
    assert decoders(runnable_exports("_q4")) == [(name.replace(".onnx", "_q4.onnx"), graphs) for name, graphs in run]
    own = [
        (f"{settings}int8/decoder_model{kind}.onnx", graphs)
        for kind, graphs in (("_merged", 2), ("", 3))
        for settings in ("", "int8/")
    ]
    assert decoders(runnable_exports("_int8"))[4:] == own  # files of 8 bits may have a folder of their own
    fallback = fallback_exports()
    assert decoders(fallback[:4]) == run
    assert [export.rank for export in fallback] == [1] * 4 + [2] * (len(fallback) - 4)
    assert {export.suffix for export in fallback[4:]} == {"_int8", "_quantized", "_uint8", ""}
    assert len(set(fallback)) == len(fallback)


@pytest.mark.parametrize(
    ("options", "compiled"),
    [
        ({"model": "x/any"}, True),
        ({"model": "x/any", "weights": "int4"}, True),
        ({"model": "x/any", "weights": "as-is"}, False),
        ({"model": "x/any", "file_suffix": "_q4"}, False),
        ({"model": "firefox/en-de"}, False),
        ({"model": str(TINY)}, False),
    ],
)
def test_models_of_the_hub_are_compiled_unless_their_files_are_to_run_as_they_are(options, compiled):
    assert is_compiled(NmtConfig(**options)) is compiled


def test_a_model_is_loaded_once_for_options_that_do_not_change_it(tmp_path):
    def key(**options):
        return loaded_as(NmtConfig("x/any", **options), TINY)

    (tmp_path / "link").symlink_to(TINY)
    same = [{"revision": "a"}, {"via": "de"}, {"url": "http://h/v1"}, {"url_model": "m"}]
    assert [options for options in (*same, {"url_tokens": 5}, {"url_timeout_s": 9.0}) if key(**options) != key()] == []
    assert loaded_as(NmtConfig("y/other"), tmp_path / "link") == key()
    others = [{"beam_size": 2}, {"threads": 2}, {"max_tokens": 9}, {"weights": "int4"}, {"cached_sentences": 0}]
    assert [options for options in others if key(**options) == key()] == []
