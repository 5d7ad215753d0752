"""The append-only file that most sinks write, locked for one run."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

from ...errors import FileInUseError, SinkError, UsageError
from ...names import STANDARD_OUTPUT
from .locks import is_locked, lock

_BINARY = getattr(os, "O_BINARY", 0)  # Windows only: without it, it would write "\n" as two bytes
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # do not wait for the writer of a named pipe; not on Windows


def in_use(path: Path) -> bool:
    """Whether a run is writing the file at ``path``. The check does not keep others from opening it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK)
    except OSError:  # missing or unreadable: opening it for writing reports that
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and is_locked(descriptor)
    finally:
        os.close(descriptor)


def open_locked(path: Path, flags: int) -> tuple[int, bool]:
    """Open and lock a file for this run alone; an existing file is opened with ``flags``.

    Returns:
        The descriptor, and whether the file was created.
    """
    if path == STANDARD_OUTPUT:
        return _standard_output(), False
    while True:
        try:
            try:
                descriptor, created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o666), True
            except FileExistsError:
                try:
                    descriptor, created = os.open(path, flags | _BINARY), False
                except FileNotFoundError:
                    if os.path.islink(path):  # dangling
                        raise
                    continue  # another run removed its empty file
        except OSError as error:
            raise UsageError(
                f"cannot write {path} ({error.strerror}); choose a file in an existing, writable folder"
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor, created
        if not lock(descriptor):
            os.close(descriptor)
            raise FileInUseError(f"{path} is being written by another run; wait for it to end, or choose another file")
        if not _removed(descriptor, path):
            return descriptor, created
        os.close(descriptor)


def _standard_output() -> int:
    """A duplicate of standard output's descriptor; the caller closes it."""
    try:
        if sys.stdout is not None:  # else descriptor 1 may belong to another file
            return os.dup(1)
    except OSError:
        pass
    raise UsageError("standard output is closed, so subtitles cannot be written to it; leave it open, or name a file")


def _removed(descriptor: int, path: Path) -> bool:
    """Whether another run removed its empty file after this run opened it and before this run locked it."""
    opened = os.fstat(descriptor)
    try:
        return opened.st_nlink == 0 and not os.path.samestat(opened, path.stat())
    except OSError:  # no longer there
        return True


class BlockFile:
    """A text file that grows by whole blocks: it is valid after each one, and a killed process loses none.

    An existing file keeps its content until ``begin``, so a run that fails before its first result, for lack of a model
    for example, destroys nothing. With ``resume``, the new blocks are compared with those of the earlier run, and
    writing starts where they first differ, so that the file never holds less than before.
    """

    def __init__(self, path: Path, header: str = "", footer: str = "", *, resume: bool = False) -> None:
        """Open the file for writing, or create it with its header. The footer stays behind the newest block."""
        self.path, self._header, self._footer = path, header, footer.encode()
        self._descriptor, self._created = open_locked(path, os.O_RDWR if resume else os.O_WRONLY)
        # Standard output redirected to a file: others may write to it too, so it is never truncated.
        self._regular = path != STANDARD_OUTPUT and stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._length = 0
        self._begun = self._closed = False
        self._repeating = resume and self._regular and not self._created
        if self._created:
            try:
                self._write(header)
            except SinkError:
                self.close()
                raise

    def begin(self) -> None:
        """Empty an existing file and write the header. Later calls do nothing."""
        if not self._begun:
            self._begun = True
            if not self._created:
                if not self._repeating:
                    self._truncate()
                self._write(self._header)

    def append(self, block: str) -> None:
        """Write one block. On failure the file keeps the blocks before it."""
        self.begin()
        self._write(block)

    def finish(self, footer: str | None = None) -> None:
        """Declare all blocks written: remove what an earlier run left after them. ``footer``: another one from now on."""
        self.begin()
        if footer is not None:
            self._footer = footer.encode()
        if self._repeating or footer is not None:
            self._repeating = False
            self._truncate()

    def _write(self, block: str) -> None:
        data = block.encode("utf-8", "replace")
        if self._repeating:
            os.lseek(self._descriptor, self._length, os.SEEK_SET)
            if os.read(self._descriptor, len(data)) == data:
                self._length += len(data)
                return
            self._repeating = False
            self._truncate()
        written, length = 0, len(data)
        if self._regular and self._footer:
            os.lseek(self._descriptor, self._length, os.SEEK_SET)  # over the last footer
            data += self._footer
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            if self.path == STANDARD_OUTPUT:
                if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
                    raise
                raise SinkError(f"cannot write to standard output ({error.strerror})") from error
            with contextlib.suppress(OSError):  # the disk is gone: nothing to truncate
                self._truncate()
            raise SinkError(
                f"cannot write {self.path} ({error.strerror}); it is valid and complete up to the last subtitle written"
            ) from error
        self._length += length

    def _truncate(self) -> None:
        """Truncate the file to the whole blocks written. Pipes and devices have no length and are left alone."""
        if self._regular:
            os.ftruncate(self._descriptor, self._length)
            os.lseek(self._descriptor, self._length, os.SEEK_SET)
            if self._length:
                os.write(self._descriptor, self._footer)

    def close(self) -> None:
        """Close the file; remove it if this object created it and never began writing. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._begun and self._footer and not self._regular:
            with contextlib.suppress(SinkError, BrokenPipeError):
                self._write(self._footer.decode())
        if self._created and not self._begun:
            self.path.unlink(missing_ok=True)  # before another run can lock it
        os.close(self._descriptor)
