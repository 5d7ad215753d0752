"""Files that fsspec reads: object stores and web servers, named by URLs. The only module that knows fsspec."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from ..errors import AudioError, PipelineError, UsageError, first_line

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+)://(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_WEB = ("http", "https")
# Bytes read at once: a recording is read from its beginning to its end.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class RemoteFile:
    """A file or folder with a URL such as ``s3://bucket/talks/monday.mp3``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    def __truediv__(self, name: str | os.PathLike[str]) -> RemoteFile:
        relative = os.fspath(name)
        return self if relative in ("", ".") else RemoteFile(f"{self.url.rstrip('/')}/{relative}")

    @property
    def is_web(self) -> bool:
        """Whether a web server has it: there are no folders, and nothing can be written."""
        return self.url.lower().startswith(tuple(f"{scheme}://" for scheme in _WEB))

    @property
    def name(self) -> str:
        path = self.url.partition("?")[0] if self.is_web else self.url
        return PurePosixPath(path.partition("://")[2]).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> RemoteFile:
        """The folder."""
        path = self.url.partition("?")[0] if self.is_web else self.url
        return RemoteFile(path.rstrip("/").rpartition("/")[0])

    def open(self) -> IO[bytes]:
        """Open it for reading; it is read in blocks, and may be sought."""
        with _translated(self):
            filesystem, path = self._place()
            opened: IO[bytes] = filesystem.open(path, "rb", block_size=_BLOCK)
            # fsspec's memory:// gives everybody the same object, with one position.
            return io.BytesIO(opened.getvalue()) if isinstance(opened, io.BytesIO) else opened

    def size(self) -> int:
        """Bytes, or 0 if the server does not say. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            return int(filesystem.size(path) or 0)

    def kind(self) -> str:
        """``file``, ``folder`` or ``none``. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            if not self.is_web and filesystem.isdir(path):
                return "folder"
            try:
                filesystem.info(path)
            except FileNotFoundError as error:
                if _is_denied(error) or _is_unreachable(error):
                    raise
                return "none"
            return "file"

    def names(self) -> list[str]:
        """The names in a folder; none if it is on a web server. Raises: see ``open``."""
        if self.is_web:
            return []
        with _translated(self):
            filesystem, path = self._place()
            return [PurePosixPath(each).name for each in filesystem.ls(path, detail=False)]

    def files_below(self) -> Iterator[RemoteFile]:
        """All files in a folder and in those below it, sorted; hidden ones are left out. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            found = sorted(filesystem.find(path))
            top = str(filesystem._strip_protocol(path)).rstrip("/")
        for each in found:
            relative = str(each).removeprefix(top).lstrip("/")
            if not any(part.startswith(".") for part in PurePosixPath(relative).parts):
                yield self / relative

    def read(self) -> bytes | None:
        """The content, or None if there is no such file. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            try:
                content: bytes = filesystem.cat_file(path)
            except FileNotFoundError:
                return None
            return content

    def write(self, content: bytes) -> None:
        """Replace the content; object stores do that at once. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            filesystem.makedirs(str(filesystem._parent(path)), exist_ok=True)
            filesystem.pipe_file(path, content)

    def remove(self) -> None:
        """Remove the file, if it exists. Raises: see ``open``."""
        with _translated(self):
            filesystem, path = self._place()
            if filesystem.exists(path):
                filesystem.rm_file(path)

    def _place(self) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise UsageError(
                f"{self.url} is a URL, and reading URLs needs fsspec; install it with: "
                "pip install 'streaming-speech-translation[remote]'"
            ) from error
        filesystem, path = url_to_fs(self.url, use_listings_cache=False)
        return filesystem, path


def remote_file(text: str) -> RemoteFile | None:
    """The remote file that a text names; None if it names a local one. ``file://`` is refused: give the path."""
    found = _URL.fullmatch(text)
    if found is None or not found["rest"]:
        return None
    if found["scheme"].lower() == "file":
        raise UsageError(f"{text} is a file of this machine; give its path")
    return RemoteFile(text)


@contextmanager
def _translated(file: RemoteFile) -> Iterator[None]:
    """Turn the errors of fsspec's many file systems into this package's."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:  # each file system has its own kinds
        reason = first_line(error)
        if _is_denied(error):
            raise UsageError(f"{file} may not be read or written ({reason}); check the credentials") from error
        if isinstance(error, FileNotFoundError) and not _is_unreachable(error):
            raise UsageError(f"no such file: {file}; check the URL") from error
        if isinstance(error, ImportError | ValueError):
            raise UsageError(f"{file} cannot be read ({reason})") from error
        raise AudioError(f"{file} cannot be read or written ({reason}); check the connection") from error


def _is_denied(error: BaseException) -> bool:
    """Whether permission or credentials are missing, also where fsspec says that there is no such file."""
    return any(
        isinstance(each, PermissionError)
        or getattr(each, "status", None) in (401, 403)  # aiohttp's
        or "credentials" in str(each).lower()
        for each in _causes(error)
    )


def _is_unreachable(error: BaseException) -> bool:
    """Whether the connection failed where fsspec says that there is no such file."""
    return any(isinstance(each, OSError) and not isinstance(each, FileNotFoundError) for each in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
