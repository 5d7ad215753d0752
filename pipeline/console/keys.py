"""The space bar of the terminal or, on Windows, the console that standard input is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .signals import handled

# How often a console is asked for keys.
_POLL_S = 0.05
# Begin the two characters that stand for a function key or Alt with a letter. The second is a letter itself.
_FUNCTION_KEYS = ("\0", "\xe0")


@contextmanager
def space_bar(pressed: Callable[[], None]) -> Iterator[None]:
    """Call ``pressed`` per press of the space bar, while this process is in the foreground of a terminal on stdin."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    try:
        import msvcrt
    except ImportError:
        reading = _terminal(pressed, sys.stdin.fileno())
    else:
        reading = _console(pressed, msvcrt)
    with reading:
        yield


@contextmanager
def _console(pressed: Callable[[], None], keys: Any) -> Iterator[None]:
    """``keys`` is msvcrt, which cannot wait for a key without keeping the process from ending."""

    async def poll() -> None:
        while True:
            while keys.kbhit():
                key = keys.getwch()
                if key in _FUNCTION_KEYS and keys.kbhit():
                    keys.getwch()
                elif key == " ":
                    pressed()
            await asyncio.sleep(_POLL_S)

    polling = asyncio.create_task(poll())
    try:
        yield
    finally:
        polling.cancel()


@contextmanager
def _terminal(pressed: Callable[[], None], terminal: int) -> Iterator[None]:
    import signal
    import termios
    import tty

    loop = asyncio.get_running_loop()
    before: list[Any] | None = None

    def continued() -> None:
        """Set up the terminal at the start and on SIGCONT, when the process may be in the fore- or background."""
        nonlocal before
        loop.remove_reader(terminal)
        if _in_foreground(terminal):  # in the background, reading or changing settings would stop the process
            before = before or termios.tcgetattr(terminal)
            tty.setcbreak(terminal)  # no line buffering; Ctrl-C still interrupts
            loop.add_reader(terminal, readable)

    def readable() -> None:
        try:
            keys = os.read(terminal, 64) if _in_foreground(terminal) else b""
        except OSError:
            keys = b""
        if not keys:  # the terminal is gone, or another process has it
            loop.remove_reader(terminal)
        for _ in range(keys.count(b" ")):
            pressed()

    continued()
    try:
        with handled({signal.SIGCONT: continued}):
            yield
    finally:
        loop.remove_reader(terminal)
        if before is not None and _in_foreground(terminal):
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # not the controlling terminal of this process
        return False
