"""Recordings and subtitles in object stores: s3://, gs:// and az://, through obstore. Needs the extra ``objects``.

Names are planned on empty files that stand for the objects. A job copies its recording and what exists of its subtitles
into a scratch folder, and puts the subtitles back when they are complete.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ..errors import PipelineError, UsageError
from ..names import is_possible
from .outputs import SUFFIXES
from .recordings import Job, Options, Remote
from .results import Result

try:
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError
    from obstore.store import from_url
except ImportError as _missing:
    raise UsageError(
        "object stores need the package obstore; install it: pip install 'streaming-speech-translation[objects]'"
    ) from _missing


# Where S3's own tools read the address of another server; later ones count less.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@contextmanager
def _ours(url: str) -> Iterator[None]:
    """Raise errors of the store as ours. A bucket that is not there is a FileNotFoundError of obstore's."""
    try:
        yield
    except (BaseError, OSError) as error:
        raise PipelineError(
            f"{url}: {_said(str(error))}; check the address and the credentials in the environment"
        ) from error


def _said(message: str) -> str:
    """A store's error message: that in its XML, or the first line without control characters."""
    if told := re.search(r"<Message>\s*([^<\n]+)", message):
        return told[1].rstrip(" .")
    return re.split(r"\n|: *[<{]", message, maxsplit=1)[0]


@lru_cache
def _bucket(url: str) -> Any:
    if not url.startswith("s3:"):
        return from_url(url)
    options: dict[str, Any] = {}
    if endpoint := next(filter(None, map(os.environ.get, _ENDPOINTS)), None):
        # S3's tools take http:// as it is; obstore wants AWS_ALLOW_HTTP, too.
        options = {"endpoint": endpoint, "client_options": {"allow_http": endpoint.startswith("http:")}}
    return from_url(url, **options)


def _object(url: str) -> tuple[Any, str]:
    """The store of a bucket, and the key in it."""
    scheme, _, path = url.partition("://")
    bucket, _, key = path.partition("/")
    return _bucket(f"{scheme}://{bucket}"), key.rstrip("/")


def check_place(url: str) -> None:
    """Check that the bucket in which files will be put is there, and that the credentials are good.

    Raises:
        PipelineError: it is not. One that may be written and not be listed is.
    """
    with _ours(url), suppress(PermissionDeniedError):
        next(iter(obstore.list(*_object(url), chunk_size=1)), None)


def stand_in(url: str, root: Path) -> Path:
    """The path under ``root`` that stands for an address."""
    scheme, _, path = url.partition("://")
    _check_names(path)
    return root / scheme / path


def _check_names(key: str) -> None:
    if not all(map(is_possible, key.rstrip("/").split("/"))):
        raise UsageError(
            f"{key!r} in the object store has a name that no file of this system can have; give it another, or use Linux"
        )


def add_stand_ins(url: str, root: Path) -> Path:
    """Make files without content for the recordings at an address; the path that stands for it."""
    path = stand_in(url, root)
    bucket = root.joinpath(*path.relative_to(root).parts[:2])
    with _ours(url):
        store, key = _object(url)
        entries = [entry for batch in obstore.list(store, key) for entry in batch]
        if not entries:
            with suppress(FileNotFoundError):
                entries = [obstore.head(store, key)]
    for entry in entries:
        file = bucket / entry["path"]
        if file == path or file.suffix.lower() in SUFFIXES:
            _check_names(entry["path"])
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as empty:
                empty.truncate(entry["size"])
    if not path.exists():
        raise UsageError(f"{url} has no recordings; their names end in {', '.join(sorted(SUFFIXES))}")
    return path


def with_remote(job: Job, root: Path) -> Job:
    """The job of a plan under ``root``, with the addresses of its files."""
    recording, folder = _address(job.recording, root), _address(job.names.base.folder, root)
    return replace(job, remote=Remote(recording, folder)) if recording or folder else job


def _address(path: Path, root: Path) -> str | None:
    if not path.is_relative_to(root):
        return None
    scheme, *parts = path.relative_to(root).parts
    return f"{scheme}://{'/'.join(parts)}"


class CopiedJob:
    """A job whose files are copied into a scratch folder. A context; it removes the folder, unless subtitles cannot be put."""

    def __init__(self, result: Result, options: Options) -> None:
        assert result.job.remote is not None
        self._result, self._options, self._remote = result, options, result.job.remote
        self._scratch: Path | None = Path(mkdtemp(prefix="speech-translate-"))
        job, folder = result.job, self._scratch
        names = job.names
        if self._remote.folder:
            names = replace(names, base=replace(names.base, folder=folder))
        outputs = {output: names.path(output) for output in job.outputs}
        recording = folder / "recording" / job.recording.name if self._remote.recording else job.recording
        self.local = replace(result, job=replace(job, recording=recording, outputs=outputs, names=names, remote=None))

    def __enter__(self) -> CopiedJob:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def fetch(self) -> None:
        """Copy what the job needs."""
        job, remote = self.local.job, self._remote
        if remote.folder and not self._options.overwrite:
            for path in job.outputs.values():
                _get(f"{remote.folder}/{path.name}", path)
        if remote.recording and (self._options.overwrite or job.missing() or os.path.exists(job.journal)):
            job.recording.parent.mkdir()
            _get(remote.recording, job.recording)  # opening it reports if it is not there

    def put(self) -> None:
        """Put back the subtitles, if they are complete, and take the result."""
        local, folder = self.local, self._remote.folder
        put = []
        if folder and local.outcome in ("done", "finished"):
            for path in local.outputs.values():
                url = f"{folder}/{path.name}"
                try:
                    with _ours(url):
                        obstore.put(*_object(url), path)
                except PipelineError as why:
                    raise PipelineError(f"{why}; the finished subtitles are in {self._kept()}") from why
                put.append(url)
        where = self._remote.recording or ""
        error = local.error.replace(str(local.job.recording), where) if where else local.error
        self._result.take(local, job=self._result.job, error=error, put=put)

    def _kept(self) -> Path:
        """The scratch folder, which is not removed; without the copy of the recording."""
        assert self._scratch is not None
        folder, self._scratch = self._scratch, None
        shutil.rmtree(folder / "recording", ignore_errors=True)
        return folder


def _get(url: str, path: Path) -> None:
    """Copy an object, if it is there."""
    with _ours(url), suppress(FileNotFoundError):
        chunks = obstore.get(*_object(url))
        try:
            with path.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
        except OSError as error:
            raise UsageError(
                f"cannot copy {url} to {path.parent} ({error.strerror}); set TMPDIR to a folder with room"
            ) from error


class ObjectClaims:
    """Claims in an object store; see ``pipeline.archives.claims``."""

    def __init__(self, owner: str) -> None:
        self._owner, self._touched = owner, 0

    def create(self, claim: str) -> bool:
        with _ours(claim):
            try:
                obstore.put(*_object(claim), self._content(), mode="create")
            except AlreadyExistsError:
                return False
        return True

    def mark(self, claim: str) -> str | None:
        with _ours(claim):
            try:
                return str(obstore.head(*_object(claim))["e_tag"])
            except FileNotFoundError:
                return None

    def touch(self, claim: str) -> None:
        with suppress(BaseError, OSError):  # the store cannot be reached for the moment
            obstore.put(*_object(claim), self._content())

    def remove(self, claim: str) -> None:
        with suppress(BaseError, OSError):
            obstore.delete(*_object(claim))

    def _content(self) -> bytes:
        self._touched += 1
        return f"{self._owner} {self._touched}\n".encode()
