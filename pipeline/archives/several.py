"""Recordings over an executor: processes of this machine, a cluster, or any other of ``concurrent.futures``."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..backends import keep_freed_memory, usable_cores
from ..config import PipelineConfig
from ..console import Bar, Bars, report, tell_loading
from ..errors import PipelineError, StageError, UsageError, one_line
from . import pool
from .recordings import Options
from .results import Result
from .turns import POLL_S, Turns

if TYPE_CHECKING:
    from ..core import Models

_PACKAGE = __name__.partition(".")[0]
_LOG = logging.getLogger(__name__)

Message = tuple[Any, ...]
"""The index of the recording, what it is about, and its arguments. The types are those of msgpack."""


class Link:
    """A job's connection to the process that submitted it; pickled with the job. This class, for other executors, has none."""

    def tell(self, message: Message) -> None:
        """Send a message."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the job any more."""
        return False

    def worker(self) -> str:
        """The place where the job runs, for the beginning of an error; empty on this machine."""
        return ""


class _ProcessLink(Link):
    def tell(self, message: Message) -> None:
        pool.tell_first_process(message)


@dataclass(frozen=True)
class Run:
    """What all jobs of a run have in common; pickled with each."""

    options: Options
    link: Link = field(default_factory=Link)
    folders: tuple[Path, ...] = ()
    """Folders that every worker must see."""
    level: int = logging.WARNING
    """The level from which log messages are forwarded."""
    version: str = __version__

    def problem(self) -> str | None:
        """Why this process cannot do jobs of the run; None if it can."""
        if self.version != __version__:
            return f"it has version {__version__}, not {self.version}; install the same version"
        missing = next((folder for folder in self.folders if not os.path.isdir(folder)), None)
        return f"it does not see the folder {missing}; mount it there" if missing else None


def translate_on(
    executor: Executor,
    results: Sequence[Result],
    run: Run,
    *,
    at_once: Callable[[], int],
    turns: Turns | None = None,
    messages: SimpleQueue[Message] | None = None,
) -> None:
    """Do every job on ``executor`` and fill in its result. A failure ends its recording, not the others.

    Args:
        at_once: how many jobs to submit before one is done: the number of workers, each of which does one at a time.
        turns: which job is next; all, the largest recordings first, if None.
        messages: what the jobs tell through ``run.link``.

    Raises:
        PipelineError: a worker cannot do the jobs of this run, or the executor is lost. Jobs in progress are cancelled.
    """
    turns, messages = turns or Turns(results), messages or SimpleQueue()
    doing: dict[Future[Result], int] = {}
    with ExitStack() as stack:
        stack.callback(lambda: [future.cancel() for future in doing])
        shown = _Shown(stack, results)
        while doing or turns.left:
            while len(doing) < at_once() and (index := turns.take()) is not None:
                doing[executor.submit(_do, run, index, results[index])] = index
            ended = wait(doing, POLL_S, FIRST_COMPLETED).done
            while not messages.empty():
                shown.receive(*messages.get())
            for future in ended:
                index = doing.pop(future)
                shown.ended(index, _outcome(future, results[index]))
                turns.release(index)
            if not doing and turns.left:
                time.sleep(POLL_S)


def _outcome(future: Future[Result], result: Result) -> Result:
    """The result of a job that has ended."""
    try:
        return future.result()
    except PipelineError:
        raise
    except CancelledError:
        raise PipelineError("the jobs were cancelled; the same command goes on where they were") from None
    except Exception as error:  # the worker ended
        result.fail(StageError("translation", error))
        return result


class _Shown:
    """Shows the progress of the jobs."""

    def __init__(self, stack: ExitStack, results: Sequence[Result]) -> None:
        self._bars, self._results = Bars(stack, len(results)), results
        self._each = [Bar(self._bars, result.job.recording.name, number) for number, result in enumerate(results, 1)]

    def receive(self, index: int, kind: str, *arguments: Any) -> None:
        """Take a message of a job, which may be late."""
        if kind == "log":
            name, level, text = arguments
            logging.getLogger(name).log(level, "%s", text)
        elif self._results[index].outcome in ("not begun", "interrupted"):
            if kind == "begin":
                self._results[index].outcome = "interrupted"  # or in progress
            getattr(self._each[index], kind)(*arguments)

    def ended(self, index: int, ended: Result) -> None:
        """Take the result of a job."""
        result, bar = self._results[index], self._each[index]
        result.take(ended)
        bar.end()
        if result.outcome in ("done", "finished"):
            bar.update(result.audio_s, result.audio_s, result.audio_s / max(1e-9, result.elapsed_s))
            bar.finished()
        self._bars.ended()
        if result.error:
            report(result.error)


def translate_in_processes(results: Sequence[Result], options: Options, count: int, turns: Turns) -> None:
    """``translate_on`` in ``count`` processes of this machine."""
    asr = options.config.asr
    threads = asr.threads or max(1, usable_cores() // count)
    options = replace(options, config=replace(options.config, asr=replace(asr, threads=threads)))
    tell_loading(asr.model)
    messages: SimpleQueue[Message] = SimpleQueue()
    executor, done = pool.Processes(count, messages.put), False
    run = Run(options, _ProcessLink(), level=logging.getLogger(_PACKAGE).getEffectiveLevel())
    try:
        translate_on(executor, results, run, at_once=lambda: count, turns=turns, messages=messages)
        done = True
    finally:
        executor.shutdown(wait=done)


# What follows runs on a worker.


@dataclass
class _Told:
    """Sends the progress of a recording. See ``pipeline.archives.recording_run.Progress``."""

    link: Link
    index: int

    def note(self, message: str) -> None:
        self.link.tell((self.index, "note", message))

    def begin(self, duration_s: float | None) -> None:
        self.link.tell((self.index, "begin", duration_s))

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        self.link.tell((self.index, "update", done_s, length_s, speed))


class _Forwarded(logging.Handler):
    """Sends log records."""

    def __init__(self, link: Link, index: int) -> None:
        super().__init__()
        self._link, self._index = link, index

    def emit(self, record: logging.LogRecord) -> None:
        self._link.tell((self._index, "log", record.name, record.levelno, record.getMessage()))


_loaded: tuple[PipelineConfig, Models] | None = None
"""The models of the last job, which stay loaded for the next."""


def _models(config: PipelineConfig) -> Models:
    global _loaded
    from ..config import load_models

    if _loaded is None or _loaded[0] != config:
        keep_freed_memory()
        _loaded = None  # before others are loaded
        _loaded = config, load_models(config)
    return _loaded[1]


def _do(run: Run, index: int, result: Result) -> Result:
    """Do a job and return its result.

    Raises:
        PipelineError: this worker cannot do jobs of the run.
    """
    try:
        if problem := run.problem():
            raise UsageError(problem)
        with _forwarding(run, index), suppress(asyncio.CancelledError):
            asyncio.run(_translate(run, index, result))
    except PipelineError as error:
        worker = run.link.worker()
        raise PipelineError(f"{worker}: {one_line(error)}" if worker else one_line(error)) from None
    except Exception as error:  # others may not be pickled
        _LOG.debug("recording %s", result.job.recording.name, exc_info=True)
        result.fail(StageError("translation", error))
    if result.error and (worker := run.link.worker()):
        result.error = f"{worker}: {result.error}"
    return result


async def _translate(run: Run, index: int, result: Result) -> None:
    from .recording_run import translate_job  # in the process that does it

    task = asyncio.create_task(
        translate_job(
            result, run.options, lambda: asyncio.to_thread(_models, run.options.config), _Told(run.link, index)
        )
    )
    while not (await asyncio.wait([task], timeout=1.0))[0]:
        if run.link.is_cancelled():
            task.cancel()
    await task


@contextmanager
def _forwarding(run: Run, index: int) -> Iterator[None]:
    """Forward the log records of this process."""
    root, package = logging.getLogger(), logging.getLogger(_PACKAGE)
    handler, before = _Forwarded(run.link, index), package.level
    root.addHandler(handler)
    package.setLevel(run.level)
    try:
        yield
    finally:
        root.removeHandler(handler)
        package.setLevel(before)
