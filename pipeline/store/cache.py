"""The caches on the disk: a lock between programs, and errors where they are unreadable, not writable, or full."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import DownloadError, NoSpaceError
from .progress import Progress
from .transfer import megabytes

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
