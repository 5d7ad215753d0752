"""What a sink is, and the file that most of them write to."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipeline.errors import SinkError, UsageError, described
from pipeline.events import PipelineEvent
from pipeline.names import STANDARD_OUTPUT
from pipeline.sinks.locks import is_locked, lock

_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # for a named pipe's writer; Windows has neither


def in_use(path: Path) -> bool:
    """Whether a run is writing the file at ``path``. Looking keeps nobody from opening it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
    except OSError:  # not there, or not to be read: whoever opens it for writing says so
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and is_locked(descriptor)
    finally:
        os.close(descriptor)


class Sink(Protocol):
    """Receives every event of a run in order."""

    def write(self, event: PipelineEvent) -> None:
        """Take one event.

        Raises:
            SinkError: it could not be written.
        """

    def close(self) -> None:
        """Finish. What was written stays valid whether this is called or not."""


def write_all(sinks: Sequence[Sink], event: PipelineEvent) -> None:
    """Hand one event to every sink, in order, until one fails.

    Raises:
        SINK_FAILURES: what that one failed of.
    """
    for sink in sinks:
        _write(sink, event)


SINK_FAILURES = (SinkError, BrokenPipeError)
"""What writing to a sink may raise: BrokenPipeError where nobody reads any more, of which there is nothing to say."""


def _write(sink: Sink, event: PipelineEvent) -> None:
    """Hand an event to one sink, on a thread that no signal interrupts.

    Raises:
        SINK_FAILURES: any failure, of a sink of an embedding app's, too; others than these are the cause of a SinkError.
    """
    try:
        sink.write(event)
    except SINK_FAILURES:
        raise
    except BaseException as error:
        raise SinkError(f"{type(sink).__name__} failed: {described(error)}") from error


class FanOut:
    """Hands events to several sinks. One that fails gets no more of them; the others do."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    def has(self, sink: Sink) -> bool:
        """True until ``sink`` has failed or was dropped."""
        return sink in self._sinks

    def drop(self, sink: Sink) -> None:
        """Hand ``sink`` nothing more. Idempotent."""
        if sink in self._sinks:
            self._sinks.remove(sink)

    def write(self, event: PipelineEvent) -> None:
        """Hand one event to every sink.

        Raises:
            SINK_FAILURES: the first of them, after every sink has had the event.
        """
        failures: list[SinkError | BrokenPipeError] = []
        for sink in list(self._sinks):
            try:
                _write(sink, event)
            except SINK_FAILURES as error:
                if self.has(sink):  # not dropped meanwhile
                    self.drop(sink)
                    failures.append(error)
        if failures:
            raise failures[0]


def close_all(sinks: Sequence[Sink]) -> None:
    """Close every sink, the last one first, even if one fails.

    Raises:
        SinkError: what a sink still held could not be written.
    """
    with contextlib.ExitStack() as stack:
        for sink in sinks:
            stack.callback(sink.close)


def _opened(path: Path, flags: int) -> tuple[int, bool]:
    """The descriptor of a file that this run alone writes, and whether it was made: one that is there is opened with ``flags``.

    Raises:
        UsageError: it cannot be opened, or another run is writing it.
    """
    if path == STANDARD_OUTPUT:
        return _standard_output(), False
    while True:
        try:
            try:
                descriptor, created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
            except FileExistsError:
                try:
                    descriptor, created = os.open(path, flags), False
                except FileNotFoundError:
                    if os.path.islink(path):  # to nowhere
                        raise
                    continue  # another run has removed its empty file
        except OSError as error:
            raise UsageError(
                f"cannot write {path} ({error.strerror}); choose a file in an existing, writable folder"
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor, created
        if not lock(descriptor):
            os.close(descriptor)
            raise UsageError(f"{path} is being written by another run; wait for its end, or choose another file")
        if not _removed(descriptor, path):
            return descriptor, created
        os.close(descriptor)


def _standard_output() -> int:
    """A descriptor of it, to be closed by the caller."""
    try:
        if sys.stdout is not None:  # else the number may be another file's by now
            return os.dup(1)
    except OSError:
        pass
    raise UsageError("standard output is closed, and subtitles go there; leave it open, or name a file")


def _removed(descriptor: int, path: Path) -> bool:
    """Whether another run has removed its empty file after this one opened it and before this one had the lock."""
    found = os.fstat(descriptor)
    try:
        return found.st_nlink == 0 and not os.path.samestat(found, path.stat())
    except OSError:  # not there any more
        return True


class BlockFile:
    """A text file that grows by whole blocks: after each, the file is valid, and a killed process loses none.

    A file that is already there keeps its content until ``begin``: a run that fails before its first result, for want
    of a model, destroys nothing. One that ``resume``s an earlier run goes through the blocks again and writes from where
    they first differ, so that the file never holds less than it did.
    """

    def __init__(self, path: Path, header: str = "", *, resume: bool = False) -> None:
        """Open the file for writing, or create it with its header.

        Raises:
            UsageError: that is not possible, or another run is writing it.
        """
        self.path, self._header = path, header
        self._descriptor, self._created = _opened(path, os.O_RDWR if resume else os.O_WRONLY)
        # A file that standard output is redirected to is the shell's: others may write there, and it is never shortened.
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
        """Empty a file that was there before, and write the header. Later calls do nothing."""
        if not self._begun:
            self._begun = True
            if not self._created:
                if not self._repeating:
                    self._cut()
                self._write(self._header)

    def append(self, block: str) -> None:
        """Write one block; on failure the file keeps the blocks before it.

        Raises:
            SinkError: the disk is full, or gone.
        """
        self.begin()
        self._write(block)

    def finish(self) -> None:
        """These were all blocks: what an earlier run left beyond them goes."""
        self.begin()
        if self._repeating:
            self._repeating = False
            self._cut()

    def _write(self, block: str) -> None:
        data = block.encode("utf-8", "replace")
        if self._repeating:
            os.lseek(self._descriptor, self._length, os.SEEK_SET)
            if os.read(self._descriptor, len(data)) == data:
                self._length += len(data)
                return
            self._repeating = False
            self._cut()
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            if self.path == STANDARD_OUTPUT:
                if isinstance(error, BrokenPipeError):  # its reader has seen enough
                    raise
                raise SinkError(f"cannot write to standard output ({error.strerror})") from error
            with contextlib.suppress(OSError):  # the disk is gone: there is nothing to shorten
                self._cut()
            raise SinkError(
                f"cannot write {self.path} ({error.strerror}); it is valid and complete up to the last subtitle written"
            ) from error
        self._length += len(data)

    def _cut(self) -> None:
        """Shorten the file to the whole blocks written. A pipe or device has no length and is left alone."""
        if self._regular:
            os.ftruncate(self._descriptor, self._length)
            os.lseek(self._descriptor, self._length, os.SEEK_SET)

    def close(self) -> None:
        """Close the file; one that this object created and never began is removed. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._created and not self._begun:
            self.path.unlink(missing_ok=True)  # before another run can take it
        os.close(self._descriptor)
