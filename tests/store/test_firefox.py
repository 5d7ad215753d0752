"""Students of Mozilla's catalogue, from a local server that speaks it."""

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from huggingface_hub import constants

from pipeline import MarianModel, load_translation_model
from pipeline.apps.known_models import models_called, pull, state_of
from pipeline.backends.nmt_options import NmtConfig
from pipeline.errors import DownloadError, HubUnreachableError, ModelError
from pipeline.store import ModelRef, resolve_model
from pipeline.store.firefox import VARIABLE, fetch_student
from pipeline.store.students import cached_student, is_student
from tests.fixtures.student import write_student
from tests.store.catalogue_server import Catalogue, serving_catalogue


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    with serving_catalogue(tmp_path, monkeypatch) as served:
        yield served


def fetched(name: str = "firefox/en-de") -> Path:
    return fetch_student(name, lambda what, done: None)


def test_a_pair_is_fetched_once_and_translates(catalogue):
    model = load_translation_model("en", "de", NmtConfig("firefox/en-de", max_tokens=8))
    assert isinstance(model, MarianModel)
    assert model.languages == ("en", "de")
    assert model.translate("hello")
    assert len(catalogue.asked) == 4
    assert resolve_model(ModelRef("firefox/en-de")) == cached_student("firefox/en-de")
    assert len(catalogue.asked) == 4  # nothing is asked of the network


def test_the_released_model_is_taken_and_a_newer_one_replaces_it_on_pull(catalogue, tmp_path):
    write_student(tmp_path / "other", pair="ende", floats=True)
    catalogue.add("tiny", "Nightly", tmp_path / "other")
    folder = fetched()
    assert all("/base-memory/" in path for path in catalogue.asked[1:])
    catalogue.models["en-de"].pop(0)
    catalogue.models["en-de"][0]["releaseStatus"] = "Release"
    (model,) = models_called("en-de")
    before = next(folder.glob("model*")).read_bytes()
    assert pull(model, lambda what, done: None) == f"firefox/en-de: complete in {folder}"
    assert next(folder.glob("model*")).read_bytes() != before
    assert state_of(model).state == "complete"


def test_a_download_that_breaks_off_goes_on_where_it_was(catalogue):
    catalogue.cut = [1000, 500, 100_000_000]
    folder = fetched()
    assert catalogue.ranges[:3] == [None, "bytes=1000-", "bytes=1500-"]
    assert cached_student("firefox/en-de") == folder


def test_a_student_with_a_file_that_is_not_whole_is_not_in_the_cache(catalogue):
    path = next(fetched().glob("vocab*"))
    path.write_bytes(path.read_bytes()[:-1])
    assert cached_student("firefox/en-de") is None


def test_what_arrived_is_kept_for_the_next_run(catalogue):
    catalogue.cut = [700, 0, 0]
    with pytest.raises(HubUnreachableError, match="What arrived is kept"):
        fetched()
    fetched()
    assert catalogue.ranges[3] == "bytes=700-"


def test_a_damaged_or_other_file_is_refused_and_fetched_anew(catalogue):
    place = next(path for path in catalogue.files if "/model." in path)
    right = catalogue.files[place]
    for wrong, message in (
        (right[:-9] + bytes(9), "arrived damaged"),
        (gzip.compress(b"other"), "the catalogue lists"),
    ):
        catalogue.files[place] = wrong
        with pytest.raises(DownloadError, match=message):
            fetched()
        assert cached_student("firefox/en-de") is None
    catalogue.files[place] = right
    assert fetched()


def test_a_damaged_file_in_the_cache_is_fetched_again_on_pull(catalogue):
    path = next(fetched().glob("vocab*"))
    right = path.read_bytes()
    path.write_bytes(bytes(len(right)))
    (model,) = models_called("firefox/en-de")
    pull(model, lambda what, done: None)
    assert path.read_bytes() == right


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"[]", b'{"models": []}', b'{"baseUrl": "ftp://x", "models": {"en-de": [{"files": {"model": {"path": "a"}}}]}}',
     b'{"baseUrl": "http://x", "models": {"en-de": [{"files": {"model": {"path": "../model.a.bin.gz"}}}]}}', b"\xff"],
)  # fmt: skip
def test_a_catalogue_that_is_no_catalogue_is_named(catalogue, answer):
    catalogue.answer = answer
    with pytest.raises(DownloadError, match=r"the catalogue at http://127.0.0.1:\d+/models.json is not readable"):
        fetched()


def test_a_pair_nobody_has_and_a_catalogue_that_is_down(catalogue, monkeypatch):
    with pytest.raises(ModelError, match="has no model en-haw"):
        fetched("firefox/en-haw")
    catalogue.server.shutdown()
    catalogue.server.server_close()
    with pytest.raises(HubUnreachableError, match="connect and run this again"):
        resolve_model(ModelRef("firefox/en-de"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE forbids"):
        resolve_model(ModelRef("firefox/en-de"))


def test_an_installed_package_serves_its_pair_without_a_download(catalogue):
    assert next(resolve_model(ModelRef("firefox/en-pt")).glob("model*.bin")).name == "model.enpt.intgemm.alphas.bin"
    assert catalogue.asked == []


class RemoteSettings:
    """Serves records of Remote Settings, one for each file, packed with Zstandard."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.records = catalogue, list[dict[str, Any]]()
        catalogue.files["/v1/"] = json.dumps(
            {"capabilities": {"attachments": {"base_url": f"{catalogue.base}/a/"}}}
        ).encode()

    @property
    def url(self) -> str:
        place = "/v1/buckets/main/collections/translations-models-v2/records"
        self.catalogue.files[place] = json.dumps({"data": self.records}).encode()
        return self.catalogue.base + place

    def add(self, folder: Path, version: str, condition: str = "") -> None:
        for path in folder.iterdir():
            content, location = path.read_bytes(), f"main/{version}/{path.name}.zst"
            packed = self.catalogue.files[f"/a/{location}"] = zstd.compress(content)
            self.records.append({
                "name": path.name, "sourceLanguage": "en", "targetLanguage": "de", "version": version, "architecture": "tiny",
                "fileType": path.name.split(".")[0], "filter_expression": condition,
                "decompressedSize": len(content), "decompressedHash": hashlib.sha256(content).hexdigest(),
                "attachment": {"hash": hashlib.sha256(packed).hexdigest(), "size": len(packed), "location": location,
                               "filename": f"{path.name}.zst", "mimetype": "application/zstd"},
            })  # fmt: skip


@pytest.fixture
def settings(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteSettings:
    served = RemoteSettings(catalogue)
    for version, condition, floats in (
        ("2.0", "", False),
        ("10.1", "", True),
        ("11.0a1", "env.channel == 'nightly'", False),
    ):
        write_student(tmp_path / version, pair="ende", floats=floats)
        served.add(tmp_path / version, version, condition)
    monkeypatch.setenv(VARIABLE, served.url)
    return served


def test_the_newest_model_of_remote_settings_that_is_for_everybody(settings, tmp_path):
    folder = fetched()
    for path in (tmp_path / "10.1").iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert MarianModel.load(folder, NmtConfig(max_tokens=8)).translate("hello")
    assert fetched() == folder
    with pytest.raises(ModelError, match="has no model en-haw"):
        fetched("firefox/en-haw")


def test_a_file_of_remote_settings_with_another_hash_is_refused(settings):
    place = next(path for path in settings.catalogue.files if "/10.1/vocab." in path)
    for wrong, message in ((b"damaged", "arrived damaged"), (zstd.compress(b"other"), "the catalogue lists")):
        settings.catalogue.files[place] = wrong
        with pytest.raises(DownloadError, match=message):
            fetched()
        assert cached_student("firefox/en-de") is None


def test_without_zstandard_the_package_is_named(settings, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DownloadError, match="pip install backports-zstd"):
        fetched()


@pytest.mark.parametrize(
    "change", [{"name": "../x.bin"}, {"decompressedSize": "1"}, {"attachment": {}}, {"version": None}]
)
def test_records_that_are_none_are_named(settings, change):
    for record in settings.records:
        record.update(change)
    assert settings.url
    with pytest.raises(DownloadError, match="records is not readable"):
        fetched()


def test_names():
    assert [is_student(name) for name in ("firefox/en-de", "firefox/zh_hant-en", "firefox/en-pt-tiny", "firefox/x", "a/b")] == [
        True, True, False, False, False,
    ]  # fmt: skip
