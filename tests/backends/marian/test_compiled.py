"""A hub model is compiled once, on first use; from then on the compiled model is used."""

import contextlib
import io
import json
import logging
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.backends.marian import compiled as compiled_module
from pipeline.backends.marian.compiled import drop_damaged_compiled, find_translation_model
from pipeline.backends.marian.load import load_translation_model
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import load_config
from pipeline.errors import ModelError
from tests.conftest import HANG_S, PHRASES, SETTINGS, TINY, golden
from tests.store.hub_server import COMMIT, HubServer, command, environment, failed, models, used

NAME = "owner/translation"
EXACT = ("onnx/encoder_model.onnx", "onnx/decoder_model_merged.onnx")
HALF = ("onnx/encoder_model_fp16.onnx", "onnx/decoder_model_merged_fp16.onnx")
PINNED = "d" * 40
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def hub():
    """A hub with the tiny model's exports in fp32, fp16 and int8."""
    files = {name: TINY / name for name in SETTINGS}
    for name in ("encoder_model", "decoder_model_merged"):
        files[f"onnx/{name}.onnx"] = TINY / f"{name}.onnx"
        for precision in ("fp16", "int8"):
            files[f"onnx/{name}_{precision}.onnx"] = TINY / precision / f"{name}_{precision}.onnx"
    server = HubServer({NAME: files})
    yield server
    server.close()


@pytest.fixture
def config(tmp_path):
    return write_config(tmp_path)


def write_config(folder, *lines):
    path = folder / "mine.toml"
    asr = TINY.parent  # nothing loads it
    path.write_text("\n".join([f'[asr]\nmodel = "{asr}"', f'[nmt]\nmodel = "{NAME}"', *lines]))
    return path


def fetched_graphs(hub):
    return {file for file, _ in hub.ranges if file.endswith((".onnx", ".safetensors"))}


def compiled(home):
    """The compiled models in the cache, and any other files beside them."""
    folder = home / "assets" / "streaming-speech-translation" / "owner--translation"
    return sorted(path for path in folder.iterdir() if path.suffix != ".lock") if folder.is_dir() else []


def translated(home, url, config, text):
    """The translation by the configured model, the model's directory, and standard error."""
    said = io.StringIO()
    logging.getLogger().addHandler(handler := logging.StreamHandler(said))
    try:
        with used(home, url), contextlib.redirect_stderr(said):
            options = load_config(str(config)).nmt
            directory = find_translation_model(options)
            model = load_translation_model("en", "zh", options, [directory])
            return model.translate(text), str(directory), said.getvalue()
    finally:
        logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("checkpoint", [(), ("model.safetensors",)])
def test_pull_fetches_the_smallest_sufficient_files_and_compiles_them(checkpoint, hub, home, config):
    hub.repositories[NAME] |= {name: TINY / name for name in checkpoint}
    done = models(home, hub.url, "pull", str(config))
    assert done.returncode == 0, done.stderr
    (folder,) = compiled(home)
    assert folder.name.startswith(f"{COMMIT}-auto-v")
    assert f"compiled, in {folder}" in done.stdout
    assert fetched_graphs(hub) == set(checkpoint or HALF)


def test_fp32_is_never_compiled_from_half_precision(hub, home, tmp_path):
    config = write_config(tmp_path, 'weights = "fp32"')
    text = golden("tiny-marian")[0]["source"]
    translation, _, _ = translated(home, hub.url, config, text)
    assert fetched_graphs(hub) == set(EXACT)
    assert translation == MarianModel.load(TINY).translate(text)


def test_loading_compiles_once_and_then_needs_no_network(hub, home, config):
    text = golden("tiny-marian")[0]["source"]
    first, directory, said = translated(home, hub.url, config, text)
    assert [Path(directory)] == compiled(home)
    assert "building" in said
    hub.requests.clear()
    assert translated(home, NOWHERE, config, text) == (first, directory, "")


def test_a_compiled_model_does_not_need_its_source_files(hub, home, tmp_path):
    config = write_config(tmp_path, f'revision = "{PINNED}"')
    _, directory, _ = translated(home, hub.url, config, "Hello.")
    shutil.rmtree(home / "hub")
    assert translated(home, NOWHERE, config, "Hello.")[1] == directory
    done = models(home, NOWHERE, "pull", str(config))
    assert f"{NAME}: compiled, in {directory}" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["a graph is gone", "a graph is cut", "not said to be whole"])
def test_damage_makes_a_model_compile_again(damage, hub, home, config):
    text = golden("tiny-marian")[0]["source"]
    first, directory, _ = translated(home, hub.url, config, text)
    graph = Path(directory) / "step.onnx"
    if damage == "a graph is cut":
        graph.write_bytes(graph.read_bytes()[:1000])
    else:
        (graph if "gone" in damage else Path(directory) / "files.json").unlink()
    assert "compiled" not in models(home, NOWHERE, "list", "--config", str(config)).stdout
    again, made, said = translated(home, NOWHERE, config, text)
    assert (again, made) == (first, directory)
    assert "building" in said


def test_pull_finds_damage_that_keeps_the_file_size(hub, home, config):
    text = golden("tiny-marian")[0]["source"]
    first, directory, _ = translated(home, hub.url, config, text)
    graph = Path(directory) / "step.onnx"
    made = graph.read_bytes()
    graph.write_bytes(made[:-5_000] + bytes(4_000) + made[-1_000:])
    done = models(home, hub.url, "pull", str(config))
    assert done.returncode == 0, done.stderr
    assert "is damaged: compiling it again" in done.stderr
    assert graph.read_bytes() == made
    assert translated(home, NOWHERE, config, text) == (first, directory, "")


def test_a_rejected_model_is_explained_without_a_network_too(hub, home, config, tmp_path):
    other = {file: TINY / file for file in ("source.spm", "target.spm", "vocab.json", "model.safetensors")}
    changed = tmp_path / "config.json"
    changed.write_text(
        json.dumps(json.loads((TINY / "config.json").read_text()) | {"activation_function": "tanhshrink"})
    )
    hub.repositories[NAME] = {**other, "config.json": changed}
    for url in (hub.url, NOWHERE):
        done = command(home, url, "live", str(PHRASES), "--config", str(config), "--source", "en")
        assert done.returncode == 1
        assert "the activation function is 'tanhshrink'" in done.stderr


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pytorch_model.bin", "or install PyTorch, which reads its pytorch_model.bin"),
        ("model.safetensors.index.json", "or fetch the repository into a directory and give that"),
    ],
)
def test_a_repository_without_usable_files_gives_an_error_with_a_hint(name, hint, hub, home, config, monkeypatch):
    other = {file: TINY / file for file in ("config.json", "source.spm", "target.spm", "vocab.json")}
    hub.repositories[NAME] = {**other, name: TINY / "config.json"}
    monkeypatch.setattr("pipeline.backends.marian.compile.huggingface.can_read_pytorch", lambda: False)
    done = models(home, hub.url, "pull", str(config))
    assert done.returncode == 1
    assert hint in done.stderr
    assert "model.bin, tokenizer.json" not in done.stderr


def test_a_cached_snapshot_is_compiled_without_a_network(hub, home, tmp_path):
    as_is = write_config(tmp_path, 'weights = "as-is"')
    assert models(home, hub.url, "pull", str(as_is)).returncode == 0
    assert compiled(home) == []
    _, directory, _ = translated(home, NOWHERE, write_config(tmp_path), "Hello.")
    assert [Path(directory)] == compiled(home)


def test_files_of_a_chosen_precision_run_as_they_are(hub, home, tmp_path):
    config = write_config(tmp_path, 'file_suffix = "_int8"')
    _, directory, _ = translated(home, hub.url, config, "Hello.")
    assert Path(directory).name == COMMIT
    assert compiled(home) == []
    assert fetched_graphs(hub) == {name.replace(".onnx", "_int8.onnx") for name in EXACT}


def test_a_model_that_the_compiler_refuses_runs_as_it_is(hub, home, config):
    files = hub.repositories[NAME]
    for plain, half in zip(EXACT, HALF, strict=True):
        files[plain] = files.pop(plain.replace(".onnx", "_int8.onnx"))
        del files[half]
    _, directory, said = translated(home, hub.url, config, "Hello.")
    assert Path(directory).name == COMMIT
    assert "cannot be compiled and is run as downloaded, which is slower" in said
    assert "is quantised" in said
    assert compiled(home) == []


def test_fp32_files_are_fetched_if_the_compiler_rejects_smaller_ones(hub, home, config):
    files = hub.repositories[NAME]
    for plain, half in zip(EXACT, HALF, strict=True):
        files[half] = files[plain.replace(".onnx", "_int8.onnx")]
    _, directory, said = translated(home, hub.url, config, "Hello.")
    assert fetched_graphs(hub) == {*EXACT, *HALF}
    assert [Path(directory)] == compiled(home)
    assert "slower" not in said


def test_a_checkpoint_is_fetched_if_the_compiler_rejects_the_only_export(hub, home, config, tmp_path):
    files = hub.repositories[NAME]
    for plain, half in zip(EXACT, HALF, strict=True):
        files[half] = files.pop(plain.replace(".onnx", "_int8.onnx"))
        del files[plain]
    checkpoint = (TINY / "model.safetensors").read_bytes()
    size = int.from_bytes(checkpoint[:8], "little") + 80_000  # blanks after the header make it the larger file
    files["model.safetensors"] = tmp_path / "model.safetensors"
    files["model.safetensors"].write_bytes(
        size.to_bytes(8, "little") + checkpoint[8 : size - 80_000 + 8] + b" " * 80_000 + checkpoint[size - 80_000 + 8 :]
    )
    _, directory, said = translated(home, hub.url, config, "Hello.")
    assert fetched_graphs(hub) == {*HALF, "model.safetensors"}
    assert [Path(directory)] == compiled(home)
    assert "slower" not in said


@pytest.mark.slow
def test_a_full_disk_is_reported_and_no_partial_files_are_left(hub, home, config):
    """A file size limit simulates a full disk: downloaded files are below it, compiled files are above."""
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.models", "pull", str(config)], env=environment(home, hub.url),
        capture_output=True, text=True, timeout=HANG_S, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)),
    )  # fmt: skip
    failed(done)
    assert compiled(home) == []
    assert fetched_graphs(hub) == set(HALF)  # after a disk error no other export is tried
    assert models(home, hub.url, "pull", str(config)).returncode == 0
    assert len(compiled(home)) == 1


def test_leftovers_of_a_killed_process_are_removed(hub, home, config):
    assert models(home, hub.url, "pull", str(config)).returncode == 0
    (folder,) = compiled(home)
    folder.rename(folder.with_name(f".{folder.name}.killed"))
    assert models(home, NOWHERE, "pull", str(config)).returncode == 0
    assert compiled(home) == [folder]


def test_two_programs_that_start_at_once_compile_once(hub, home, config, capfd):
    with used(home, hub.url), ThreadPoolExecutor(2) as threads:  # the lock is one between programs
        found = list(threads.map(find_translation_model, [load_config(str(config)).nmt] * 2))
    assert found == compiled(home) * 2
    assert capfd.readouterr().err.count("reading the checkpoint") == 1


def test_the_list_shows_which_models_are_compiled(hub, home, config):
    def row():
        table = models(home, NOWHERE, "list", "--config", str(config)).stdout
        (line,) = [line for line in table.splitlines() if NAME in line]
        return line.split()

    assert row()[3] == "missing"
    assert models(home, hub.url, "pull", str(config)).returncode == 0
    name, kind, revision, state, size, unit, *_ = row()
    assert (name, kind, revision, state, unit) == (NAME, "translation", COMMIT[:12], "compiled", "MB")
    assert float(size) > 1


def test_a_damaged_model_that_cannot_be_removed_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_ASSETS_CACHE", str(tmp_path))
    config = NmtConfig(NAME, revision=COMMIT)
    folder = compiled_module._cache_directory(config, COMMIT)
    folder.mkdir(parents=True)
    (folder / "step.onnx").write_text("made")
    (folder / "files.json").write_text(json.dumps(compiled_module._sizes_and_hashes(folder)))
    assert not drop_damaged_compiled(config)
    (folder / "step.onnx").write_text("edam")

    def refused(path, missing_ok=False):  # tests may run as root, who has every permission
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as context:
        context.setattr(Path, "unlink", refused)
        with pytest.raises(ModelError, match="is damaged and cannot be removed: Permission denied"):
            drop_damaged_compiled(config)
    assert drop_damaged_compiled(config)
    assert not drop_damaged_compiled(config), "it is no whole model any more, and made again anyway"
