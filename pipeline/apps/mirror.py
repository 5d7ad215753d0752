"""Output folders on other machines: files are written in a folder of this machine and copied when they are complete.

The journal of an unfinished recording is copied, too, so that a later run resumes it anywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline.audio.remote import RemoteFile
from pipeline.errors import PipelineError, UsageError


def workspace(folder: RemoteFile) -> Path:
    """The folder of this machine that stands for a remote one: always the same, so that locks and journals work.

    Raises:
        UsageError: it cannot be created.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    mark = hashlib.blake2b(folder.url.rstrip("/").encode(), digest_size=12).hexdigest()
    path = Path(tempfile.gettempdir()) / f"speech-translation-{user}" / mark
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"cannot create the folder {path} ({error.strerror}); set TMPDIR to another one") from error
    return path


def fetch(folder: RemoteFile, paths: Iterable[Path], journal: Path) -> None:
    """Copy what exists of a recording's outputs and journal from ``folder``, unless it is here: this machine was last.

    Raises:
        UsageError, AudioError: see ``RemoteFile.open``.
    """
    if journal.is_file():
        return
    for path in (*paths, journal):
        content = (folder / path.name).read()
        if content is not None:
            path.write_bytes(content)
        else:
            path.unlink(missing_ok=True)


def deliver(folder: RemoteFile, paths: Iterable[Path], journal: Path) -> None:
    """Copy finished outputs to ``folder``, and remove them here.

    Raises:
        UsageError, AudioError: see ``RemoteFile.open``; what was written stays here.
    """
    paths = [path for path in paths if path.is_file()]
    for path in paths:
        (folder / path.name).write(path.read_bytes())
    (folder / journal.name).remove()
    forget(paths)


def forget(paths: Iterable[Path]) -> None:
    """Remove the copies that ``fetch`` made."""
    for path in paths:
        path.unlink(missing_ok=True)


def keep(folder: RemoteFile, journal: Path) -> None:
    """Copy the journal of an unfinished recording to ``folder``, as far as possible."""
    with contextlib.suppress(PipelineError, OSError):
        (folder / journal.name).write(journal.read_bytes())
