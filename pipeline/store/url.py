"""Fetch a file by its URL: go on where an earlier download ended, and check the hash where it is known."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from ..errors import DownloadError, HubUnreachableError, first_line
from .cache import check_room, digest_of, locked, megabytes, writable
from .catalogue import MOST_BYTES
from .known import KnownFile
from .packages import assets, verified
from .progress import Progress

_ATTEMPTS = 3
_TIMEOUT_S = 30
_BLOCK = 1 << 16


def fetched_to(file: KnownFile) -> Path:
    """The path at which a file with a URL is kept, whether it is there or not."""
    return assets() / file.name


def fetch_known_file(file: KnownFile, progress: Progress) -> Path:
    """Fetch a file from its URL, if it is not there; its hash is checked.

    Raises:
        DownloadError: it cannot be fetched or written, or is another one than published.
    """
    path, what = fetched_to(file), f"fetching {file.url}, {megabytes(file.size)}"
    with writable(path.parent, "what arrived is kept; "):
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(f"{path.name}.lock"), f"fetches {file.name}", progress):
            if verified(path, file):
                return path
            check_online(file.name)
            check_room(file.name, file.size, path.parent)
            part = path.with_name(f".{path.name}.part")
            fetch(file.url, part, lambda done: progress(what, done))
            if (digest := digest_of(part)) != file.sha256:
                part.unlink()
                raise DownloadError(
                    f"{file.url} arrived with the hash {digest}, and not {file.sha256}; nothing of it is kept; run this again"
                )
            os.replace(part, path)
    return path


def check_online(name: str) -> None:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise HubUnreachableError(
            f"{name} is not in the cache and HF_HUB_OFFLINE forbids fetching it. Unset it and run this again"
        )


def fetch(url: str, path: Path, arrived: Callable[[float], None]) -> None:
    """Fetch a file to ``path``, going on after what is there."""
    reason = "the connection ended early"
    for attempt in range(_ATTEMPTS):
        time.sleep(attempt * 0.5)
        try:
            if _receive(url, path, arrived):
                return
        except urllib.error.HTTPError as error:
            if error.code == 416:  # everything is there
                return
            if error.code < 500 and error.code not in (408, 429):
                raise DownloadError(f"{url} cannot be fetched: {error.code} {error.reason}; try again later") from error
            reason = f"{error.code} {error.reason}"
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = first_line(error)
    raise HubUnreachableError(
        f"{url} cannot be fetched ({reason}). What arrived is kept: connect and run this again to resume"
    )


def _receive(url: str, path: Path, arrived: Callable[[float], None]) -> bool:
    """Append what one connection gives; whether it was complete. ``arrived`` is told which part of the file is there."""
    have = path.stat().st_size if path.exists() else 0
    # No compression on the way: sizes are those of the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
        goes_on, length = answer.status == 206, answer.headers.get("Content-Length")
        size = have if goes_on else 0
        whole = None if length is None else size + int(length)
        with path.open("ab" if goes_on else "wb") as target:
            while block := answer.read(_BLOCK):
                target.write(block)
                size += len(block)
                arrived(size / whole if whole else 0.0)
                if size > MOST_BYTES:
                    raise DownloadError(f"{url} has more than {megabytes(MOST_BYTES)}; it is not a file of a model")
    return whole is None or size >= whole
