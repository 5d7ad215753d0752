"""A manifest: a text file that names recordings, one a line."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.apps.cli import standard_input
from pipeline.audio.remote import RemoteFile, remote_file
from pipeline.errors import UsageError
from pipeline.names import STANDARD_OUTPUT

# How many wrong lines one message names.
_NAMED = 10


def read_manifest(path: Path) -> list[Path | RemoteFile]:
    """The recordings and folders that a manifest names, in its order; URLs are not checked yet.

    Empty lines and lines that begin with # are skipped. A relative path counts from the manifest's folder. The text is
    UTF-8, with or without a byte order mark; names that are not keep their bytes. "-" is standard input, whose paths count
    from the current folder.

    Raises:
        UsageError: the manifest cannot be read, names nothing, or has lines that name no file or folder.
    """
    if path == STANDARD_OUTPUT:  # the same "-"
        content, folder, name = standard_input().read(), Path(), "standard input"
    else:
        try:
            content, folder, name = path.read_bytes(), path.parent, str(path)
        except OSError as error:
            raise UsageError(f"the manifest {path} cannot be read ({error.strerror}); give a text file") from error
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    found: list[Path | RemoteFile] = []
    wrong = []
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if (remote := remote_file(entry)) is not None:
            found.append(remote)
            continue
        recording = folder / os.path.expanduser(entry)
        if "\0" in entry or not os.path.exists(recording):
            wrong.append(f"line {number}: no such file: {entry}")
        found.append(recording)
    if wrong:
        rest = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise UsageError(f"{name}: {'; '.join(wrong[:_NAMED])}{rest}; correct these lines, or begin them with #")
    if not found:
        raise UsageError(f"{name} names no recording; give one path a line")
    return found
