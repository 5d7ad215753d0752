"""Recordings on a Dask cluster: ``translate --cluster``. Needs the extra ``cluster``."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from ..console import tell
from ..errors import PipelineError, UsageError, one_line
from .recordings import Options
from .results import Result
from .several import Link, Message, Run, translate_on
from .turns import Turns

try:
    import distributed
except ImportError as _missing:
    raise UsageError(
        "--cluster needs the package distributed; install it: pip install 'streaming-speech-translation[cluster]'"
    ) from _missing

# How long to wait for the scheduler's answer, and between two counts of the workers.
_CONNECT_S = 10
_COUNT_S = 2.0
# A job whose worker refuses it or ends is given to another so often.
_RETRIES = 2


class _DaskLink(Link):
    def __init__(self, topic: str) -> None:
        self._topic = topic

    def tell(self, message: Message) -> None:
        distributed.get_worker().log_event(self._topic, message)

    def is_cancelled(self) -> bool:
        worker = distributed.get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
        lost = worker.status not in (distributed.Status.running, distributed.Status.paused)
        return lost or task is None or task.state == "cancelled"

    def worker(self) -> str:
        return f"the worker {distributed.get_worker().address}"


def translate_on_cluster(
    address: str, results: Sequence[Result], options: Options, folders: Sequence[Path], turns: Turns
) -> None:
    """``translate_on`` on the workers of the scheduler at ``address``, however many there are in the course of the run.

    Args:
        folders: those that every worker must see.
    """
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost is said here
    asr = options.config.asr
    options = replace(options, config=replace(options.config, asr=replace(asr, threads=asr.threads or 1)))
    topic, messages = f"translate-{uuid.uuid4().hex}", SimpleQueue[Message]()
    level = logging.getLogger(__name__.partition(".")[0]).getEffectiveLevel()
    run = Run(options, _DaskLink(topic), tuple(folders), level)
    client = _connected(address)
    try:
        _check_workers(client, run)
        client.subscribe_topic(topic, lambda event: messages.put(tuple(event[1])))
        executor = client.get_executor(pure=False, retries=_RETRIES)
        translate_on(executor, results, run, at_once=_worker_count(client), turns=turns, messages=messages)
    except (OSError, PipelineError) as error:
        if client.status == "running" and isinstance(error, PipelineError):
            raise
        raise PipelineError(f"lost the scheduler {address}; when it is back, the same command goes on") from error
    finally:
        with suppress(OSError, TimeoutError):
            client.close(timeout=_CONNECT_S)


def _connected(address: str) -> distributed.Client:
    try:
        return distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address} ({one_line(error)}); start one with: dask scheduler"
        ) from error


def _check_workers(client: distributed.Client, run: Run) -> None:
    """Check the workers that are there now; later ones are checked by their first job."""
    threads = dict(client.nthreads())
    problems = client.run(run.problem, on_error="return") | {
        worker: f"it has {count} threads; start it with --nthreads 1" for worker, count in threads.items() if count > 1
    }
    for worker, problem in problems.items():
        if isinstance(problem, OSError):  # it ended in between
            tell(f"the worker {worker} is left out: {one_line(problem)}")
            threads.pop(worker, None)
        elif problem:
            said = one_line(problem) if isinstance(problem, Exception) else problem
            raise UsageError(f"the worker {worker} cannot be used: {said}")
    if not threads:
        tell("the cluster has no worker yet; waiting for one")


def _worker_count(client: distributed.Client) -> Callable[[], int]:
    """How many workers there are; at least one, so that a cluster that grows with its jobs gets some."""
    count, counted_s = 0, 0.0

    def at_once() -> int:
        nonlocal count, counted_s
        if time.monotonic() - counted_s > _COUNT_S:
            count, counted_s = len(client.nthreads()), time.monotonic()
        return max(1, count)

    return at_once
