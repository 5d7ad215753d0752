"""Shared by all commands: argument types, messages, one-line errors, exit statuses, clean interrupts."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO, cast

from ..errors import PipelineError, SinkError, UsageError, one_line
from ..names import STANDARD_OUTPUT, escaped
from .signals import ENDING, quiet_interrupts

# The parent of the loggers of all modules here.
_LOG = logging.getLogger(__name__.partition(".")[0])

STARTED = time.perf_counter()
"""Approximately when the program started to import."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Failures of redirected output. Any other OSError here is a defect and keeps its traceback.
_DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def standard_input() -> BinaryIO:
    """Standard input as a binary stream."""
    if sys.stdin is None:
        raise UsageError("standard input is closed; pipe something in")
    return sys.stdin.buffer


def some_text(text: str) -> str:
    """Argument type: text that is not empty, to catch unset shell variables."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a value or leave the option out")
    return text


def some_path(text: str) -> Path:
    """Argument type: a path that is not empty, because an empty one means the current folder. A URL raises UsageError."""
    if _URL.match(some_text(text)) and not os.path.exists(text):
        raise UsageError(f"{text} is a URL; give a path of this machine, and copy files from elsewhere first")
    return Path(text)


def some_secret(text: str) -> str:
    """Argument type: the text or, of @FILE, that in a file, which others do not see in a list of processes."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text[1:]} cannot be read ({error})") from None


def some_output(text: str) -> Path:
    """Argument type: a file to write. "-" is standard output; "./-" is a file of that name."""
    path = some_path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != str(STANDARD_OUTPUT) else path


def whole_number(smallest: int, largest: int) -> Callable[[str], int]:
    """Argument type: an integer from ``smallest`` to ``largest``."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not smallest <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {smallest} to {largest}")
        return int(text)

    return parse


def whole_numbers(smallest: int, largest: int) -> Callable[[str], list[int]]:
    """Argument type: integers from ``smallest`` to ``largest`` with a comma between two."""
    parse = whole_number(smallest, largest)
    return lambda text: [parse(part) for part in text.split(",")]


def add_verbosity_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --quiet and --verbose; ``set_verbosity`` applies them."""
    group = parser.add_argument_group("messages").add_mutually_exclusive_group()
    group.add_argument(
        "-q",
        "--quiet",
        dest="verbosity",
        action="store_const",
        const=logging.ERROR,
        default=logging.WARNING,
        help="print errors only, besides what was asked for",
    )
    group.add_argument(
        "-v",
        "--verbose",
        dest="verbosity",
        action="store_const",
        const=logging.DEBUG,
        help="also print what the stages did and how long it took, and debug messages",
    )


def set_verbosity(options: argparse.Namespace) -> None:
    """Apply the options of ``add_verbosity_arguments`` to this package's messages, and to warnings of libraries."""
    logging.getLogger().setLevel(max(options.verbosity, logging.WARNING))
    _LOG.setLevel(options.verbosity)


def is_told(level: int = logging.WARNING) -> bool:
    """Whether ``tell`` prints messages of this level: warnings unless --quiet, DEBUG with --verbose, errors always."""
    return _LOG.isEnabledFor(level)


def tell(message: str, level: int = logging.WARNING) -> None:
    """Print a message of one or more lines on standard error if ``is_told``; ignore a closed stream."""
    if is_told(level):
        with contextlib.suppress(OSError, SystemExit):
            print("\n".join(map(escaped, message.split("\n"))), file=sys.stderr, flush=True)


def tell_loading(*models: str) -> None:
    """Say on a terminal which models are loaded now, which takes seconds."""
    if sys.stderr is not None and sys.stderr.isatty():
        tell(f"loading {', '.join(dict.fromkeys(Path(model).name for model in models))} …")


_STARTING = "loading …"


def show_starting() -> None:
    """Show on a terminal that the program has started. What comes next is written over it."""
    if sys.stderr is not None and sys.stderr.isatty() and not {"-q", "--quiet", "-h", "--help"} & {*sys.argv}:
        with contextlib.suppress(OSError):
            print(_STARTING, end="\r", file=sys.stderr, flush=True)


def _restore_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """``quiet_interrupts`` for a block of imports; KeyboardInterrupt works again after it."""
    quiet_interrupts()
    try:
        yield
    finally:
        _restore_interrupts()


class _HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs, and keeps those with indented lines, such as examples, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip().split("\n\n")
        filled = (
            part if "\n  " in part else super(_HelpFormatter, self)._fill_text(part, width, indent)
            for part in paragraphs
        )
        return "\n\n".join(filled)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with arguments escaped. Its subcommands' parsers have the same class."""

    def __init__(self, *, examples: Sequence[str] = (), **settings: Any) -> None:
        """Make a parser.

        Args:
            examples: command lines to show at the end of the help; ``%(prog)s`` stands for the program's name.
            settings: those of ``argparse.ArgumentParser``.
        """
        settings.setdefault("formatter_class", _HelpFormatter)
        settings.setdefault("allow_abbrev", False)  # --speak of one command would be --speakers of another
        if examples:
            settings["epilog"] = "\n  ".join(["examples:", *examples])
        super().__init__(**settings)
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        file = next((name for name in self._given if re.match("-.", name) and os.path.isfile(name)), None)
        hint = f"write ./{file} for the file" if file is not None else f"{self.prog} --help shows what is possible"
        self.exit(2, f"error: {escaped(f'{message}; {hint}')}\n")


def description_of(docstring: str | None) -> str:
    """What a command does, for its help: the docstring of its module without the "python -m …: " at its start."""
    text = (docstring or "").partition(": ")[2]
    return text[:1].upper() + text[1:]


class _Formatter(logging.Formatter):
    """Escapes the message of a log record; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (as logging calls it)
        return escaped(super().formatMessage(record))


def _check_working_directory() -> None:
    """Fail early if the working directory was deleted: some libraries end the process there with a misleading error."""
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used ({error.strerror}); change to another one") from None


def _output_error(error: OSError) -> SinkError:
    return SinkError(f"cannot write the output ({error.strerror}); make room, or write to another place")


class BestEffortStderr:
    """Standard error that ignores write errors: a failed message must not end the run."""

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


def _apart(stream: TextIO) -> TextIO:
    """Standard error with a descriptor of its own, so that what C libraries write to descriptor 2 can be redirected."""
    try:
        return open(os.dup(stream.fileno()), "w", buffering=1, encoding="utf-8", errors="replace")
    except OSError:  # no descriptor, or too many are open
        return stream


class _CurrentStderr:
    """The current ``sys.stderr``: a progress bar replaces it while active, to draw messages above itself."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def main_program(run: Callable[[list[str]], int]) -> NoReturn:
    """Run a command and exit: 0 for success, 1 for a failure, 2 for wrong usage, 130 if interrupted."""
    if sys.stderr is None:  # closed by the parent process: print would write to standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (open until the process ends)
    else:
        sys.stderr = _apart(sys.stderr)
    sys.stderr = cast(TextIO, BestEffortStderr(sys.stderr))
    handler = logging.StreamHandler(cast(TextIO, _CurrentStderr()))
    handler.setFormatter(_Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        # In an ASCII locale, Chinese characters must not end the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if sys.stderr.isatty():
        print(" " * len(_STARTING), end="\r", file=sys.stderr, flush=True)
    try:
        _restore_interrupts()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise SIGTERM would be ignored, too
            # The others end a run like Ctrl-C: results are reported and the terminal's cursor is restored.
            for number in ENDING[1:]:
                signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
        _check_working_directory()
        status = run(sys.argv[1:])
        quiet_interrupts()
    except PipelineError as error:
        report(error)
        status = error.exit_status
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 1  # the reader is gone (head, a closed terminal), so no message
    except OSError as error:
        if error.errno not in _DISK_FAILURES:
            raise
        report(_output_error(error))
        status = 1
    except SystemExit as end:  # from argparse, and from rich if the reader is gone
        status = end.code if isinstance(end.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed by the parent process
                stream.flush()
        except OSError as error:
            if status == 0 and error.errno in _DISK_FAILURES:  # otherwise an error was reported already
                report(_output_error(error))
            status = status or 1
    # Do not wait for worker threads: model calls cannot be interrupted.
    os._exit(status)


def settle() -> None:
    """Permanently exclude everything loaded so far from garbage collection.

    A full collection visits all 40,000 objects every ten minutes or so and stops all other threads for 5 to 25 ms
    (measured), longer than the event loop may be blocked. For programs only: a library must not decide this for its
    host.
    """
    gc.collect()
    gc.freeze()


def report(error: BaseException | str) -> None:
    """Print an error as one line, escaped."""
    said = error if isinstance(error, str) else one_line(error)
    with contextlib.suppress(OSError):  # the terminal was closed
        print("error: " + escaped(said), file=sys.stderr, flush=True)
