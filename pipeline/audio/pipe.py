"""Bytes from a pipe as they arrive, for a reader that may end before the writer does."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import BinaryIO

# How soon a read that waits for a silent writer notices ``close``.
_POLL_MS = 100
_BLOCK = 1 << 16


class PipeReader:
    """Reads a stream's descriptor, past any buffer that it has. A file will do, too."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream  # which is closed with this object
        self._ready = select.poll()  # select.select takes no descriptor above 1,023
        self._ready.register(stream.fileno(), select.POLLIN)
        self._closed = False

    def read(self, count: int) -> bytes:
        """Wait for up to ``count`` bytes; none at the end of the stream, or once closed."""
        while not self._closed:
            if self._ready.poll(_POLL_MS):
                return os.read(self._stream.fileno(), count)
        return b""

    def close(self) -> None:
        """End the reading; a read in progress returns nothing."""
        self._closed = True


def relayed(reader: PipeReader) -> int:
    """The descriptor of another pipe, which has what ``reader`` reads and ends when that does, from a thread of its own.

    For FFmpeg, whose own read of a pipe returns only when its writer writes or ends.
    """
    reading, writing = os.pipe()

    def relay() -> None:
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
            while data := reader.read(_BLOCK):
                stream.write(data)
                stream.flush()

    threading.Thread(target=relay, name="pipe", daemon=True).start()
    return reading
