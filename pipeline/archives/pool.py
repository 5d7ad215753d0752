"""Processes of this machine as an executor. A process that ends fails its own call alone."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar

from ..console import FROM_KEYS

P = ParamSpec("P")
_T = TypeVar("_T")


class ProcessEndedError(Exception):
    """The process ended before its call returned."""


class Processes(Executor):
    """Runs calls in ``count`` processes. Another process takes the place of one that ended.

    ``ProcessPoolExecutor`` fails all calls when one of its processes ends.
    """

    def __init__(self, count: int, receive: Callable[[Any], None]) -> None:
        """``receive`` gets what calls ``tell_first_process``, on a thread."""
        self._receive = receive
        self._threads = ThreadPoolExecutor(count)  # each waits for a process of its own
        self._own = threading.local()
        self._started: list[tuple[BaseProcess, Connection]] = []
        self._lock, self._ending = threading.Lock(), False  # of the list

    def submit(self, function: Callable[P, _T], /, *arguments: P.args, **named: P.kwargs) -> Future[_T]:
        return self._threads.submit(self._call, partial(function, *arguments, **named))

    def _call(self, call: Callable[[], _T]) -> _T:
        if getattr(self._own, "process", None) is None:
            self._own.process = self._start()
        process, connection = self._own.process
        try:
            connection.send(call)
            while (answer := connection.recv())[0] == "told":
                self._receive(answer[1])
        except (EOFError, OSError):
            self._own.process = None
            process.join()
            raise ProcessEndedError(f"its process ended with status {process.exitcode}") from None
        kind, value = answer
        if kind == "raised":
            raise value
        return value  # type: ignore[no-any-return]

    def _start(self) -> tuple[BaseProcess, Connection]:
        spawn = multiprocessing.get_context("spawn")
        with self._lock:
            if self._ending:
                raise ProcessEndedError("the processes were ended")
            here, there = spawn.Pipe()
            process = spawn.Process(target=_work, args=(there,), daemon=True)
            process.start()
            there.close()
            self._started.append((process, here))
        return process, here

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: with ``wait`` when all calls have returned, else at once."""
        if not wait:
            with self._lock:
                self._ending = True
                for process, _ in self._started:
                    process.terminate()
        self._threads.shutdown(cancel_futures=cancel_futures or not wait)
        for process, connection in self._started:
            connection.close()  # ends the process, which waits for a call
            process.join(10.0)


_to_first: Connection | None = None
"""The connection to the process that started this one, in a process of ``Processes``."""


def tell_first_process(message: object) -> None:
    """Send a message to the process that made the current call. Raises OSError if that process has ended."""
    assert _to_first is not None
    _to_first.send(("told", message))


def _work(connection: Connection) -> None:
    """What a process does, until the one that started it closes the connection or ends."""
    global _to_first
    _to_first = connection
    for number in FROM_KEYS:  # they reach every process; this one is terminated by the first
        signal.signal(number, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            call = connection.recv()
            try:
                answer = ("returned", call())
            except Exception as error:
                answer = ("raised", error)
            connection.send(answer)
