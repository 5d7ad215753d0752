"""Models by name, with no hub to be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ModelError
from pipeline.hub import resolve_model


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path), None, ["config.json"]) == tmp_path


def test_a_file_and_a_missing_directory_are_said(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(ModelError, match="is a file; give the directory"):
        resolve_model(str(tmp_path / "model.bin"), None, [])
    for name in ("./nowhere", "nowhere", "/a/b/c", "~/model"):
        with pytest.raises(ModelError, match="no such model directory"):
            resolve_model(name, None, [])


def test_what_is_no_hub_id_is_said() -> None:
    with pytest.raises(ModelError, match="neither a directory nor a hub id"):
        resolve_model("own er/na me", None, ["config.json"])


def cache(folder: Path, files: list[str]) -> Path:
    """A hub cache that holds one snapshot, laid out as huggingface_hub does it."""
    snapshot = folder / "models--owner--name" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (folder / "models--owner--name" / "refs").mkdir()
    (folder / "models--owner--name" / "refs" / "main").write_text("a" * 40)
    for name in files:
        (snapshot / name).touch()
    return snapshot


def test_what_is_cached_needs_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = cache(tmp_path, ["config.json", "model.bin"])
    assert resolve_model("owner/name", None, ["config.json", "model.*"]) == snapshot
