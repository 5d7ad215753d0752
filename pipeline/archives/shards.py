"""A share of the recordings for each of several processes that do not know each other: ``--shard I/N``.

Every process lists the same recordings, so each finds its own share without a coordinator. Kubernetes' indexed jobs and
Slurm's arrays tell each process its number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from .recordings import Job, by_size

_EXPECTED = (
    "expected I/N, such as 2/8 for the second of eight; auto/N in an indexed Kubernetes job, or auto in a Slurm array"
)


@dataclass(frozen=True)
class Shard:
    """Share ``number`` of ``count``, from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, jobs: Sequence[Job]) -> list[Job]:
        """This shard's jobs. All shards together have every job once, with similar amounts of data.

        The jobs are dealt out by size, the largest first, so the result does not depend on their order.
        """
        mine = {id(job) for job in by_size(jobs)[self.number - 1 :: self.count]}
        return [job for job in jobs if id(job) in mine]


def parse_shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """Parse ``I/N``, ``auto/N`` or ``auto``.

    ``auto`` is JOB_COMPLETION_INDEX of Kubernetes, from 0, or SLURM_ARRAY_TASK_ID of Slurm, from
    SLURM_ARRAY_TASK_MIN in steps of SLURM_ARRAY_TASK_STEP; Slurm also tells N in SLURM_ARRAY_TASK_COUNT.
    """
    number, slash, count = text.partition("/")
    if number != "auto":
        parts = _whole(number), _whole(count)
    elif "JOB_COMPLETION_INDEX" in environment:
        if not slash:
            raise UsageError(f"--shard auto: Kubernetes does not tell the number of completions; {_EXPECTED}")
        index_from_0 = _whole(environment["JOB_COMPLETION_INDEX"])
        parts = None if index_from_0 is None else index_from_0 + 1, _whole(count)
    elif "SLURM_ARRAY_TASK_ID" in environment:
        parts = _slurm_number(environment), _whole(count if slash else environment.get("SLURM_ARRAY_TASK_COUNT", ""))
    else:
        raise UsageError(
            "--shard auto: neither JOB_COMPLETION_INDEX (Kubernetes) nor SLURM_ARRAY_TASK_ID (Slurm) is set; "
            "give --shard I/N"
        )
    index, total = parts
    if index is None or total is None:
        raise UsageError(f"--shard {text} is no shard; {_EXPECTED}")
    if not 1 <= index <= total:
        raise UsageError(f"--shard {text}: shard {index} of {total} does not exist; I is from 1 to N")
    return Shard(index, total)


def _slurm_number(environment: Mapping[str, str]) -> int | None:
    task = _whole(environment["SLURM_ARRAY_TASK_ID"])
    first = _whole(environment.get("SLURM_ARRAY_TASK_MIN", "0"))
    step = _whole(environment.get("SLURM_ARRAY_TASK_STEP", "1"))
    if task is None or first is None or not step:
        return None
    return (task - first) // step + 1


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None
