"""One daemon thread a stage: blocking model work off the event loop, in order."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from pipeline.errors import StageError

T = TypeVar("T")


# A model call that is still running when the interpreter is taken down crashes the process.
_EXIT_WAIT_S = 30.0
_alive: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    """At the interpreter's exit, let every thread end the call that it is in."""
    workers = list(_alive)
    for worker in workers:
        worker.close()
    for worker in workers:
        worker.join(_EXIT_WAIT_S)


class _Job(Generic[T]):
    """A call, and the future that gets its outcome on the event loop that waits for it."""

    def __init__(self, function: Callable[[], T], stage: str) -> None:
        self._function, self._stage = function, stage
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()

    def run(self) -> None:
        """Make the call, on this thread."""
        result: T | None = None
        error: Exception | None = None
        try:
            result = self._function()
        except (StopIteration, StopAsyncIteration) as problem:  # which end the loop of whoever awaits
            error = StageError(self._stage, problem)
        except Exception as problem:
            error = problem
        except BaseException as problem:  # which asyncio takes for the end of the task, or of the program
            error = StageError(self._stage, problem)
        self._deliver(result, error)

    def refuse(self, error: Exception) -> None:
        """Fail without making the call."""
        self._deliver(None, error)

    def _deliver(self, result: T | None, error: Exception | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the result any more
            self._loop.call_soon_threadsafe(self._settle, result, error)

    def _settle(self, result: T | None, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(cast(T, result))
        else:
            self.future.set_exception(error)


class Worker:
    """Runs calls one after another on its own thread.

    Nobody waits for a call that cannot be interrupted until the interpreter exits. Every call that was accepted is made,
    or fails if the thread dies before: whoever awaits one never waits for nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: deque[_Job[object] | None] = deque()  # with the one that is being run; None is the end
        self._queued = threading.Semaphore(0)
        self._accepting = threading.Lock()  # so that no job is queued behind the end
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        _alive.add(self)

    def _work(self) -> None:
        try:
            while True:
                self._queued.acquire()
                if (job := self._jobs[0]) is None:
                    return
                job.run()
                self._jobs.popleft()
        finally:  # also of a thread that another one has killed (PyThreadState_SetAsyncExc)
            self.close()
            while self._jobs:
                if (left := self._jobs.popleft()) is not None:
                    left.refuse(self._refusal("has ended"))

    async def run(self, function: Callable[[], T]) -> T:
        """Await ``function()`` run on the thread. Cancelling the await does not stop the call itself.

        Raises:
            StageError: the function raised what is no Exception (SystemExit, a library's panic), or one that has another
                meaning to who awaits (CancelledError, StopIteration). Any other exception is raised as it is.
            RuntimeError: the worker is closed, or its thread has ended.
        """
        job = _Job(function, self.name)
        with self._accepting:
            if self._closed:
                raise self._refusal("is closed")
            if not self._thread.is_alive():  # a process that was forked has none
                raise self._refusal("has ended")
            self._put(cast("_Job[object]", job))
        return await job.future

    def _refusal(self, state: str) -> RuntimeError:
        return RuntimeError(f"the worker {self.name!r} {state} and runs nothing more; make another one")

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def close(self) -> None:
        """Accept no more calls, and let the thread end after those that it has. Idempotent."""
        with self._accepting:
            self._closed = True
            self._put(None)

    def _put(self, job: _Job[object] | None) -> None:
        self._jobs.append(job)
        self._queued.release()
