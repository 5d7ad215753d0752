"""Models by name: from directories, from the cache, and from a local server with the hub's protocol."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from pipeline import load_config, load_models
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.whisper.files import find_recognizer
from pipeline.config.resources import CONFIGS
from pipeline.errors import DownloadError, ModelError, UsageError
from pipeline.store import FileSet, ModelRef, resolve, resolve_model, transfer
from pipeline.store.hub import _no_bars, drop_damaged, fetch_model
from pipeline.store.listing import Listing, RemoteFile, busy
from tests.conftest import SETTINGS, TINY
from tests.store.hub_server import HubServer, used


def test_a_directory_is_used_as_it_is(tmp_path):
    assert resolve_model(ModelRef(str(tmp_path))) == tmp_path


def test_a_file_and_a_missing_directory_are_reported(tmp_path):
    (tmp_path / "model.bin").touch()
    with pytest.raises(ModelError, match="is a file; give the directory"):
        resolve_model(ModelRef(str(tmp_path / "model.bin")))
    for name in ("./nowhere", "nowhere", "/a/b/c", "~/model"):
        with pytest.raises(UsageError, match="no such model directory"):
            resolve_model(ModelRef(name))


def test_an_invalid_hub_id_is_reported():
    with pytest.raises(ModelError, match="neither a directory nor a hub id"):
        resolve_model(ModelRef("own er/na me"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


def cache(folder: Path, files: list[str]) -> Path:
    """A hub cache with one snapshot, in huggingface_hub's layout."""
    snapshot = folder / "models--owner--name" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (folder / "models--owner--name" / "refs").mkdir()
    (folder / "models--owner--name" / "refs" / "main").write_text("a" * 40)
    for name in files:
        (snapshot / name).touch()
    return snapshot


def test_a_cached_model_needs_no_connection(tmp_path):
    snapshot = cache(tmp_path, ["config.json", "model.bin"])
    assert resolve_model(ModelRef("owner/name", files=(FileSet(("config.json", "model.*")),))) == snapshot


def test_a_damaged_ref_in_the_cache_is_not_a_commit(tmp_path):
    (cache(tmp_path, ["model.bin"]).parents[1] / "refs" / "main").write_bytes(b"\xff\xfe")
    assert resolve.cached_snapshot(ModelRef("owner/name")) is None


def test_a_complete_cache_is_not_written_to(tmp_path, monkeypatch):
    """The cache may belong to somebody else, while the hub is asked whether it is up to date."""
    snapshot = cache(tmp_path, [])
    blob = snapshot.parents[1] / "blobs" / ("b" * 64)
    blob.parent.mkdir()
    blob.touch()
    (snapshot / "model.bin").symlink_to(blob)
    listing = Listing("owner/name", None, "a" * 40, (RemoteFile("model.bin", 0, blob.name),))
    monkeypatch.setattr("pipeline.store.hub.list_files", lambda model, revision: listing)
    before = sorted(tmp_path.rglob("*"))
    assert fetch_model(ModelRef("owner/name", files=(FileSet(("model.bin",)),)), print) == snapshot
    assert sorted(tmp_path.rglob("*")) == before
    # Unless the branch has moved to a commit that is there already.
    linked = list[str]()
    monkeypatch.setattr("pipeline.store.hub._link", lambda listing, files: linked.append(listing.commit) or snapshot)
    (snapshot.parents[1] / "refs" / "main").write_text("c" * 40)
    assert fetch_model(ModelRef("owner/name", files=(FileSet(("model.bin",)),)), print) == snapshot
    assert linked == ["a" * 40]


def test_an_unreadable_cache_is_reported(tmp_path, monkeypatch):
    snapshot = cache(tmp_path, ["config.json"])
    real = Path.is_dir

    def refused(path: Path) -> bool:  # tests may run as root, to whom nothing is refused
        if path == snapshot:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(
        DownloadError, match="cannot be read: Permission denied; give the right to read it, or set HF_HOME"
    ):
        resolve_model(ModelRef("owner/name", files=(FileSet(("config.json",)),)))


def test_a_link_whose_file_is_gone_is_damaged(tmp_path):
    snapshot = cache(tmp_path, ["config.json"])
    (snapshot / "model.bin").symlink_to(snapshot.parents[1] / "blobs" / ("b" * 64))
    assert drop_damaged(snapshot) == ["model.bin"]
    assert [path.name for path in snapshot.iterdir()] == ["config.json"]


def test_what_follows_the_listed_size_of_a_file_is_not_read(tmp_path, monkeypatch):
    read = list[bytes]()

    @contextmanager
    def connection(url: str, start: int) -> Iterator[tuple[bool, Iterator[bytes]]]:
        yield False, (read.append(bytes(1_000)) or read[-1] for _ in range(1_000))

    monkeypatch.setattr(transfer, "_connection", connection)
    file = RemoteFile("model.bin", 1_500, "b" * 64)
    with pytest.raises(DownloadError, match="has 2,000 bytes; the hub lists 1,500"):
        transfer.fetch_blob(Listing("owner/name", None, "a" * 40, (file,)), file, tmp_path, lambda size: None)
    assert len(read) == 2


@pytest.mark.parametrize(
    ("connections", "sizes"),
    [
        ([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]),  # each brings something
        ([2, 0, 0, 2, 0, 0, 1], [2, 4, 5]),
        ([2, 0, 0, 0, 3], None),
        ([0, 0, 0, 3], None),
    ],
)
def test_a_download_is_given_up_after_three_connections_in_a_row_that_bring_nothing(
    connections, sizes, tmp_path, monkeypatch
):
    content, given, told = b"12345", iter(connections), list[int]()

    @contextmanager
    def connection(url: str, start: int) -> Iterator[tuple[bool, Iterator[bytes]]]:
        yield True, iter([content[start : start + count]] if (count := next(given, 0)) else [])

    monkeypatch.setattr(transfer, "_connection", connection)
    monkeypatch.setattr(transfer, "_PAUSE_S", 0)
    file = RemoteFile("model.bin", 5, hashlib.sha256(content).hexdigest())
    with pytest.raises(DownloadError, match="stopped at") if sizes is None else nullcontext():
        transfer.fetch_blob(Listing("owner/name", None, "a" * 40, (file,)), file, tmp_path, told.append)
    assert sizes in (None, told)
    assert list(given) == ([3] if sizes is None else [])


def test_statuses_after_which_trying_again_helps():
    assert [status for status in (401, 403, 404, 408, 416, 429, 500, 503) if busy(status)] == [408, 429, 500, 503]


def test_fetching_leaves_the_progress_bars_of_a_host_as_they_are(monkeypatch):
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    with _no_bars():
        assert are_progress_bars_disabled()
    assert not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        with _no_bars():
            assert are_progress_bars_disabled()
        assert are_progress_bars_disabled()
    finally:
        enable_progress_bars()


SPEECH, OPUS = "owner/speech", "Xenova/opus-mt-en-zh"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub with a recogniser under an unknown name, and the tiny translator under a real name."""
    heard = find_recognizer(AsrConfig(model="tiny.en"))
    translation = {name: TINY / name for name in SETTINGS}
    for name in ("encoder_model", "decoder_model_merged"):
        translation[f"onnx/{name}.onnx"] = TINY / f"{name}.onnx"
        translation[f"onnx/{name}_fp16.onnx"] = TINY / "fp16" / f"{name}_fp16.onnx"
    server = HubServer({SPEECH: {path.name: path for path in heard.iterdir()}, OPUS: translation})
    yield server
    server.close()


@pytest.mark.slow
def test_the_real_configuration_fetches_once_and_then_works_offline(hub, tmp_path):
    named = (CONFIGS / "en-zh.toml").read_text("utf-8")
    # The real recogniser's hashes are known, so this hub cannot offer it. The translator is the other one that the file names.
    named = named.replace("Systran/faster-whisper-small", SPEECH).replace('model = "firefox/en-zh"', "")
    (tmp_path / "real.toml").write_text(named.replace("# model =", "model =").replace("# revision =", "revision ="))
    config = load_config(str(tmp_path / "real.toml"))
    assert config.nmt.model == OPUS
    with used(tmp_path, hub.url):
        load_models(config)
        assert any(f"/{config.nmt.revision}" in request for request in hub.requests)
        assert any(f"/{config.asr.revision}" in request for request in hub.requests)
        fetched = {file for file, _ in hub.ranges if file.endswith(".onnx")}
        assert fetched == {"onnx/encoder_model_fp16.onnx", "onnx/decoder_model_merged_fp16.onnx"}  # the smallest usable
        assert not any(request.endswith("README.md") for request in hub.requests)  # only what is needed
        hub.requests.clear()
        load_models(config)
        assert hub.requests == []
