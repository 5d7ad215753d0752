"""Output folders on other machines: files are written in a folder of this machine and copied when they are complete.

The journal of an unfinished recording is there from its beginning, and is copied when the run is interrupted, so that a
later run resumes it anywhere. When it is gone, the recording is finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..audio.remote import RemoteFile
from ..errors import PipelineError, UsageError


def workspace(folder: RemoteFile) -> Path:
    """The folder of this machine that stands for a remote one: always the same, so that locks and journals work."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    top = Path(tempfile.gettempdir()) / f"speech-translation-{user}"
    path = top / hashlib.blake2b(folder.url.rstrip("/").encode(), digest_size=12).hexdigest()
    with _on_disk():
        top.mkdir(exist_ok=True, mode=0o700)
        owner = top.lstat().st_uid
        path.mkdir(exist_ok=True, mode=0o700)
    if top.is_symlink() or (hasattr(os, "getuid") and owner != user):  # others may write to the folder above it
        raise UsageError(f"{top} is a link or belongs to another user; set TMPDIR to a folder of your own")
    return path


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    """Turn errors of this machine's file system into this package's."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot use {error.filename} ({error.strerror}); set TMPDIR to a folder that can be written to and has room"
        ) from error


def fetch(folder: RemoteFile, paths: Iterable[Path], journal: Path) -> None:
    """Copy what exists of a recording's outputs and journal from ``folder``, unless this machine was the last to write them.

    It was if its journal continues the one in ``folder``. Otherwise another machine has continued or finished the recording.
    """
    kept = (folder / journal.name).read()
    with _on_disk():
        if kept is not None and journal.is_file() and journal.read_bytes().startswith(kept):
            return
    for path, content in ((journal, kept), *((path, (folder / path.name).read()) for path in paths)):
        with _on_disk():
            if content is not None:
                path.write_bytes(content)
            else:
                path.unlink(missing_ok=True)


def deliver(folder: RemoteFile, paths: Iterable[Path], journal: Path) -> None:
    """Copy finished outputs to ``folder``, and remove them here."""
    paths = [path for path in paths if path.is_file()]
    for path in paths:
        with _on_disk():
            content = path.read_bytes()
        (folder / path.name).write(content)
    (folder / journal.name).remove()
    forget(paths)


def forget(paths: Iterable[Path]) -> None:
    """Remove the copies that ``fetch`` made."""
    with _on_disk():
        for path in paths:
            path.unlink(missing_ok=True)


def keep(folder: RemoteFile, journal: Path) -> None:
    """Copy the journal of an unfinished recording to ``folder``, as far as possible; of one that is not begun, remove it."""
    with contextlib.suppress(PipelineError, OSError):
        if journal.is_file():
            (folder / journal.name).write(journal.read_bytes())
        else:
            (folder / journal.name).remove()
