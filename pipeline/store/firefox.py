"""Firefox Translations' students by name (firefox/en-de): from Mozilla's catalogue into the cache, checked."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DownloadError, HubUnreachableError, ModelError, first_line
from pipeline.run.progress import Progress
from pipeline.store.cache import check_room, writable
from pipeline.store.lock import held
from pipeline.store.packages import assets
from pipeline.store.transfer import digest_of, megabytes

PREFIX = "firefox/"
CATALOGUE = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data/db/models.json"
VARIABLE = "FIREFOX_MODELS_URL"
"""Environment variable with the address of another catalogue."""
_MANIFEST = "files.json"
_NAME = re.compile(r"firefox/[a-z]{2,3}(?:_[a-z]+)?-[a-z]{2,3}(?:_[a-z]+)?")
_FILE = re.compile(r"((?:model|vocab|srcvocab|trgvocab|lex)\.[\w.-]+\.(?:bin|spm))\.gz")
# Most preferred first. Others, and none, come last.
_STATUSES = ("Release", "Release Desktop", "Release Android", "Nightly")
_ARCHITECTURES = ("base-memory", "base", "tiny")
_ATTEMPTS = 3
_TIMEOUT_S = 30
_BLOCK = 1 << 16
_MOST_BYTES = 1 << 29
"""Of the catalogue, and of a file when it is unpacked."""


@dataclass(frozen=True)
class CatalogueEntry:
    """A model of the catalogue."""

    name: str
    urls: tuple[str, ...]
    """Of its files, packed with gzip; the first one is the model."""
    size: int
    """Of the unpacked model in bytes."""
    sha256: str


def is_student(name: str) -> bool:
    """Whether a model's name is one of Mozilla's catalogue."""
    return _NAME.fullmatch(name) is not None


def cached_student(name: str) -> Path | None:
    """The directory of a student in the cache if it is complete."""
    folder = _folder(name)
    try:
        made = json.loads((folder / _MANIFEST).read_text())
        whole = all((folder / file).stat().st_size == size for file, (size, _) in made.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return folder if whole else None


def drop_damaged_student(name: str) -> bool:
    """Remove a cached student whose files have other hashes than when they were fetched; whether it did."""
    if (folder := cached_student(name)) is None:
        return False
    made = json.loads((folder / _MANIFEST).read_text())
    if all(digest_of(folder / file) == digest for file, (_, digest) in made.items()):
        return False
    with writable(folder):
        (folder / _MANIFEST).unlink()
    return True


def fetch_student(name: str, progress: Progress) -> Path:
    """Fetch a student, resuming what an earlier run left unfinished; a cached one that is the catalogue's stays.

    Raises:
        HubUnreachableError: the catalogue or a file cannot be reached.
        DownloadError: the catalogue is not readable, the disk is full, or a file is not the catalogue's.
        ModelError: the catalogue has no such pair.
    """
    entry = _entry(name)
    folder = _folder(name)
    with writable(folder.parent, "what arrived is kept; "):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with held(folder.with_name(f"{folder.name}.lock"), f"fetches {name}", progress):
            if cached_student(name) is not None and _recorded_model(folder) == entry.sha256:
                return folder
            check_room(name, 2 * entry.size, folder.parent)
            parts = folder.with_name(f".{folder.name}.{entry.sha256[:16]}")
            parts.mkdir(exist_ok=True)
            for number, url in enumerate(entry.urls):
                done = number / len(entry.urls)
                _fetch(url, parts / _file_name(url), lambda size, done=done: progress(  # type: ignore[misc]
                    f"fetching {name}, {megabytes(size)}", done
                ))  # fmt: skip
            _unpack(entry, parts, folder)
            shutil.rmtree(parts, ignore_errors=True)
    return folder


def _folder(name: str) -> Path:
    return assets() / "firefox" / name.removeprefix(PREFIX)


def _recorded_model(folder: Path) -> str | None:
    made = json.loads((folder / _MANIFEST).read_text())
    return next((digest for file, (_, digest) in made.items() if file.startswith("model.")), None)


def _entry(name: str) -> CatalogueEntry:
    """The best model of a pair in the catalogue: released, then the more exact architecture."""
    url = os.environ.get(VARIABLE) or CATALOGUE
    try:
        catalogue = json.loads(_read(url, name))
        offered = catalogue["models"].get(name.removeprefix(PREFIX), [])
        entries = sorted(
            offered,
            key=lambda entry: (_rank(entry, "releaseStatus", _STATUSES), _rank(entry, "architecture", _ARCHITECTURES)),
        )
        found = [_checked(name, catalogue["baseUrl"], entry) for entry in entries[:1]]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DownloadError(
            f"the catalogue at {url} is not readable ({type(error).__name__}: {first_line(error)}); try again later, or set "
            f"{VARIABLE} to another one"
        ) from error
    if not found:
        raise ModelError(
            f"Mozilla's catalogue has no model {name.removeprefix(PREFIX)}; python -m pipeline.models list --pairs shows the pairs"
        )
    return found[0]


def _rank(entry: dict[str, Any], key: str, order: tuple[str, ...]) -> int:
    return order.index(entry[key]) if entry.get(key) in order else len(order)


def _checked(name: str, base: str, entry: dict[str, Any]) -> CatalogueEntry:
    """Raises:
    ValueError, LookupError, TypeError: the entry is not what is expected.
    """
    files = dict(entry["files"])
    model = files.pop("model")
    paths = [model["path"], *(file["path"] for file in files.values() if file)]
    if not base.startswith(("https://", "http://")) or any(
        ".." in path or not _FILE.fullmatch(path.split("/")[-1]) for path in paths
    ):
        raise ValueError(f"the files of {name} have unexpected names")
    size, digest = model["uncompressedSize"], model["uncompressedHash"]
    if not (type(size) is int and 0 < size < _MOST_BYTES and re.fullmatch("[0-9a-f]{64}", digest)):
        raise ValueError(f"the model of {name} has no size and hash")
    return CatalogueEntry(name, tuple(f"{base.rstrip('/')}/{path}" for path in paths), size, digest)


def _file_name(url: str) -> str:
    return url.rsplit("/", 1)[-1]


def _read(url: str, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "models.json"
        _check_online(name)
        _fetch(url, path, lambda size: None)
        return path.read_bytes()


def _check_online(name: str) -> None:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise HubUnreachableError(
            f"{name} is not in the cache and HF_HUB_OFFLINE forbids fetching it. Unset it and run this again"
        )


def _fetch(url: str, path: Path, arrived: Callable[[int], None]) -> None:
    """Fetch a file to ``path``, going on after what is there.

    Raises:
        HubUnreachableError, DownloadError: see ``fetch_student``.
    """
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


def _receive(url: str, path: Path, arrived: Callable[[int], None]) -> bool:
    """Append what one connection gives; whether it was complete."""
    have = path.stat().st_size if path.exists() else 0
    # No compression on the way: sizes are those of the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
        goes_on, length = answer.status == 206, answer.headers.get("Content-Length")
        size = begun = have if goes_on else 0
        with path.open("ab" if goes_on else "wb") as target:
            while block := answer.read(_BLOCK):
                target.write(block)
                size += len(block)
                arrived(size)
                if size > _MOST_BYTES:
                    raise DownloadError(f"{url} has more than {megabytes(_MOST_BYTES)}; it is not a file of a model")
    return length is None or size - begun >= int(length)


def _unpack(entry: CatalogueEntry, parts: Path, folder: Path) -> None:
    """Unpack all files beside ``folder``, which they replace if they are right."""
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        manifest = {}
        for url in entry.urls:
            packed = parts / _file_name(url)
            target = made / packed.name.removesuffix(".gz")
            try:
                size, digest = _gunzip(packed, target)
            except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
                packed.unlink()
                raise DownloadError(
                    f"{url} arrived damaged ({first_line(error)}); nothing of it is kept; run this again"
                ) from error
            if url == entry.urls[0] and (size, digest) != (entry.size, entry.sha256):
                packed.unlink()
                raise DownloadError(
                    f"{url} has the hash {digest}, the catalogue lists {entry.sha256}; nothing of it is kept; run this again"
                )
            manifest[target.name] = (size, digest)
        (made / _MANIFEST).write_text(json.dumps(manifest))
        made.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _gunzip(packed: Path, target: Path) -> tuple[int, str]:
    hasher, size = hashlib.sha256(), 0
    with gzip.open(packed, "rb") as source, target.open("wb") as output:
        while block := source.read(_BLOCK):
            hasher.update(block)
            output.write(block)
            size += len(block)
            if size > _MOST_BYTES:
                raise ValueError("it is too large")
    return size, hasher.hexdigest()
