"""Which files of a repository and which model of a catalogue are taken, and whether there is room, without a hub."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ModelError, NoSpaceError
from pipeline.store import cache
from pipeline.store.cache import megabytes
from pipeline.store.catalogue import best_in_models_json, best_in_records
from pipeline.store.known import FileSet
from pipeline.store.listing import Listing, RemoteFile

HASH = "a" * 64


def file(name: str, size: int = 100) -> RemoteFile:
    return RemoteFile(name, size, f"{name}-digest")


def chosen(blobs: Path, sizes: dict[str, int], *choices: FileSet) -> list[str]:
    listing = Listing("owner/name", None, "c", tuple(file(name, size) for name, size in sizes.items()))
    return [each.name for each in listing.choose(choices, blobs)]


SIZES = {"config.json": 1, "a.bin": 500, "b.bin": 300, "b.txt": 50, "c.bin": 10}
A, B = FileSet(("config.json", "a.*")), FileSet(("config.json", "b.bin"), ("b.txt", "none"))
C = FileSet(("c.bin",), rank=1)


def test_the_set_with_the_fewest_bytes_to_fetch_is_taken_of_the_lowest_rank(tmp_path):
    assert chosen(tmp_path, SIZES, A, B, C) == ["config.json", "b.bin", "b.txt"]
    (tmp_path / "a.bin-digest").touch()  # it is there
    assert chosen(tmp_path, SIZES, A, B, C) == ["config.json", "a.bin"]
    assert chosen(tmp_path, SIZES, C, FileSet(("gone.bin",))) == ["c.bin"]
    assert chosen(tmp_path, {"c.bin": 1, "d.bin": 1}, C, FileSet(("d.bin",), rank=1)) == ["c.bin"]


def test_what_a_repository_lacks_most_nearly_is_named(tmp_path):
    with pytest.raises(ModelError, match="has no x.bin; its largest files are a.bin, b.bin, b.txt: "):
        chosen(tmp_path, SIZES, FileSet(("x.bin", "config.json")), FileSet(("x.bin", "y.bin")))


@pytest.mark.parametrize(
    ("there", "unfinished", "to_come"), [(False, None, 100), (False, 30, 70), (False, 130, 0), (True, None, 0)]
)
def test_bytes_are_to_come_that_are_not_in_the_cache(there, unfinished, to_come, tmp_path):
    one = file("a.bin")
    if there:
        (tmp_path / one.digest).touch()
    if unfinished is not None:
        one.unfinished(tmp_path).write_bytes(bytes(unfinished))
    assert one.to_come(tmp_path) == to_come


@pytest.mark.parametrize(("size", "fits"), [(999, True), (1_000, True), (1_001, False)])
def test_a_model_needs_room_on_the_disk(size, fits, tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")(1_000)
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda folder: usage)
    if fits:
        cache.check_room("a model", size, tmp_path)
    else:
        with pytest.raises(NoSpaceError, match="a model takes 0.0 MB"):
            cache.check_room("a model", size, tmp_path)


@pytest.mark.parametrize(("size", "shown"), [(40_000, "0.0 MB"), (9_949_999, "9.9 MB"), (9_950_000, "10 MB")])
def test_a_size_has_a_digit_after_the_point_while_it_is_small(size, shown):
    assert megabytes(size) == shown


def entry(status: str | None, architecture: str, name: str) -> dict[str, Any]:
    """Of a models.json."""
    model = {"path": f"x/model.{name}.bin.gz", "uncompressedSize": 5, "uncompressedHash": HASH}
    files = {"model": model, "vocab": {"path": f"x/vocab.{name}.spm.gz"}, "lexicalShortlist": None}
    return {"architecture": architecture, "files": files} | ({"releaseStatus": status} if status else {})


@pytest.mark.parametrize(
    ("entries", "best"),
    [
        ([], None),
        ([entry("Nightly", "base", "a"), entry("Release", "tiny", "b")], "b"),
        ([entry("Release", "tiny", "a"), entry("Release", "base", "b"), entry("Release", "base-memory", "c")], "c"),
        ([entry("Release Android", "tiny", "a"), entry("Release Desktop", "tiny", "b")], "b"),
        ([entry(None, "base", "a"), entry("Nightly", "tiny", "b")], "b"),
        ([entry("Release", "other", "a"), entry("Release", "tiny", "b")], "b"),
    ],
)
def test_a_released_model_is_taken_before_a_more_exact_one(entries, best):
    found = best_in_models_json("en-de", {"baseUrl": "https://a.example/", "models": {"en-de": entries, "en-fr": [1]}})
    expected = [f"model.{best}.bin", f"vocab.{best}.spm"] if best is not None else []
    assert [each.name for each in found] == expected
    assert all(each.url.startswith("https://a.example/x/") for each in found)


def record(version: str, architecture: str = "tiny", kind: str = "model", **more: Any) -> dict[str, Any]:
    """Of Remote Settings."""
    return {
        "name": f"{kind}.{version.replace('.', '-')}.{architecture}.bin",
        "fromLang": "en",
        "toLang": "zh-Hans",
        "version": version,
        "architecture": architecture,
        "fileType": kind,
        "attachment": {"location": "x", "mimetype": "", "size": 5, "hash": HASH},
    } | more


@pytest.mark.parametrize(
    ("records", "best"),
    [
        ([], []),
        ([record("2.0"), record("10.0"), record("9.1")], ["model.10-0.tiny.bin"]),
        ([record("2.0", "tiny"), record("2.0", "base")], ["model.2-0.base.bin"]),
        ([record("2.0", "base"), record("3.0", "tiny")], ["model.3-0.tiny.bin"]),
        ([record("2.0"), record("3.0", filter_expression="env.channel == 'nightly'")], ["model.2-0.tiny.bin"]),
        ([record("2.0"), record("3.0", kind="lex")], ["model.2-0.tiny.bin"]),
        ([record("2.0", kind="lex"), record("2.0")], ["model.2-0.tiny.bin", "lex.2-0.tiny.bin"]),
        ([record("2.0"), record("3.0", toLang="de")], ["model.2-0.tiny.bin"]),
        ([record("2.0"), record("2.0", kind="qualityModel")], ["model.2-0.tiny.bin"]),
        ([record("2.0"), record("3.0", sourceLanguage="en", targetLanguage="zh_hans")], ["model.3-0.tiny.bin"]),
        ([record("2.0"), record("3.0", toLang="zh-Hant")], ["model.2-0.tiny.bin"]),
    ],
)
def test_the_newest_whole_model_for_everybody_is_taken(records, best):
    found = best_in_records("en-zh", {"data": records}, "https://a.example/")
    assert [each.name for each in found] == best
    assert all(each.url == "https://a.example/x" for each in found)
