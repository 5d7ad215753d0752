"""Fetch Firefox Translations' students from Mozilla's catalogue into the cache, checked."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import DownloadError, ModelError, first_line
from .cache import check_room, locked, megabytes, writable
from .catalogue import MOST_BYTES, CatalogueFile, best_in_models_json, best_in_records
from .progress import Progress
from .students import MANIFEST, PREFIX, cached_student, manifest_of, student_folder
from .url import check_online, fetch

CATALOGUE = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data/db/models.json"
VARIABLE = "FIREFOX_MODELS_URL"
"""Environment variable with the address of another catalogue: a models.json, or the records of Firefox's Remote Settings."""
_BLOCK = 1 << 16
_MODEL_SHARE = 0.8
"""The model's share of all bytes of a student, about."""


def fetch_student(name: str, progress: Progress) -> Path:
    """Fetch a student, resuming what an earlier run left unfinished; a cached one that is the catalogue's stays."""
    progress(f"fetching {name}", 0.0)
    files = _files(name)
    folder, model = student_folder(name), files[0]
    assert model.size is not None
    assert model.sha256 is not None
    with writable(folder.parent, "what arrived is kept; "):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f"{folder.name}.lock"), f"fetches {name}", progress):
            if cached_student(name) is not None and next(iter(manifest_of(folder).values()))[1] == model.sha256:
                return folder
            check_room(name, 2 * model.size, folder.parent)
            parts = folder.with_name(f".{folder.name}.{model.sha256[:16]}")
            parts.mkdir(exist_ok=True)
            done, shares = 0.0, [_MODEL_SHARE, *[(1 - _MODEL_SHARE) / max(1, len(files) - 1)] * (len(files) - 1)]
            for file, share in zip(files, shares, strict=True):

                def arrived(part: float, done: float = done, share: float = share) -> None:
                    progress(f"fetching {name}, {megabytes(model.size or 0)}", done + share * part)

                fetch(file.url, parts / _packed_name(file), arrived)
                done += share
            _unpack(files, parts, folder)
            shutil.rmtree(parts, ignore_errors=True)
    return folder


def _files(name: str) -> tuple[CatalogueFile, ...]:
    """The files of the best model of a pair in the catalogue; the model first."""
    url, pair = os.environ.get(VARIABLE) or CATALOGUE, name.removeprefix(PREFIX)
    try:
        catalogue = json.loads(_read(url, name))
        if "data" in catalogue:
            server = json.loads(_read(f"{url.split('/buckets/')[0]}/", name))
            files = best_in_records(pair, catalogue, server["capabilities"]["attachments"]["base_url"])
        else:
            files = best_in_models_json(pair, catalogue)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DownloadError(
            f"the catalogue at {url} is not readable ({type(error).__name__}: {first_line(error)}); try again later, or set "
            f"{VARIABLE} to another one"
        ) from error
    if not files:
        raise ModelError(
            f"Mozilla's catalogue has no model {pair}; python -m pipeline.models list --pairs shows the pairs"
        )
    return files


def _packed_name(file: CatalogueFile) -> str:
    return f"{file.name}.{file.packing}" if file.packing else file.name


def _read(url: str, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "models.json"
        check_online(name)
        fetch(url, path, lambda part: None)
        return path.read_bytes()


def _unpack(files: Sequence[CatalogueFile], parts: Path, folder: Path) -> None:
    """Unpack all files beside ``folder``, which they replace if they are right."""
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        manifest = {}
        for file in files:
            packed = parts / _packed_name(file)
            try:
                size, digest = _unpacked(packed, made / file.name, file.packing)
            except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, _zstd_error()) as error:
                packed.unlink()
                raise DownloadError(
                    f"{file.url} arrived damaged ({first_line(error)}); nothing of it is kept; run this again"
                ) from error
            if file.sha256 is not None and (size, digest) != (file.size, file.sha256):
                packed.unlink()
                raise DownloadError(
                    f"{file.url} has the hash {digest}, the catalogue lists {file.sha256}; nothing of it is kept; run this again"
                )
            manifest[file.name] = (size, digest)
        (made / MANIFEST).write_text(json.dumps(manifest))
        made.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _unpacked(packed: Path, target: Path, packing: str) -> tuple[int, str]:
    """The size and hash of what is written to ``target``."""
    hasher, size = hashlib.sha256(), 0
    opened: Any = open if not packing else gzip.open if packing == "gz" else _zstd().open
    with opened(packed, "rb") as source, target.open("wb") as output:
        while block := source.read(_BLOCK):
            hasher.update(block)
            output.write(block)
            size += len(block)
            if size > MOST_BYTES:
                raise ValueError("it is too large")
    return size, hasher.hexdigest()


def _zstd() -> Any:
    """Python's module for Zstandard, which is new in 3.14, or its backport."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise DownloadError(
        "the files of this catalogue are packed with Zstandard; pip install backports-zstd to unpack them"
    )


def _zstd_error() -> type[Exception]:
    try:
        return _zstd().ZstdError  # type: ignore[no-any-return]
    except DownloadError:
        return EOFError
