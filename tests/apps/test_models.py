"""models list and pull: files are verified before they get their name, and interrupted downloads resume."""

import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.utils import WeakFileLock

from pipeline import load_config
from pipeline.apps.known_models import models_called, named_models
from pipeline.backends.marian.compiled import translator_ref
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config.resources import named_configs
from pipeline.store.listing import Listing, RemoteFile
from tests.conftest import HANG_S, ROOT
from tests.store.hub_server import COMMIT, NEXT_COMMIT, HubServer, environment, failed, models

NAME = "owner/speech"
SIZES = {"model.bin": 2_000_000, "config.json": 300, "tokenizer.json": 20_000, "vocabulary.json": 4_000, "README.md": 9}
PINNED = "d" * 40


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    """A hub with one repository, which looks like a speech model."""
    noise = random.Random(0)
    files = {}
    for name, size in SIZES.items():
        (tmp_path / name).write_bytes(noise.randbytes(size))
        files[name] = tmp_path / name
    server = HubServer({NAME: files})
    yield server
    server.close()


def pull(home: Path, hub: HubServer, name: str = NAME, *arguments: str) -> subprocess.CompletedProcess[str]:
    return models(home, hub.url, "pull", name, *arguments)


def repository(home: Path) -> Path:
    return home / "hub" / "models--owner--speech"


def has_whole_model(home: Path, hub: HubServer, commit: str = COMMIT) -> bool:
    """Whether the snapshot has exactly the needed files, byte for byte."""
    snapshot = repository(home) / "snapshots" / commit
    wanted = {name: path.read_bytes() for name, path in hub.repositories[NAME].items() if name != "README.md"}
    return {path.name: path.read_bytes() for path in snapshot.iterdir()} == wanted


def starts(hub: HubServer, name: str = "model.bin") -> list[int]:
    """The first byte of each response for a file."""
    return [start for file, start in hub.ranges if file == name]


def test_a_model_is_fetched_into_the_hubs_own_cache(hub, home):
    done = pull(home, hub)
    assert done.returncode == 0, done.stderr
    assert has_whole_model(home, hub)
    assert (repository(home) / "refs" / "main").read_text() == COMMIT
    assert COMMIT in done.stdout
    assert "not pinned" in done.stdout
    assert done.stderr.splitlines() == ["fetching owner/speech, 2.0 MB"]


def test_two_files_with_the_same_content_are_fetched_once(hub, home):
    files = hub.repositories[NAME]
    files["preprocessor_config.json"] = files["tokenizer.json"]
    assert pull(home, hub).returncode == 0
    assert len(hub.ranges) == len({*SIZES} - {"README.md"})
    snapshot = repository(home) / "snapshots" / COMMIT
    assert (snapshot / "preprocessor_config.json").read_bytes() == (snapshot / "tokenizer.json").read_bytes()


def test_a_pinned_revision_is_requested_once(hub, home):
    assert pull(home, hub, NAME, "--revision", PINNED).returncode == 0
    assert has_whole_model(home, hub, PINNED)
    hub.requests.clear()
    again = pull(home, hub, NAME, "--revision", PINNED)
    assert again.stdout == f"owner/speech: complete and undamaged at {PINNED}\n"
    assert hub.requests == []


def test_a_broken_connection_resumes_where_it_broke(hub, home):
    hub.faults.cut = {"model.bin": [700_000, 700_000]}
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)
    first, second, third = starts(hub)
    assert 0 == first < second < third


def test_an_abandoned_download_resumes_in_the_next_run(hub, home):
    hub.faults.cut = {"model.bin": [700_000, 0, 0, 0]}
    line = failed(pull(home, hub))
    assert "stopped at 0." in line
    assert line.endswith("run this again to resume")
    assert not (repository(home) / "snapshots").exists()
    hub.ranges.clear()
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)
    (start,) = starts(hub)
    assert start > 500_000


@pytest.mark.slow
def test_an_interrupted_download_resumes_in_the_next_run(hub, home):
    hub.faults.hold = {"model.bin": 700_000}
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.models", "pull", NAME], env=environment(home, hub.url),
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "fetching" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert "kept: run this again" in process.stderr.read()
    assert process.returncode == 130
    hub.faults.hold, hub.ranges = {}, []
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)
    assert starts(hub)[0] > 0


def test_a_stalled_connection_is_replaced(hub, home):
    hub.faults.hold = {"model.bin": 1_200_000}
    done = models(home, hub.url, "pull", NAME, HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert done.returncode == 0, done.stderr
    assert has_whole_model(home, hub)
    assert len(starts(hub)) == 2


def test_a_server_without_range_support_restarts_the_file(hub, home):
    hub.faults.cut, hub.faults.deaf = {"model.bin": [700_000]}, {"model.bin"}
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)


@pytest.mark.slow
def test_waiting_for_another_program_is_reported(hub, home):
    lock = repository(home).parent / ".locks" / repository(home).name / "fetch.lock"
    lock.parent.mkdir(parents=True)
    with WeakFileLock(lock):
        waiting = subprocess.Popen(
            [sys.executable, "-m", "pipeline.models", "pull", NAME],
            env=environment(home, hub.url),
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        assert waiting.stderr
        said = b""
        while b"waiting for another program, which fetches owner/speech" not in said:
            assert select.select([waiting.stderr], [], [], HANG_S)[0], said  # it prints nothing
            part = os.read(waiting.stderr.fileno(), 1000)
            assert part, said  # it has ended
            said += part
    assert waiting.wait(HANG_S) == 0
    assert has_whole_model(home, hub)


def test_a_download_without_progress_is_given_up(hub, home):
    hub.faults.cut, hub.faults.deaf = {"model.bin": [700_000, 600_000] * 10}, {"model.bin"}
    assert "model.bin of owner/speech stopped at" in failed(pull(home, hub))
    assert len(starts(hub)) < 10


@pytest.mark.parametrize("name", ["model.bin", "config.json"])
def test_a_file_with_a_wrong_hash_is_not_kept(hub, home, name):
    """Large files are listed with their SHA-256, small ones with git's SHA-1."""
    hub.faults.damaged = {name}
    line = failed(pull(home, hub))
    assert f"{name} of owner/speech arrived with the hash" in line
    assert not (repository(home) / "snapshots").exists()
    hub.faults.damaged = set()
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)


def test_a_wrong_partial_file_of_an_earlier_run_is_fetched_again(hub, home):
    hub.faults.cut = {"model.bin": [700_000, 0, 0, 0]}
    failed(pull(home, hub))
    (left,) = (repository(home) / "blobs").glob("*.incomplete")
    left.write_bytes(bytes(left.stat().st_size))
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)


@pytest.mark.parametrize("difference", [-1_000, 1_000])
def test_a_file_with_a_wrong_size_is_not_kept(hub, home, difference):
    hub.faults.listed_sizes = {"model.bin": SIZES["model.bin"] + difference}
    assert "the hub lists" in failed(pull(home, hub))
    assert not (repository(home) / "snapshots").exists()


def test_a_damaged_cached_file_is_fetched_again(hub, home):
    assert pull(home, hub, NAME, "--revision", PINNED).returncode == 0
    cached = repository(home) / "snapshots" / PINNED / "model.bin"
    cached.resolve().write_bytes(bytes(SIZES["model.bin"]))
    again = pull(home, hub, NAME, "--revision", PINNED)
    assert "damaged and fetched again: model.bin" in again.stdout
    assert has_whole_model(home, hub, PINNED)


def test_a_damaged_file_of_a_model_that_lacks_another_is_fetched_again(hub, home):
    assert pull(home, hub).returncode == 0
    snapshot = repository(home) / "snapshots" / COMMIT
    for name in ("model.bin", "tokenizer.json"):  # with a SHA-256 and with git's SHA-1
        (snapshot / name).resolve().write_bytes(bytes(SIZES[name]))
    (snapshot / "config.json").unlink()
    assert "damaged and fetched again: model.bin, tokenizer.json" in pull(home, hub).stdout
    assert has_whole_model(home, hub)


def test_a_failed_update_is_a_failure(hub, home):
    assert pull(home, hub).returncode == 0
    hub.repositories[NAME]["tokenizer.json"].write_bytes(b"newer")
    hub.faults.damaged = {"tokenizer.json"}
    assert "tokenizer.json of owner/speech arrived with the hash" in failed(pull(home, hub))


def test_a_model_that_changes_while_it_is_fetched_is_fetched_by_the_next_run(hub, home):
    hub.faults.new_commit_after = "model.bin"
    line = failed(pull(home, hub))
    assert "owner/speech changed on the hub while it was fetched" in line
    assert line.endswith("run this again")
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub, NEXT_COMMIT)


def test_a_listed_file_that_is_missing_is_reported(hub, home):
    hub.faults.missing = {"tokenizer.json"}
    assert "the hub refused tokenizer.json of owner/speech" in failed(pull(home, hub))


def test_names_unknown_to_the_hub_are_reported(hub, home):
    assert "the hub refused nobody/nothing" in failed(pull(home, hub, "nobody/nothing"))
    assert "the hub refused owner/speech" in failed(pull(home, hub, NAME, "--revision", "nowhere"))


def test_a_repository_of_another_kind_is_reported(hub, home):
    hub.repositories["owner/other"] = {"README.md": hub.repositories[NAME]["README.md"]}
    assert "owner/other has no config.json, model.bin" in failed(pull(home, hub, "owner/other"))


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_hub_gets_one_request(status, hub, home):
    hub.faults.status = status
    assert "cannot serve owner/speech at the moment" in failed(pull(home, hub))
    assert [request for request in hub.requests if NAME in request] == [f"GET /api/models/{NAME}"]


def test_a_hub_that_lists_no_hashes_is_refused(hub, home):
    hub.faults.no_hashes = True
    assert "lists no size or hash" in failed(pull(home, hub))


def test_without_a_network_the_error_is_immediate_and_says_what_to_do(home):
    done = models(home, "http://127.0.0.1:9", "pull", NAME)
    line = failed(done)
    assert "the hub cannot be reached" in line
    assert line.endswith("Connect and run this again")
    assert "Retrying" not in done.stderr
    offline = failed(models(home, "http://127.0.0.1:9", "pull", NAME, HF_HUB_OFFLINE="1"))
    assert "HF_HUB_OFFLINE forbids" in offline


def test_without_a_network_a_cached_model_is_enough(hub, home):
    assert pull(home, hub).returncode == 0
    for more in ({}, {"HF_HUB_OFFLINE": "1"}):
        done = models(home, "http://127.0.0.1:9", "pull", NAME, **more)
        assert done.returncode == 0, done.stderr
        assert "the hub could not be asked for a newer one" in done.stdout
    (repository(home) / "snapshots" / COMMIT / "model.bin").resolve().write_bytes(bytes(SIZES["model.bin"]))
    assert "the hub cannot be reached" in failed(
        models(home, "http://127.0.0.1:9", "pull", NAME)
    )  # but not a damaged one


def test_a_model_larger_than_the_free_disk_space_is_not_fetched(hub, home):
    hub.faults.listed_sizes = {"model.bin": 10**18}
    assert "make room, or set HF_HOME" in failed(pull(home, hub))
    assert hub.ranges == []


@pytest.mark.slow
def test_a_disk_that_fills_up_is_reported_and_nothing_is_lost(hub, home):
    """A file size limit simulates a full disk."""
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.models", "pull", NAME], env=environment(home, hub.url),
        capture_output=True, text=True, timeout=HANG_S, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )  # fmt: skip
    assert "cannot write to the cache" in failed(done)
    hub.ranges.clear()
    assert pull(home, hub).returncode == 0
    assert has_whole_model(home, hub)
    assert starts(hub) == [1_000_000]


def test_an_unwritable_cache_is_reported(hub, tmp_path):
    (tmp_path / "file").touch()
    assert "set HF_HOME to a usable folder" in failed(pull(tmp_path / "file", hub))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "hub").touch()
    assert "or set HF_HOME to another folder" in failed(pull(tmp_path / "home", hub))


@pytest.mark.slow
def test_two_concurrent_programs_fetch_once(hub, home):
    command = [sys.executable, "-m", "pipeline.models", "pull", NAME]
    both = [subprocess.Popen(command, env=environment(home, hub.url), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=HANG_S) for process in both] == [0, 0]
    assert has_whole_model(home, hub)
    assert starts(hub) == [0]


def listed(home: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    done = models(home, "http://127.0.0.1:9", "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_the_list_shows_each_model_once_with_its_state(hub, home, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(f'[asr]\nmodel = "{NAME}"\n[nmt]\nmodel = "gone"\n')
    real = load_config("en-zh")
    rows = listed(home, "--config", str(mine))
    assert rows[real.asr.model]["configs"] == ["en-zh", "zh-en"]
    assert (
        rows[real.nmt.model]
        | {"kind": "translation", "revision": real.nmt.revision, "licence": "MPL-2.0", "state": "missing", "size": 0}
        == (rows[real.nmt.model])
    )
    assert rows[str(ROOT / "models" / "demo" / "nmt-en-zh")]["state"] == "directory"
    assert rows["Systran/faster-whisper-base"]["configs"] == ["demo", "demo-pt-en", "demo-zh", "demo-zh-en"]
    assert rows["gone"]["state"] == "missing"
    assert rows[NAME]["state"] == "missing"
    hub.faults.cut = {"model.bin": [700_000, 0, 0, 0]}
    failed(pull(home, hub))
    assert listed(home, "--config", str(mine))[NAME]["state"] == "partial"
    assert pull(home, hub).returncode == 0
    complete = listed(home, "--config", str(mine))[NAME]
    assert complete["state"] == "complete"
    assert complete["commit"] == COMMIT
    assert complete["size"] >= sum(SIZES.values()) - SIZES["README.md"]
    (repository(home) / "snapshots" / COMMIT / "model.bin").unlink()
    assert listed(home, "--config", str(mine))[NAME]["state"] == "partial"


def test_the_list_as_a_table_has_one_line_per_model(home):
    done = models(home, "http://127.0.0.1:9", "list")
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["MODEL", "KIND", "REVISION", "STATE", "SIZE", "CONFIGS", "WHERE"]
    assert [row.split()[1:2] + row.split()[3:4] for row in rows] == [
        ["speech", "installed"], ["translation", "installed"], ["translation", "installed"],
        ["translation", "directory"], ["translation", "directory"],
        ["speech", "missing"], ["translation", "missing"], ["translation", "missing"], ["speech", "installed"],
    ]  # fmt: skip


def test_a_directory_needs_no_fetching(home):
    done = models(home, "http://127.0.0.1:9", "pull", "demo-zh")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a directory, nothing to fetch") == 1
    assert "complete and undamaged, from installed packages" in done.stdout


def test_the_smallest_compilable_set_is_preferred_over_sets_that_only_run(tmp_path):
    files = ["config.json", "source.spm", "target.spm", "vocab.json"]
    graphs = [f"onnx/{name}_model{kind}.onnx" for name, kind in (("encoder", ""), ("decoder", "_merged"))]
    small = [graph.replace(".onnx", "_int8.onnx") for graph in graphs]
    sizes = dict.fromkeys((*files, *graphs), 1) | {f"{graph}_data": 1_000 for graph in graphs} | dict.fromkeys(small, 1)
    choices = translator_ref(NmtConfig("x/y")).files

    def chosen(listed: dict[str, int]) -> set[str]:
        remote = tuple(RemoteFile(name, size, "a" * 40) for name, size in listed.items())
        return {file.name for file in Listing("x/y", None, COMMIT, remote).choose(choices, tmp_path)}

    assert chosen(sizes) == {*files, *graphs, *(f"{graph}_data" for graph in graphs)}
    assert chosen(sizes | {"model.safetensors": 500}) == {*files, "model.safetensors"}
    assert chosen(dict.fromkeys((*files, *small), 1)) == {*files, *small}


def test_unknown_names_are_wrong_usage(home):
    assert "unknown model or configuration 'xx'" in failed(models(home, "", "pull", "xx"), 2)
    assert "--revision applies to a single model" in failed(models(home, "", "pull", "en-zh", "--revision", "main"), 2)
    assert "no such configuration file" in failed(models(home, "", "list", "--config", "gone.toml"), 2)


def test_a_model_that_can_only_be_a_folder_is_not_fetched(home, tmp_path):
    (mine := tmp_path / "mine.toml").write_text('[asr]\nbackend = "sherpa-onnx"\nmodel = "maker/zipformer"\n')
    said = failed(models(home, "", "pull", str(mine)), 2)
    assert "maker/zipformer is no folder, and models of its recogniser are not fetched; give the folder" in said


def test_the_draft_model_of_a_configuration_is_listed_and_fetched(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('[asr]\nmodel = "base"\n[asr.draft]\nmodel = "owner/smaller"\nrevision = "v1"\n')
    speech = [(model.ref.source, model.ref.revision) for model in named_models([str(path)]) if model.kind == "speech"]
    assert [name for name, _ in speech] == ["Systran/faster-whisper-base", "owner/smaller"]
    assert speech[1][1] == "v1"
    assert named_models([str(path)]) == models_called(str(path))
    path.write_text(path.read_text() + "[drafts]\nenabled = false\n")
    assert [model.ref.source for model in named_models([str(path)]) if model.kind == "speech"] == [speech[0][0]]


def test_each_name_in_a_bundled_configuration_means_one_model_of_a_known_licence():
    models = named_models(named_configs())
    sources = [model.ref.source for model in models]
    assert len(set(sources)) == len(sources)
    fetched = [model.ref for model in models if not Path(model.ref.source).is_dir()]
    assert {"Systran/faster-whisper-small", "firefox/en-zh", "firefox/en-pt-tiny"} <= {ref.source for ref in fetched}
    assert {ref.licence for ref in fetched} == {"MIT", "MPL-2.0"}
    for ref in fetched:
        assert ref.files, "what is needed of it"
        assert (ref.known is not None) == (ref.revision is not None or ref.source.endswith("-tiny"))
