"""One daemon thread a stage: blocking model work off the event loop, in order."""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")
_Job = Callable[[], None]


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


class Worker:
    """Runs calls one after another on its own thread.

    Nobody waits for a call that cannot be interrupted until the interpreter exits.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        _alive.add(self)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def run(self, function: Callable[[], T]) -> T:
        """Await ``function()`` run on the thread. Cancelling the await does not stop the call itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(cast(T, result))
            else:
                future.set_exception(error)

        def job() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = function()
            except (StopIteration, asyncio.CancelledError) as problem:  # which mean something else to who awaits
                error = RuntimeError(f"{function} raised {problem!r}")
                error.__cause__ = problem
            except BaseException as problem:  # handed to the awaiting stage, whatever it is
                error = problem
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:
                # The loop is closed: nobody waits for the result any more.
                return

        self._jobs.put(job)
        return await future

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def close(self) -> None:
        """Let the thread end after the call in progress. Idempotent."""
        self._jobs.put(None)
