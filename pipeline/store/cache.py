"""The caches on the disk: where a repository is, hashes, a lock between programs, and errors where they are unreadable, not writable, or full."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DownloadError, NoSpaceError

if TYPE_CHECKING:
    from .progress import Progress
    from .resolve import ModelRef

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def translate_read_errors(place: Path) -> Iterator[None]:
    """Raise OSErrors from reading the cache as DownloadError."""
    try:
        yield
    except OSError as error:
        raise DownloadError(
            f"the cache at {place} cannot be read: {error.strerror or error}; give the right to read it, or set HF_HOME to "
            "another folder"
        ) from error


@contextmanager
def writable(folder: Path, note: str = "") -> Iterator[None]:
    """Raise OSErrors from writing to the cache as DownloadError. ``note`` comes before the advice in its message."""
    try:
        yield
    except OSError as error:
        raise (NoSpaceError if error.errno in _FULL else DownloadError)(
            f"cannot write to the cache at {folder}: {error.strerror or error}; {note}make room or give the right to write, "
            "or set HF_HOME to another folder"
        ) from error


def check_room(model: str, size: int, folder: Path) -> None:
    """Raise NoSpaceError if the disk of ``folder`` has less than ``size`` bytes free.

    Raises:
        OSError: there is no such folder.
    """
    if size > (free := shutil.disk_usage(folder).free):
        raise NoSpaceError(
            f"{model} takes {megabytes(size)} and the disk of {folder} has {megabytes(free)} free; make room, or set HF_HOME "
            "to a folder on another disk"
        )


@contextmanager
def locked(lock: Path, doing: str, progress: Progress) -> Iterator[None]:
    """Hold a lock between programs. If another program has it, tell ``progress`` what that one is ``doing``."""
    from huggingface_hub.utils import WeakFileLock

    with ExitStack() as stack:
        try:
            stack.enter_context(WeakFileLock(lock, timeout=1.0))
        except TimeoutError:
            progress(f"waiting for another program, which {doing}", 0.0)
            stack.enter_context(WeakFileLock(lock))
        yield


def digest_of(path: Path, like: str = "") -> str:
    """A file's hash in hex: SHA-256, or git's SHA-1 of a blob if ``like`` has 40 digits."""
    if len(like) != 40:
        hasher = hashlib.sha256()
    else:
        # Git hashes a header with the size first (git-scm.com/book, "Git Objects").
        hasher = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest()


def megabytes(size: int) -> str:
    """A size for display, such as "445 MB"."""
    return f"{size / 1e6:,.0f} MB" if size >= 9_950_000 else f"{size / 1e6:.1f} MB"


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
