"""Claims: any number of machines work on one folder without knowing each other. ``translate --claim``.

A machine claims a recording by creating NAME.claimed, which only one can, and touches the file while it works. A claim that
nobody has touched for two minutes belongs to a machine that ended: another goes on, with a claim NAME.claimed.2. Clocks are
not compared: each machine watches whether the time of the file changes.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..console import tell
from ..errors import PipelineError, one_line
from .outputs import make_folder
from .recordings import Begin, Job
from .results import Result
from .turns import Turns

if TYPE_CHECKING:
    from .objects import ObjectClaims

_LOG = logging.getLogger(__name__)

SUFFIX = ".claimed"
TOUCH_S = 20.0
STALE_S = 120.0
"""Longer than an NFS client keeps the time of a file (acregmax, 60 s) and a machine waits between two touches."""
AGAIN_S = 5.0
"""How long to wait before looking at a claim again."""


class Claims(Turns):
    """The jobs that no other machine does."""

    def __init__(self, results: Sequence[Result], folder: Path | None = None) -> None:
        """``folder``: where the subtitles are written; None: beside the recordings, or into an object store."""
        super().__init__(results)
        self._folder = folder
        self._results, self._jobs = results, [result.job for result in results]
        self._mine: dict[int, list[str]] = {}
        """Index of a job → its claims: those that ended machines left, then this machine's."""
        self._seen: dict[str, tuple[str, float]] = {}
        """The claim of another machine → its mark, and since when it is the same."""
        self._again_s: dict[int, float] = {}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._told = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._touch, name="claims", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        for index in list(self._mine):
            self.release(index)

    def take(self) -> int | None:
        if self._folder is not None and self._waiting and not self._folder.is_dir():  # without it, nobody sees claims
            raise PipelineError(f"the folder {self._folder} is gone; when it is back, the same command goes on")
        for _ in range(len(self._waiting)):
            index = self._waiting.popleft()
            if time.monotonic() >= self._again_s.get(index, 0.0) and self._claim(index):
                return index
            self._waiting.append(index)
        if self._waiting and not self._told and not self._mine:
            self._told = True
            tell(f"waiting for other machines, which have claimed {len(self._waiting)} recordings")
        return None

    def release(self, index: int) -> None:
        with self._lock:
            for claim in self._mine.pop(index):
                _place(self._jobs[index]).remove(claim)
        if self._results[index].how is Begin.SKIP and index in self._again_s:
            self._results[index].outcome = "translated by another machine"

    def _claim(self, index: int) -> bool:
        job = self._jobs[index]
        place, name, abandoned = _place(job), claim_of(job), list[str]()
        if self._folder is not None:
            with suppress(PipelineError):  # the job will say what is wrong
                make_folder(Path(name).parent)
        while True:
            claim = f"{name}.{len(abandoned) + 1}" if abandoned else name
            if place.create(claim):
                break
            if not self._is_left(claim, place.mark(claim)):
                self._again_s[index] = time.monotonic() + AGAIN_S
                return False
            abandoned.append(claim)
        with self._lock:
            self._mine[index] = [*abandoned, claim]
        return True

    def _is_left(self, claim: str, mark: str | None) -> bool:
        """Whether the machine of this claim has ended. ``mark`` is None if the claim has just been released."""
        before, since = self._seen.get(claim, ("", 0.0))
        if mark is None or mark != before:
            self._seen[claim] = mark or "", time.monotonic()
            return False
        return time.monotonic() - since > STALE_S

    def _touch(self) -> None:
        while not self._ended.wait(TOUCH_S):
            for index in list(self._mine):
                with self._lock:
                    if index in self._mine:
                        self._touch_one(self._jobs[index], self._mine[index][-1])

    def _touch_one(self, job: Job, claim: str) -> None:
        try:
            _place(job).touch(claim)
        except Exception as error:  # the thread goes on, or others would take over what is being done
            _LOG.warning("the claim %s was not touched (%s); it is tried again", claim, one_line(error))


def claim_of(job: Job) -> str:
    path = job.names.base.path(SUFFIX)
    return f"{job.remote.folder}/{path.name}" if job.remote and job.remote.folder else str(path)


def _owner() -> str:
    return f"{socket.gethostname()} {os.getpid()}"


class _Files:
    """Claims in a folder."""

    def create(self, claim: str) -> bool:
        """Make a claim; False if there is one. True if none can be made: the job will say what is wrong."""
        try:
            with open(claim, "x", encoding="utf-8") as file:
                file.write(f"{_owner()}\n")
        except FileExistsError:
            return False
        except OSError:
            return True
        return True

    def mark(self, claim: str) -> str | None:
        """A value that changes when a claim is touched; None if there is no claim."""
        try:
            status = os.stat(claim)
        except OSError:
            return None
        return f"{status.st_ino} {status.st_mtime_ns}"

    def touch(self, claim: str) -> None:
        with suppress(OSError):  # the folder is gone for the moment
            os.utime(claim)

    def remove(self, claim: str) -> None:
        with suppress(OSError):
            os.unlink(claim)


def _place(job: Job) -> _Files | ObjectClaims:
    return _objects() if job.remote and job.remote.folder else _Files()


@cache
def _objects() -> ObjectClaims:
    from .objects import ObjectClaims  # an extra

    return ObjectClaims(_owner())
