"""Recordings in several processes of this machine: ``translate --processes``."""

from __future__ import annotations

import asyncio
import logging
import queue
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from logging.handlers import QueueHandler

from ..errors import StageError
from ..run.machine import keep_freed_memory, usable_cores
from .bars import Bar, Bars
from .cli import report, tell_loading
from .pool import Ended, share_out
from .recording_run import Options, open_recording, translate_recording
from .results import Result

_PACKAGE = __name__.partition(".")[0]


def translate_in_processes(results: Sequence[Result], options: Options, count: int) -> None:
    """Do every job in one of ``count`` processes, and fill in its result. A failure ends its recording, not the others."""
    asr = options.config.asr
    threads = asr.threads or max(1, usable_cores() // count)
    options = replace(options, config=replace(options.config, asr=replace(asr, threads=threads)))
    level = logging.getLogger(_PACKAGE).getEffectiveLevel()
    tell_loading(asr.model)
    with ExitStack() as stack:
        bars = Bars(stack, len(results))
        shown = [Bar(bars, result.job.recording.name, number) for number, result in enumerate(results, 1)]
        told = stack.enter_context(closing(share_out(list(enumerate(results)), count, _work, options, level)))
        for (index, _), message in told:
            if isinstance(message, logging.LogRecord):
                logging.getLogger(message.name).handle(message)
            elif isinstance(message, tuple):
                getattr(shown[index], message[0])(*message[1:])
            else:
                _take(results[index], message, shown[index], bars)


def _take(result: Result, message: Result | Ended, bar: Bar, bars: Bars) -> None:
    """Take the state of a recording, and show that it is done."""
    if isinstance(message, Ended):
        result.fail(StageError("translation", RuntimeError(f"its process ended with status {message.status}")))
    else:
        vars(result).update(vars(message))
        if result.outcome == "interrupted":  # or in progress
            return
    bar.end()
    if result.outcome in ("done", "finished"):
        bar.finished()
    bars.ended()
    if result.error:
        report(result.error)


@dataclass
class _Told:
    """Sends the progress of a recording to the first process. See ``pipeline.apps.recording_run.Progress``."""

    tell: Callable[[object], None]

    def note(self, message: str) -> None:
        self.tell(("note", message))

    def begin(self, duration_s: float | None) -> None:
        self.tell(("begin", duration_s))

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        self.tell(("update", done_s, length_s, speed))


class _Messages(QueueHandler):
    """Sends log records to the first process."""

    def __init__(self, tell: Callable[[object], None]) -> None:
        super().__init__(queue.SimpleQueue())  # unused
        self._tell = tell

    def enqueue(self, record: logging.LogRecord) -> None:
        self._tell(record)


def _work(items: Iterator[tuple[int, Result]], tell: Callable[[object], None], options: Options, level: int) -> None:
    """What each process does."""
    keep_freed_memory()
    logging.basicConfig(handlers=[_Messages(tell)], level=logging.WARNING)
    logging.getLogger(_PACKAGE).setLevel(level)
    with suppress(asyncio.CancelledError):
        asyncio.run(_translate_each(items, tell, options))


async def _translate_each(
    items: Iterator[tuple[int, Result]], tell: Callable[[object], None], options: Options
) -> None:
    from ..loading import Models, load_models

    task = asyncio.current_task()
    models: Models | None = None
    assert task is not None
    with suppress(NotImplementedError):  # Windows; the journals are complete up to the last event there, too
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    for _, result in items:
        sources = open_recording(result, options)
        if sources is not None:
            models = models or load_models(options.config)
            tell(replace(result, outcome="interrupted"))
            await translate_recording(result, sources, options, models, _Told(tell))
        tell(result)
