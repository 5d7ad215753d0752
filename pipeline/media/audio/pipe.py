"""Read bytes from a pipe or a growing file as they arrive; the reader can stop before the writer does."""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import UsageError

log = logging.getLogger(__name__)

# How often a waiting read checks for ``close``.
_POLL_MS = 100
_BLOCK = 1 << 16
GROWS_S = 10.0
"""A file to which nothing was added for so long is complete."""


class PipeReader:
    """Reads from a stream's descriptor, bypassing its buffer. The stream may also be a file."""

    def __init__(self, stream: BinaryIO) -> None:
        """Prepare to read."""
        if not hasattr(select, "poll"):
            raise UsageError(
                f"pipes cannot be read on {sys.platform}; give a recording, or feed SpeechTranslator in a program"
            )
        self._stream = stream  # keep a reference: the stream closes with this object
        self._ready = select.poll()  # select.select fails for descriptors above 1,023
        self._ready.register(stream.fileno(), select.POLLIN)
        self._closed = False

    def read(self, count: int) -> bytes:
        """Wait for up to ``count`` bytes. Empty at the end of the stream, or when closed."""
        while not self._closed:
            if self._ready.poll(_POLL_MS):
                return os.read(self._stream.fileno(), count)
        return b""

    def close(self) -> None:
        """Stop reading. A read in progress returns empty bytes."""
        self._closed = True


class GrowingFile:
    """Reads a file that is still being written; FFmpeg may take it as its input. It has ended when nothing came for a while."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        self._file = path.open("rb", buffering=0)
        self._closed = threading.Event()

    def read(self, count: int) -> bytes:
        """Wait for up to ``count`` bytes. Empty at the end of the file, or when closed."""
        began_s = time.monotonic()
        while not self._closed.is_set():
            if data := self._file.read(count):
                return data
            if time.monotonic() - began_s > GROWS_S:
                log.warning("nothing was added to %s for %.0f s: it counts as complete", self._file.name, GROWS_S)
                self._closed.set()
            self._closed.wait(_POLL_MS / 1000)
        return b""

    def close(self) -> None:
        """Stop reading. A read in progress returns empty bytes."""
        self._closed.set()


def relayed(reader: PipeReader) -> int:
    """Copy ``reader`` to a new pipe, on a thread, until it ends. Return the read descriptor of the new pipe.

    Used for FFmpeg, whose read of a pipe cannot be interrupted: it returns only when the writer writes or ends.
    """
    reading, writing = os.pipe()

    def relay() -> None:
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
            while data := reader.read(_BLOCK):
                stream.write(data)
                stream.flush()

    threading.Thread(target=relay, name="pipe", daemon=True).start()
    return reading
