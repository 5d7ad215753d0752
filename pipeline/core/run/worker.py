"""One daemon thread per stage: runs blocking model calls off the event loop, in order; and what a failed call costs."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from ...errors import PipelineError, StageError, one_line

_T = TypeVar("_T")

MOST_IN_A_ROW = 3
"""Number of calls in a row whose failure ends the run: the next one would fail too."""
FAILED = "failed"
"""``Transcript.rejected`` of a segment whose recognition failed."""
# A model call that still runs while the interpreter shuts down crashes the process. The exit waits for it this long.
_EXIT_WAIT_S = 30.0
_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _finish_workers() -> None:
    """At exit, let every thread finish its current call."""
    workers = list(_workers)
    for worker in workers:
        worker.close()
    for worker in workers:
        worker.join(_EXIT_WAIT_S)


class _Job(Generic[_T]):
    """A call, and the future on the caller's event loop that receives its outcome."""

    def __init__(self, function: Callable[[], _T], stage: str) -> None:
        self._function, self._stage = function, stage
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[_T] = self._loop.create_future()

    def run(self) -> None:
        """Make the call on the current thread."""
        result: _T | None = None
        error: Exception | None = None
        try:
            result = self._function()
        except (StopIteration, StopAsyncIteration) as problem:  # would end the iteration of the awaiting code
            error = StageError(self._stage, problem)
        except Exception as problem:
            error = problem
        except BaseException as problem:  # asyncio would cancel the task or end the program
            error = StageError(self._stage, problem)
        self.deliver(result, error)

    def deliver(self, result: _T | None, error: Exception | None) -> None:
        """Set the outcome, on the caller's loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, nobody awaits the result
            self._loop.call_soon_threadsafe(self._set_outcome, result, error)

    def _set_outcome(self, result: _T | None, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(cast(_T, result))
        else:
            self.future.set_exception(error)


class Worker:
    """Runs calls one after another on its own thread.

    Only the exit of the interpreter waits for a call that cannot be interrupted. Every accepted call is made, or fails
    if the thread dies first, so an awaiting task never hangs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: deque[_Job[object] | None] = deque()  # the running job stays first; None ends the thread
        self._job_count = threading.Semaphore(0)
        self._lock = threading.Lock()  # no job may be queued after the final None
        self._closed = False
        self._thread = threading.Thread(target=self._run_jobs, name=name, daemon=True)
        self._thread.start()
        _workers.add(self)

    def _run_jobs(self) -> None:
        try:
            while True:
                self._job_count.acquire()
                if (job := self._jobs[0]) is None:
                    return
                job.run()
                self._jobs.popleft()
        finally:  # also if another thread killed this one (PyThreadState_SetAsyncExc)
            self.close()
            while self._jobs:
                if (refused := self._jobs.popleft()) is not None:
                    refused.deliver(None, self._refusal_error("has ended"))

    async def run(self, function: Callable[[], _T], stage: str | None = None) -> _T:
        """Run ``function()`` on the thread and return its result. Cancelling the await does not stop the call.

        Args:
            stage: named in a ``StageError``; None: the worker's name.

        Raises:
            StageError: the function raised a BaseException that is no Exception (SystemExit, a library's panic), or one
                that asyncio would misinterpret (CancelledError, StopIteration). Other exceptions are raised unchanged.
            RuntimeError: the worker is closed, or its thread has ended.
        """
        job = _Job(function, stage or self.name)
        with self._lock:
            if self._closed:
                raise self._refusal_error("is closed")
            if not self._thread.is_alive():  # a forked process does not have the thread
                raise self._refusal_error("has ended")
            self._put(cast("_Job[object]", job))
        return await job.future

    def _refusal_error(self, state: str) -> RuntimeError:
        return RuntimeError(f"the worker {self.name!r} {state} and runs nothing more; make another one")

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def close(self) -> None:
        """Accept no more calls. The thread ends after the calls already accepted. Idempotent."""
        with self._lock:
            self._closed = True
            self._put(None)

    def _put(self, job: _Job[object] | None) -> None:
        self._jobs.append(job)
        self._job_count.release()


class FailedCalls:
    """Decides whether a run goes on without what a failed call was made for."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def worked(self) -> None:
        self._in_a_row = 0

    def reason(self, error: Exception) -> str:
        """Count a failed call and return its reason in one line.

        Raises:
            Exception: ``error``, if it ends the run: a PipelineError, or the last of ``MOST_IN_A_ROW``.
        """
        self._in_a_row += 1
        if isinstance(error, PipelineError) or self._in_a_row >= MOST_IN_A_ROW:
            raise error
        return one_line(error)
