"""The order of the jobs of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from .recordings import by_size
from .results import Result

POLL_S = 0.2
"""How long to wait before looking again whether a job is done, or free."""


class Turns:
    """The jobs that are to be done."""

    def __init__(self, results: Sequence[Result], *, largest_first: bool = True) -> None:
        """``largest_first``: for several workers, so that none works on alone at the end."""
        jobs = [result.job for result in results]
        place = {id(job): number for number, job in enumerate(by_size(jobs) if largest_first else jobs)}
        self._waiting = deque(sorted(range(len(jobs)), key=lambda index: place[id(jobs[index])]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the run."""

    @property
    def left(self) -> int:
        """How many jobs are not taken yet."""
        return len(self._waiting)

    def take(self) -> int | None:
        """The index of a job to do now; None if there is none at the moment."""
        return self._waiting.popleft() if self._waiting else None

    def release(self, index: int) -> None:
        """The job has ended."""
