"""What a sink is, and the file that most of them write to."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipeline.errors import SinkError, UsageError
from pipeline.events import PipelineEvent

if sys.platform == "win32":
    _NO_WAITING = 0

    def locked(descriptor: int) -> bool:
        """Whether another run holds the file; Windows has no lock that would leave it readable."""
        return False

else:
    import fcntl

    _NO_WAITING = os.O_NONBLOCK  # for a named pipe's writer

    def locked(descriptor: int) -> bool:
        """Take the file for this run; whether another one holds it. The system lets go of it when a process ends,
        however it ends."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
        return False


def in_use(path: Path) -> bool:
    """Whether another run is writing the file at ``path``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
    except OSError:  # not there, or not to be read: whoever opens it for writing says so
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and locked(descriptor)
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
    """Hand one event to every sink, in order."""
    for sink in sinks:
        sink.write(event)


# rich ends the program where the reader of a pipe has gone.
SINK_FAILURES = (SinkError, BrokenPipeError, SystemExit)


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
        failures: list[BaseException] = []
        for sink in list(self._sinks):
            try:
                sink.write(event)
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
        try:
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                self._created = True
            except FileExistsError:
                self._descriptor = os.open(path, os.O_RDWR if resume else os.O_WRONLY)
                self._created = False
        except OSError as error:
            raise UsageError(
                f"cannot write {path} ({error.strerror}); choose a file in an existing, writable folder"
            ) from error
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        if self._regular and locked(self._descriptor):
            os.close(self._descriptor)
            raise UsageError(f"{path} is being written by another run; wait for its end, or choose another file")
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
