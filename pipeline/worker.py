"""One daemon thread a stage: blocking model work off the event loop, in order."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_Job = Callable[[], None]


class Worker:
    """Runs calls one after another on its own thread.

    The thread is a daemon: a process that is told to stop does not wait for a model call that cannot be interrupted.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

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
                future.set_result(result)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

        def job() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = function()
            except BaseException as problem:  # handed to the awaiting stage, whatever it is
                error = problem
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:
                # The loop is closed: nobody waits for the result any more.
                return

        self._jobs.put(job)
        return await future

    def close(self) -> None:
        """Let the thread end after the call in progress. Idempotent."""
        self._jobs.put(None)
