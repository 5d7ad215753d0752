"""What all commands share: arguments, errors as one line, exit statuses, a clean end when interrupted."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO, cast

from pipeline.errors import PipelineError, SinkError, UsageError, one_line
from pipeline.names import STANDARD_OUTPUT, escaped

STARTED = time.perf_counter()
"""When the program began to import, near enough."""


# What redirected output meets; any other OSError that comes this far is a defect, and its traceback is wanted.
_DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def standard_input() -> BinaryIO:
    """Standard input as bytes.

    Raises:
        UsageError: it is closed.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed; pipe something in")
    return sys.stdin.buffer


def some_text(text: str) -> str:
    """An argument's type: text that is not empty, as that of a variable which is not set would be."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a value or leave the option out")
    return text


def some_path(text: str) -> Path:
    """``some_text`` as a path: without a name it would be the current folder."""
    return Path(some_text(text))


def some_output(text: str) -> Path:
    """``some_path`` of a file to write, "-" being standard output; a file of that name is "./-"."""
    path = some_path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != str(STANDARD_OUTPUT) else path


def whole_number(smallest: int, largest: int) -> Callable[[str], int]:
    """An argument's type: a whole number of a range."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not smallest <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {smallest} to {largest}")
        return int(text)

    return parse


def quiet_interrupts() -> None:
    """From now on an interrupt ends the process at once and without a word; not where it is ignored already.

    For a command's first line, as its libraries take a second to import: KeyboardInterrupt would show a traceback, and
    what some of them make of it is an ImportError or a crash.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raised_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """``quiet_interrupts`` for a block that imports and does nothing else; KeyboardInterrupt is raised again after it."""
    quiet_interrupts()
    try:
        yield
    finally:
        _raised_interrupts()


class Parser(argparse.ArgumentParser):
    """A parser whose errors show what was given escaped; so do its subcommands' parsers, which are of its class."""

    def error(self, message: str) -> NoReturn:
        super().error(escaped(message))


class _Formatter(logging.Formatter):
    """Names in a message are shown escaped; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (as logging calls it)
        return escaped(super().formatMessage(record))


def _in_a_folder() -> None:
    """A library that is loaded where the current folder is gone ends the process, with another reason."""
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used ({error.strerror}); change into another one") from None


def _unwritten(error: OSError) -> SinkError:
    return SinkError(f"cannot write the output ({error.strerror}); give it room, or another place")


class _Heedless:
    """Standard error for a run that goes on without: what cannot be written there is not worth a result."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


class _StandardError:
    """What standard error is at the moment: a progress bar puts itself in its place, and draws what is said above."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def main_program(run: Callable[[list[str]], int]) -> NoReturn:
    """Run a command and end the process: 0, 1 for a failure, 2 for wrong usage, 130 when interrupted."""
    if sys.stderr is None:  # closed by whoever started us: print would take standard output for it
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as the process)
    sys.stderr = cast(TextIO, _Heedless(sys.stderr))
    handler = logging.StreamHandler(cast(TextIO, _StandardError()))
    handler.setFormatter(_Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe in an ASCII locale must not end the run at the first Chinese character.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        _raised_interrupts()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGTERM would be ignored, too
            # A plain kill ends a run as Ctrl-C does: results are told, the terminal gets its cursor back.
            signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        _in_a_folder()
        status = run(sys.argv[1:])
        quiet_interrupts()
    except PipelineError as error:
        report(error)
        status = error.exit_status
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 1  # the reader went away (head, a closed terminal): nothing can be said to it
    except OSError as error:
        if error.errno not in _DISK_FAILURES:
            raise
        report(_unwritten(error))
        status = 1
    except SystemExit as end:  # argparse, and rich when the reader went away
        status = end.code if isinstance(end.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed by whoever started us
                stream.flush()
        except OSError as error:
            if status == 0 and error.errno in _DISK_FAILURES:  # else it has been told, or something worse has
                report(_unwritten(error))
            status = status or 1
    # Worker threads may be inside a model call that cannot be interrupted: do not wait for them.
    os._exit(status)


def settle() -> None:
    """Keep what has been loaded so far out of garbage collection, for good.

    A full collection looks at all of it, 40,000 objects, every ten minutes or so: 5 to 25 ms (measured) in which no other
    thread runs, more than the event loop may be kept. For programs; a library does not decide this for its host.
    """
    gc.collect()
    gc.freeze()


def report(error: BaseException) -> None:
    """Print an error as one line, names in it escaped."""
    with contextlib.suppress(OSError):  # a terminal that was closed: nobody reads it
        print("error: " + escaped(one_line(error)), file=sys.stderr, flush=True)
