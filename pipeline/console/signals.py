"""Signals that end a run, also where the event loop takes no handlers (Windows)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

FROM_KEYS: list[int] = [getattr(signal, name) for name in ("SIGINT", "SIGBREAK") if hasattr(signal, name)]
"""The signals that Ctrl-C sends and, on Windows, Ctrl-Break."""
ENDING = [*FROM_KEYS, signal.SIGTERM]


def quiet_interrupts() -> None:
    """Let an interrupt end the process at once and silently, unless interrupts are ignored already.

    For the first line of a command, whose libraries take a second to import. A KeyboardInterrupt there would show a
    traceback, and some libraries turn it into an ImportError or a crash.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def handled(handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Call a handler on the running event loop for each signal that comes in the block. For the main thread."""
    import asyncio  # every command imports this module, and needs no loop to say how it is used

    loop = asyncio.get_running_loop()
    with ExitStack() as undo:
        for number, handler in handlers.items():
            try:
                loop.add_signal_handler(number, handler)
                undo.callback(loop.remove_signal_handler, number)
            except NotImplementedError:  # there, a loop wakes up for signals, but Python runs their handlers
                before = signal.signal(number, partial(_pass_on, loop.call_soon_threadsafe, handler))
                undo.callback(signal.signal, number, before or signal.SIG_DFL)
        yield


def _pass_on(call: Callable[[Callable[[], None]], object], handler: Callable[[], None], *_: object) -> None:
    call(handler)
