"""One file from the hub into the cache: it goes on where it was cut, and has its name only once its hash is right.

huggingface_hub's own download does not look at hashes, and since release 1 begins anew with a file that an earlier run
left unfinished.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import DownloadError, first_line
from pipeline.store.listing import Listing, RemoteFile, busy, refused, size_of

_ATTEMPTS = 3
"""Connections in a row that may bring nothing before a download is given up."""
_PAUSE_S = 0.5
"""Before the second of them, and twice that before the third."""
_BLOCK = 1 << 16
_NOT_KEPT = "It was damaged or replaced on the way, and nothing of it is kept; run this again"


class _ConnectionLostError(Exception):
    """The network failed in the middle; says how."""


def fetch_blob(listing: Listing, file: RemoteFile, blobs: Path, arrived: Callable[[int], None]) -> None:
    """Fetch one file to ``blobs/<digest>``; ``arrived`` is told its bytes on the disk so far.

    Raises:
        DownloadError: the hub cannot be reached or refuses, or what arrived is not what was listed.
        OSError: it cannot be written.
    """
    path = file.unfinished(blobs)
    resumed = size_of(path) > 0
    _grow(listing, file, path, arrived)
    if resumed and digest_of(path, file.digest) != file.digest:
        # What an earlier run left may have been of another kind: once more, from the start.
        path.unlink()
        _grow(listing, file, path, arrived)
    if (found := digest_of(path, file.digest)) != file.digest:
        path.unlink()
        raise DownloadError(
            f"{file.name} of {listing.model} arrived with the hash {found}; the hub lists {file.digest}. {_NOT_KEPT}"
        )
    os.replace(path, blobs / file.digest)


def digest_of(path: Path, like: str = "") -> str:
    """A file's hash, hex: SHA-256, or git's SHA-1 of it as a blob if ``like`` has 40 digits."""
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
    """For people: "445 MB"."""
    return f"{size / 1e6:,.0f} MB" if size >= 9_950_000 else f"{size / 1e6:.1f} MB"


def _grow(listing: Listing, file: RemoteFile, path: Path, arrived: Callable[[int], None]) -> None:
    """Let ``path`` grow to the file's size, over as many connections as it takes while each brings something."""
    from huggingface_hub.errors import HfHubHTTPError

    barren = 0
    path.touch()
    most = size_of(path)  # a server that knows no ranges begins again each time
    while (had := size_of(path)) < file.size:
        reason = "the connection ended early"
        try:
            _receive(listing, file, path, arrived)
        except _ConnectionLostError as error:
            reason = str(error)
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status == 416:  # the range asked for begins behind the end
                break
            if not busy(status):
                raise refused(f"{file.name} of {listing.model}", error) from error
            reason = first_line(error)
        barren = 0 if size_of(path) > most else barren + 1
        most = max(most, size_of(path))
        if barren == _ATTEMPTS:
            raise DownloadError(
                f"fetching {file.name} of {listing.model} stopped at {megabytes(had)} of {megabytes(file.size)} "
                f"({reason}). What arrived is kept; run this again and it goes on from there"
            )
        time.sleep(barren * _PAUSE_S)
    if (size := size_of(path)) != file.size:
        path.unlink()
        raise DownloadError(
            f"{file.name} of {listing.model} has {size:,} bytes; the hub lists {file.size:,}. {_NOT_KEPT}"
        )


def _receive(listing: Listing, file: RemoteFile, path: Path, arrived: Callable[[int], None]) -> None:
    """Append what one connection brings."""
    from huggingface_hub import hf_hub_url

    url = hf_hub_url(listing.model, file.name, revision=listing.commit)
    size = size_of(path)
    with _connection(url, size) as (goes_on, blocks), path.open("ab" if goes_on else "wb") as target:
        size = size if goes_on else 0
        for block in blocks:
            target.write(block)
            size += len(block)
            arrived(size)
            if size > file.size:
                return


@contextmanager
def _connection(url: str, start: int) -> Iterator[tuple[bool, Iterator[bytes]]]:
    """Ask for a file from byte ``start`` on: whether the answer begins there (or at 0), and its blocks.

    Raises:
        HfHubHTTPError: the server answered with an error.
        _ConnectionLostError: anything else went wrong on the way; the blocks raise it too.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    # Not compressed on the way: sizes and ranges are those of the file.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    session: Any = get_session()  # requests' before huggingface_hub 1, httpx's after
    modern = callable(session.stream)  # requests has a setting of that name
    with ExitStack() as stack:
        try:
            asked = {"headers": headers, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
            opened = session.stream("GET", url, **asked) if modern else session.get(url, stream=True, **asked)
            response = stack.enter_context(opened)
            hf_raise_for_status(response)
        except HfHubHTTPError:
            raise
        except Exception as error:  # the HTTP clients' errors share no base
            raise _ConnectionLostError(first_line(error)) from error
        blocks = response.iter_bytes(_BLOCK) if modern else response.iter_content(_BLOCK)
        yield response.status_code == 206, _translated(blocks)


def _translated(blocks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from blocks
    except Exception as error:  # as above
        raise _ConnectionLostError(first_line(error)) from error
