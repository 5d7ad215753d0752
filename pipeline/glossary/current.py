"""The glossary of a stream as it is now: fixed, or read again from its file whenever that changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ..errors import ConfigError
from .terms import Glossary

log = logging.getLogger(__name__)

CurrentGlossary = Callable[[], Glossary]
"""Returns the glossary to use for the next sentence. May be called by any thread."""


class GlossaryFile:
    """A glossary file that may change during a run. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._path = path
        self._lock = threading.Lock()
        self._version = self._seen()
        self._glossary = _read(path)
        self._check: Callable[[Glossary], None] | None = None

    def check_with(self, check: Callable[[Glossary], None]) -> None:
        """Call ``check`` with the glossary, now and whenever it is read again."""
        with self._lock:
            self._check = check
            check(self._glossary)

    def __call__(self) -> Glossary:
        """The glossary, read again if the file has changed. A file with mistakes is reported once and changes nothing."""
        with self._lock:
            version = self._seen()
            if version != self._version:
                self._version = version
                try:
                    self._glossary = _read(self._path)
                except ConfigError as error:
                    log.warning("%s; the terms read before stay in use", error)
                else:
                    log.info("read %d terms from %s", len(self._glossary.terms), self._path)
                    if self._check is not None:
                        self._check(self._glossary)
            return self._glossary

    def _seen(self) -> tuple[int, int, int] | None:
        """A value that changes with the file's contents; None if the file is missing."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> Glossary:
    from .files import load_glossary  # most runs have no glossary

    return load_glossary(path)
