"""Spread recordings over the workers of a Dask cluster. The only module that knows the engine.

One recording is one task. At most one task a thread of the cluster is submitted at a time, so that a worker that dies
takes nothing else with it. Each worker loads the models once. Files are written by the workers, which must see the same
folders as this process; the journal of each recording lets another worker finish what a lost one began.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import PipelineError, StageError, UsageError, first_line, one_line
from ..run.machine import usable_cores
from .bars import Bar, Bars
from .cli import report
from .recording_run import Options
from .results import Result

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
# How long to wait for a scheduler that does not answer: at the start, and after it was lost.
_CONNECT_S, _RECONNECT_S = 10.0, 120.0
# A worker that lost its scheduler finishes its recording first, and keeps its files until then. Seconds to wait for it, and
# between two attempts.
_BUSY_S, _BUSY_STEP_S = 600.0, 5.0
# How long workers have to end their recordings after Ctrl-C.
_STOP_S = 5.0


@dataclass(frozen=True)
class Address:
    """A cluster: that of a scheduler, or processes of this machine."""

    scheduler: str = ""
    processes: int = 0
    """Local worker processes; 0 if there is a scheduler."""


def parse_address(text: str) -> Address:
    """Parse ``tcp://HOST:PORT``, ``tls://HOST:PORT``, ``local`` or ``local:N``; ``local`` is one process a core."""
    kind, colon, rest = text.partition(":")
    if kind == LOCAL:
        if not colon:
            return Address(processes=usable_cores())
        if rest.isascii() and rest.isdecimal() and 1 <= int(rest[:4]) <= 256:
            return Address(processes=int(rest[:4]))
    elif kind in ("tcp", "tls") and rest.startswith("//") and rest[2:].rpartition(":")[2].isdecimal():
        return Address(text)
    raise UsageError(
        f"--cluster {text} is no cluster; give the scheduler's address, such as tcp://HOST:8786 or tls://HOST:8786, or "
        "local:N for N processes on this machine"
    )


@contextmanager
def connected(address: Address, timeout_s: float = _CONNECT_S) -> Iterator[Client]:
    """Connect to a cluster, or start one."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise UsageError(
            f"--cluster needs Dask ({error}); install it with: pip install 'streaming-speech-translation[cluster]'"
        ) from error
    with ExitStack() as stack:
        for name in ("distributed", "distributed.client"):  # Dask gives both a level
            logging.getLogger(name).setLevel(logging.CRITICAL)  # lost connections and results are reported here
        stack.enter_context(dask.config.set({"distributed.comm.retry.count": 0, "distributed.admin.log-length": 0}))
        target: Any = address.scheduler
        if address.processes:
            cluster = distributed.LocalCluster(
                n_workers=address.processes,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit=0,  # Dask would pause workers for the memory of the models
                silence_logs=logging.ERROR,
            )
            stack.enter_context(cluster)
            target = cluster
        try:
            client = stack.enter_context(distributed.Client(target, timeout=timeout_s))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no Dask scheduler answers at {address.scheduler} ({first_line(error)}); start one with: dask scheduler"
            ) from error
        yield client


def translate_on_cluster(results: Sequence[Result], options: Options, address: Address) -> None:
    """Do every job on the cluster and fill in its result. A failure ends its recording, not the others.

    A lost scheduler is waited for, and what was not finished is submitted again.
    """
    left = [index for index, result in enumerate(results) if not _settled(result)]
    options = replace(options, aside=True)
    lost_at: float | None = None
    with ExitStack() as stack:
        bars = Bars(stack, len(results))
        bars.ended(len(results) - len(left))
        while left:
            try:
                with connected(address) as client:
                    lost_at = None
                    _Run(client, results, left, options, bars).go()
            except SchedulerLostError:
                lost_at = time.monotonic()
                bars.print("the scheduler was lost; waiting for it")
            except UsageError:
                if lost_at is None or time.monotonic() - lost_at > _RECONNECT_S:
                    raise
            left = [index for index in left if not _settled(results[index])]


def _settled(result: Result) -> bool:
    return result.outcome not in ("not begun", "interrupted")


class SchedulerLostError(Exception):
    """The connection to the scheduler was lost; unfinished recordings have to be submitted again."""


@dataclass
class _Run:
    """The jobs ``left`` of ``results`` on one connection."""

    client: Client
    results: Sequence[Result]
    left: list[int]
    options: Options
    bars: Bars
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _shown: dict[int, Bar] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)
    _first_busy: dict[int, float] = field(default_factory=dict)
    _not_before: dict[int, float] = field(default_factory=dict)
    """Index → when to try again a recording whose files another process still has."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """For ``_shown``: progress messages come on the client's thread."""

    def go(self) -> None:
        """Submit the jobs as threads become free, until all are done.

        Raises:
            SchedulerLostError, UsageError: see ``translate_on_cluster``.
        """
        from . import cluster_worker

        waiting = deque(self.left)
        running: dict[Future[Any], int] = {}
        with noticing_loss():
            self.client.register_plugin(cluster_worker.ModelsPlugin(), name=cluster_worker.TOPIC)
            self.client.subscribe_topic(cluster_worker.TOPIC, self._show)
        said = False
        try:
            while waiting or running:
                slots = self._slots()
                if not slots and not said:
                    said = True
                    self.bars.print("the cluster has no worker yet; waiting for one")
                while waiting and len(running) < slots and (index := self._due(waiting)) is not None:
                    running[self._submit(index)] = index
                for future in self._finished(list(running)):
                    index = running.pop(future)
                    if not self._take(index, future):
                        waiting.appendleft(index)
                    future.release()  # else Dask repeats the task if the worker that has its result dies
        except KeyboardInterrupt:
            self._stop(running)
            raise
        finally:
            with self._lock:
                for bar in self._shown.values():
                    bar.end()

    def _due(self, waiting: deque[int]) -> int | None:
        """Take the first waiting recording that may begin now."""
        now = time.monotonic()
        for index in waiting:
            if self._not_before.get(index, 0.0) <= now:
                waiting.remove(index)
                return index
        return None

    def _slots(self) -> int:
        """Threads of the cluster's workers; new workers are checked first."""
        with noticing_loss():
            threads = self.client.nthreads()
        if new := [worker for worker in threads if worker not in self._checked]:
            with contextlib.suppress(OSError):  # one has just died; the next call sees who is left
                _check_versions(self.client, new)
                self._checked.update(new)
        return sum(count for worker, count in threads.items() if worker in self._checked)

    def _submit(self, index: int) -> Future[Any]:
        from . import cluster_worker

        result = replace(self.results[index], outcome="not begun")
        task = cluster_worker.Task(self.id, index, result, self.options)
        return self.client.submit(cluster_worker.translate, task, pure=False)

    def _finished(self, running: list[Future[Any]]) -> list[Future[Any]]:
        """The futures that are done, after at most a second.

        Raises:
            SchedulerLostError: see there.
        """
        from distributed import wait

        if running:
            with noticing_loss(), contextlib.suppress(TimeoutError):
                wait(running, timeout=1.0, return_when="FIRST_COMPLETED")
        else:
            time.sleep(0.2)
        if self.client.status != "running" or any(future.status in ("cancelled", "lost") for future in running):
            raise SchedulerLostError
        return [future for future in running if future.done()]

    def _take(self, index: int, future: Future[Any]) -> bool:
        """Take the result of a finished task; False if it has to be tried again, because its files were busy.

        Raises:
            PipelineError: no recording can be translated, for example because there is no model.
            SchedulerLostError: see there.
        """
        from distributed import KilledWorker

        result = self.results[index]
        with noticing_loss():
            error = future.exception()
            done: Any = future.result() if error is None else None
        if isinstance(error, PipelineError):
            raise error
        if isinstance(error, KilledWorker):
            result.fail(StageError("cluster", RuntimeError(f"{result.job.recording} ended every worker that tried it")))
        elif error is not None:
            result.fail(StageError("cluster", RuntimeError(f"{result.job.recording}: {one_line(error)}")))
        else:
            now = time.monotonic()
            if done.busy and now - self._first_busy.setdefault(index, now) < _BUSY_S:
                self._not_before[index] = now + _BUSY_STEP_S
                return False
            vars(result).update(vars(done))
        self._end(index)
        return True

    def _end(self, index: int) -> None:
        """Show that a recording is done."""
        result = self.results[index]
        with self._lock:
            bar = self._shown.pop(index, None)
        if bar is not None:
            bar.end()
            if result.outcome in ("done", "finished"):
                bar.finished()
        self.bars.ended()
        if result.error:
            report(result.error)

    def _show(self, event: Any) -> None:
        """Show a progress message; called on the client's thread."""
        _, message = event
        if message.get("run") != self.id:
            return
        index = message["index"]
        with self._lock:
            if _settled(self.results[index]):  # the message came late
                return
            bar = self._shown.get(index)
            if bar is None:
                bar = self._shown[index] = Bar(self.bars, self.results[index].job.recording.name, index + 1)
                bar.begin(message.get("length_s"))
            if "note" in message:
                bar.note(message["note"])
            else:
                bar.update(message["done_s"], message["length_s"], message["speed"])

    def _stop(self, running: dict[Future[Any], int]) -> None:
        """Ask the workers to end their recordings, whose journals keep what is done, and take the results."""
        from distributed import wait

        from . import cluster_worker

        with contextlib.suppress(Exception):  # the run ends anyway
            self.client.run(cluster_worker.stop, self.id)
            wait(list(running), timeout=_STOP_S)
        for future, index in running.items():
            if future.status == "finished":
                with contextlib.suppress(Exception):
                    vars(self.results[index]).update(vars(future.result(timeout=1.0)))


@contextmanager
def noticing_loss() -> Iterator[None]:
    """Raise ``SchedulerLostError`` if the connection to the scheduler fails inside the block."""
    from distributed import CancelledError  # of one future, or of several

    try:
        yield
    except (CancelledError, OSError) as error:
        raise SchedulerLostError from error


def _check_versions(client: Client, workers: list[str]) -> None:
    """Compare the versions of ``workers`` with those of this process, and share out the cores of each machine."""
    from . import cluster_worker

    try:
        client.get_versions(check=True)
        found = client.run(cluster_worker.facts, workers=workers)
    except (ImportError, ValueError, AttributeError) as error:
        raise UsageError(
            f"the cluster has other packages than this process ({one_line(error)}); install the same versions everywhere"
        ) from error
    for worker, (version, _) in found.items():
        if version != __version__:
            raise UsageError(
                f"the worker {worker} has version {version} of this package, and this process has {__version__}; "
                "install the same version everywhere"
            )
    per_host = Counter(_host(worker) for worker in client.nthreads())
    for worker, (_, cores) in found.items():
        client.run(cluster_worker.use_threads, max(1, cores // per_host[_host(worker)]), workers=[worker])


def _host(worker: str) -> str:
    return worker.rpartition(":")[0]
