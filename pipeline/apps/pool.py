"""Processes of this machine that share out work: each takes the next item when it has done one."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from ..errors import PipelineError, one_line

Item = TypeVar("Item")


@dataclass(frozen=True)
class Ended:
    """The process ended before it had done its item."""

    status: int | None
    """Its exit status, negative for a signal."""


def share_out(
    items: Sequence[Item], count: int, work: Callable[..., None], *arguments: Any
) -> Generator[tuple[Item, Any], None, None]:
    """Share ``items`` out to ``count`` processes; yield each message with its item, ``Ended`` if its process ended.

    Each process calls ``work(items, tell, *arguments)``: ``items`` iterates over those that it is given, and ``tell`` sends a
    message. The first is given when all processes have asked for one. What ``work`` raises is raised here. If this iterator
    is closed or fails, the processes are terminated.
    """
    waiting, free = deque(items), list[Connection]()
    processes: dict[Connection, BaseProcess] = {}
    doing: dict[Connection, Item] = {}
    with ExitStack() as stack:
        first = [_started(stack, processes, work, arguments) for _ in range(min(count, len(items)))]
        while processes:
            for each in wait(list(processes)):
                assert isinstance(each, Connection)
                try:
                    kind, message = each.recv()
                except (EOFError, OSError):
                    process = processes.pop(each)
                    process.join()
                    if each in doing:
                        yield doing.pop(each), Ended(process.exitcode)
                        if waiting:
                            _started(stack, processes, work, arguments)
                    elif process.exitcode:
                        said = f"a process ended before it had work (status {process.exitcode})"
                        raise PipelineError(f"{said}; is there enough memory?") from None
                    continue
                if kind == "failed":
                    raise message
                if kind == "told":
                    yield doing[each], message
                    continue
                doing.pop(each, None)
                free.append(each)
                if first and len(free) < len(first):
                    continue
                first = []
                for asked in free:
                    if waiting:
                        doing[asked] = waiting.popleft()
                    with suppress(OSError):  # it has just ended, which is seen next
                        asked.send(doing.get(asked))
                free = []


def _started(
    stack: ExitStack, processes: dict[Connection, BaseProcess], work: Callable[..., None], arguments: tuple[Any, ...]
) -> Connection:
    """Start a process, which ``stack`` ends."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_run, args=(there, work, arguments), daemon=True)
    process.start()
    there.close()
    stack.push(partial(_end, process))
    stack.callback(here.close)  # ends the process if it waits for an item
    processes[here] = process
    return here


def _end(process: BaseProcess, failure: type[BaseException] | None, *_: object) -> None:
    if failure is not None:
        process.terminate()
    process.join(10.0)


def _run(connection: Connection, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """What a process does; ``work`` raises OSError if the process that started it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; this one is terminated by the first

    lock = threading.Lock()

    def tell(message: object) -> None:
        with lock:
            connection.send(("told", message))

    try:
        work(_given(connection), tell, *arguments)
    except Exception as error:
        with suppress(OSError):
            connection.send(("failed", _portable(error)))


def _given(connection: Connection) -> Iterator[Any]:
    """The items of this process; no more if the process that started it has ended."""
    with suppress(EOFError, OSError):
        while True:
            connection.send(("next", None))
            item = connection.recv()
            if item is None:
                return
            yield item


def _portable(error: Exception) -> Exception:
    """An error to send to another process: itself, or a PipelineError with its message if it cannot be pickled."""
    if not isinstance(error, PipelineError):
        error.add_note("In another process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return PipelineError("\n".join([one_line(error), *getattr(error, "__notes__", [])]))
    return error
