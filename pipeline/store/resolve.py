"""From a model's name to a directory: one that exists, a snapshot in the hub's cache, installed packages, or the hub."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import DownloadError, ModelError, first_line
from pipeline.run.progress import Progress, progress_bar
from pipeline.store.known import KnownModel, known_model
from pipeline.store.listing import FileSet, Listing, RemoteFile, list_files
from pipeline.store.lock import held
from pipeline.store.packages import model_from_packages, whole
from pipeline.store.transfer import digest_of, fetch_blob, megabytes


def resolve_model(model: str, revision: str | None, *choices: FileSet, progress: Progress | None = None) -> Path:
    """The directory of a model: ``model`` itself if it is one, else a snapshot of the hub repository of that id.

    Any of ``choices`` will do. What is cached is used without a connection. A known model (``pipeline.store.known``) is
    taken from installed packages next, and used only with the hashes that are known of it. Otherwise that choice is fetched
    which takes the fewest bytes, with a progress bar on standard error if no ``progress`` is given.

    Raises:
        ModelError: a path that is no directory, not a hub id, or a repository that has none of the choices.
        DownloadError: not in the cache, and it cannot be fetched; or what is there is not the known model.
    """
    if progress is None:
        with progress_bar() as bar:
            return resolve_model(model, revision, *choices, progress=bar)
    if (directory := local_directory(model)) is not None:
        return directory
    known = known_model(model, revision)
    if known is not None:
        return _resolve_known(known, *choices, progress=progress)
    return cached_model(model, revision, *choices) or fetch_model(model, revision, *choices, progress=progress)


def _resolve_known(known: KnownModel, *choices: FileSet, progress: Progress) -> Path:
    """A model whose files are known: the hub's cache, then installed packages, then the hub."""
    cached = cached_model(known.hub_id, known.revision, *choices)
    if cached is not None and whole(cached, known):
        return cached
    if (installed := model_from_packages(known, progress)) is not None:
        return installed
    if cached is not None:
        raise DownloadError(
            f"{cached} does not hold the files of {known.hub_id} as they were published; fetch what is damaged again with: "
            f"python -m pipeline.models pull {known.size}"
        )
    return fetch_known(known, *choices, progress=progress)


def fetch_known(known: KnownModel, *choices: FileSet, progress: Progress) -> Path:
    """``fetch_model`` for a known model, whose files are compared with what is known of them.

    Raises:
        ModelError, DownloadError: see ``fetch_model``; the hub has other files.
    """
    try:
        fetched = fetch_model(known.hub_id, known.revision, *choices, progress=progress)
    except DownloadError as error:
        if not known.packages:
            raise
        raise type(error)(f"{error}. Or install the packages that carry it: {known.install}") from error
    if not whole(fetched, known):
        raise DownloadError(
            f"the hub has other files under {known.hub_id} at {known.revision[:12]} than were published there; set "
            "HF_ENDPOINT to another hub, or give a model directory"
        )
    return fetched


def local_directory(model: str) -> Path | None:
    """``model`` if it is a directory, None if it may be a hub id.

    Raises:
        ModelError: it is neither.
    """
    if os.path.isdir(model):  # Path's own tests raise for a name that is too long
        return Path(model)
    if os.path.exists(model):
        raise ModelError(f"{model} is a file; give the directory that holds the model")
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise ModelError(
            f"no such model directory: {model}; give an existing directory, or a hub id such as owner/name"
        )
    # Imported here: only real models need it, and it takes a while.
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise ModelError(f"{model} is neither a directory nor a hub id: {error}") from None
    return None


def repository_folder(model: str) -> Path:
    """Where the hub's cache keeps a repository, there or not."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")


def cached_commit(model: str, revision: str | None) -> str:
    """The commit of a revision, as far as the cache knows; a commit, or what it does not know, is given back."""
    from huggingface_hub import constants

    name = revision or constants.DEFAULT_REVISION
    reference = repository_folder(model) / "refs" / name
    with readable(reference):
        return reference.read_text(errors="replace").strip() if reference.is_file() else name


def cached_snapshot(model: str, revision: str | None) -> Path | None:
    """What the cache has of a repository at a revision, whole or not. It is named after the commit."""
    snapshot = repository_folder(model) / "snapshots" / cached_commit(model, revision)
    with readable(snapshot):
        return snapshot if snapshot.is_dir() else None


def cached_model(model: str, revision: str | None, *choices: FileSet) -> Path | None:
    """The snapshot in the cache, if one of ``choices`` is there with all its files."""
    snapshot = cached_snapshot(model, revision)
    # A download that was cut off leaves a snapshot with files missing.
    if snapshot is None:
        return None
    with readable(snapshot):
        return snapshot if any(not choice.missing_from(snapshot) for choice in choices) else None


def fetch_model(model: str, revision: str | None, *choices: FileSet, progress: Progress) -> Path:
    """Fetch one of ``choices`` of a repository into the hub's cache; the directory of its snapshot.

    Files that the cache has are not fetched again. One that was cut off goes on where it ended, in this run or a later
    one. What arrives is compared with the hub's size and hash before it gets its name.

    Raises:
        ModelError: the repository has none of the choices.
        DownloadError: the hub cannot be reached or refuses, the disk is full, or what arrived is not what was listed.
    """
    listing = list_files(model, revision)
    folder = repository_folder(model)
    blobs, lock = folder / "blobs", folder.parent / ".locks" / folder.name / "fetch.lock"
    with _disk_errors(folder):
        files = listing.choose(choices, blobs)
        snapshot = folder / "snapshots" / listing.commit
        links = ((snapshot / file.name, blobs / file.digest) for file in files)
        there = all(link.is_symlink() and blob.is_file() and link.samefile(blob) for link, blob in links)
        if there and listing.commit == cached_commit(model, revision):
            return snapshot  # nothing is to be written, which one who shares a cache may not have the right to
        blobs.mkdir(parents=True, exist_ok=True)
        lock.parent.mkdir(parents=True, exist_ok=True)
        # Two programs that start for the first time at once: the second waits and finds everything there.
        with held(lock, f"fetches {model}", progress):
            _fetch_blobs(listing, files, blobs, progress)
        return _link(listing, files)


def drop_damaged(snapshot: Path) -> list[str]:
    """Compare a snapshot's files with their hashes, and remove what differs so that it is fetched again; their names.

    A cache without links (Windows without the right to make them) does not know the hashes: nothing is compared there.
    """
    damaged = []
    with readable(snapshot):
        for path in sorted(snapshot.rglob("*")):
            if path.is_symlink() and len(digest := Path(os.readlink(path)).name) in (40, 64):
                blob = path.parent / os.readlink(path)
                if not blob.is_file() or digest_of(blob, digest) != digest:
                    with _disk_errors(path):
                        blob.unlink(missing_ok=True)
                        path.unlink()
                    damaged.append(path.relative_to(snapshot).as_posix())
    return damaged


def _fetch_blobs(listing: Listing, files: list[RemoteFile], blobs: Path, progress: Progress) -> None:
    # Two files of the same content are one blob.
    missing = list({file.digest: file for file in files if not (blobs / file.digest).exists()}.values())
    total = sum(file.size for file in missing)
    to_come = sum(file.to_come(blobs) for file in missing)
    if to_come > (free := shutil.disk_usage(blobs).free):
        raise DownloadError(
            f"{listing.model} takes {megabytes(to_come)} and the disk of {blobs} has {megabytes(free)} free; "
            "make room, or set HF_HOME to a folder on another disk"
        )
    before = 0
    for file in missing:

        def arrived(size: int, before: int = before) -> None:
            progress(f"fetching {listing.model}, {megabytes(total)}", (before + size) / total)

        fetch_blob(listing, file, blobs, arrived)
        before += file.size


def _link(listing: Listing, files: list[RemoteFile]) -> Path:
    """Let the hub's client arrange a snapshot of what is in the cache: it knows the layout, with links or without."""
    from huggingface_hub import snapshot_download

    names = [file.name for file in files]
    try:
        with _no_bars():
            snapshot = Path(snapshot_download(listing.model, revision=listing.revision, allow_patterns=names))
    except Exception as error:  # the HTTP clients' errors share no base
        if isinstance(error, OSError) and error.errno:
            raise
        raise DownloadError(
            f"{listing.model} is fetched, but the hub failed when it was to be arranged ({first_line(error)}); run this again"
        ) from error
    for file in files:
        path = snapshot / file.name
        # Made by that client from the hub's answer of just now, so it may be another file than the one that was checked,
        # or of an older snapshot where the hub did not answer.
        whole = path.is_file() and (
            path.samefile(repository_folder(listing.model) / "blobs" / file.digest)
            or digest_of(path, file.digest) == file.digest
        )
        if snapshot.name != listing.commit or not whole:
            raise DownloadError(f"{listing.model} changed on the hub while it was fetched; run this again")
    return snapshot


@contextmanager
def _no_bars() -> Iterator[None]:
    """The hub's client draws no bars; what the process or its environment says of them holds again afterwards."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled() or "HF_HUB_DISABLE_PROGRESS_BARS" in os.environ:
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def readable(place: Path) -> Iterator[None]:
    """Say where the cache cannot be read, as a DownloadError."""
    try:
        yield
    except OSError as error:
        raise DownloadError(
            f"the cache at {place} cannot be read: {error.strerror or error}; give the right to read it, or set HF_HOME to "
            "another folder"
        ) from error


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DownloadError(
            f"cannot write to the cache at {folder}: {error.strerror or error}. What arrived is kept; make room or give "
            "the right to write, or set HF_HOME to another folder"
        ) from error
