"""Fetch one file from the hub into the cache: resume partial downloads, and rename only after the hash is verified.

huggingface_hub's own download does not verify hashes, and since release 1 it restarts a file that an earlier run left
unfinished.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ..errors import DownloadError, first_line
from .cache import digest_of, megabytes
from .listing import Listing, RemoteFile, busy, refused, size_of

_ATTEMPTS = 3
"""Consecutive connections without new data before a download is given up."""
_PAUSE_S = 0.5
"""Pause before the second of them; doubled before the third."""
_BLOCK = 1 << 16
_NOT_KEPT = "It was damaged or replaced in transit, and nothing of it is kept; run this again"


class _ConnectionLostError(Exception):
    """The connection failed during a download; the message is the reason."""


def fetch_blob(listing: Listing, file: RemoteFile, blobs: Path, arrived: Callable[[int], None]) -> None:
    """Fetch one file to ``blobs/<digest>``; ``arrived`` receives the number of bytes on the disk so far.

    Raises:
        DownloadError: the hub cannot be reached or refuses, or the file's size or hash is not the listed one.
        OSError: the file cannot be written.
    """
    path = file.unfinished(blobs)
    resumed = size_of(path) > 0
    _download(listing, file, path, arrived)
    if resumed and digest_of(path, file.digest) != file.digest:
        # The partial file of an earlier run may have had other content: fetch it once more from the start.
        path.unlink()
        _download(listing, file, path, arrived)
    if (digest := digest_of(path, file.digest)) != file.digest:
        path.unlink()
        raise DownloadError(
            f"{file.name} of {listing.model} arrived with the hash {digest}; the hub lists {file.digest}. {_NOT_KEPT}"
        )
    os.replace(path, blobs / file.digest)


def _download(listing: Listing, file: RemoteFile, path: Path, arrived: Callable[[int], None]) -> None:
    """Download until ``path`` has the file's size, reconnecting as long as connections bring new data."""
    from huggingface_hub.errors import HfHubHTTPError

    failures = 0
    path.touch()
    most = size_of(path)  # a server without range support restarts each time
    while (had := size_of(path)) < file.size:
        reason = "the connection ended early"
        try:
            _receive(listing, file, path, arrived)
        except _ConnectionLostError as error:
            reason = str(error)
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status == 416:  # the requested range starts after the end of the file
                break
            if not busy(status):
                raise refused(f"{file.name} of {listing.model}", error) from error
            reason = first_line(error)
        failures = 0 if size_of(path) > most else failures + 1
        most = max(most, size_of(path))
        if failures == _ATTEMPTS:
            raise DownloadError(
                f"fetching {file.name} of {listing.model} stopped at {megabytes(had)} of {megabytes(file.size)} "
                f"({reason}). What arrived is kept; run this again to resume"
            )
        time.sleep(failures * _PAUSE_S)
    if (size := size_of(path)) != file.size:
        path.unlink()
        raise DownloadError(
            f"{file.name} of {listing.model} has {size:,} bytes; the hub lists {file.size:,}. {_NOT_KEPT}"
        )


def _receive(listing: Listing, file: RemoteFile, path: Path, arrived: Callable[[int], None]) -> None:
    """Append the data of one connection to ``path``."""
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
    """Request a file from byte ``start``: whether the response starts there (else at 0), and its blocks.

    Raises:
        HfHubHTTPError: the server answered with an error.
        _ConnectionLostError: any other network failure; iterating over the blocks may raise it too.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    # No compression: sizes and ranges are those of the file.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    session: Any = get_session()  # a requests session before huggingface_hub 1, an httpx client since
    modern = callable(session.stream)  # in requests, ``stream`` is a setting
    with ExitStack() as stack:
        try:
            asked = {"headers": headers, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
            opened = session.stream("GET", url, **asked) if modern else session.get(url, stream=True, **asked)
            response = stack.enter_context(opened)
            hf_raise_for_status(response)
        except HfHubHTTPError:
            raise
        except Exception as error:  # the HTTP clients' errors have no common base class
            raise _ConnectionLostError(first_line(error)) from error
        blocks = response.iter_bytes(_BLOCK) if modern else response.iter_content(_BLOCK)
        yield response.status_code == 206, _translate_errors(blocks)


def _translate_errors(blocks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from blocks
    except Exception as error:  # no common base class, as above
        raise _ConnectionLostError(first_line(error)) from error
