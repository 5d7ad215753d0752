"""Where a command's process begins. Imports nothing that takes long: an interrupt before ``main`` shows a traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NoReturn

from ..console import quiet_interrupts


def entry_point(module: str, prog: str, before: Callable[[], None] | None = None) -> Callable[..., NoReturn]:
    """The ``main`` of an entry module: runs ``module.run`` with the process's arguments and ends the process.

    Args:
        module: relative to this package; imported when the program starts, because its libraries take a second.
        prog: its name in help and errors; ``main`` takes another one.
        before: called before the import.
    """

    def main(prog: str = prog) -> NoReturn:
        quiet_interrupts()
        from ..console import main_program, show_starting

        show_starting()
        if before is not None:
            before()
        main_program(partial(import_module(module, __package__).run, prog=prog))

    return main
