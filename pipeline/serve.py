"""python -m pipeline.serve: a server for browsers and programs, and its page."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main(prog: str = "python -m pipeline.serve") -> NoReturn:
    """Run the command with the process's arguments and end the process. ``prog`` is its name in help and errors."""
    quiet_interrupts()
    from pipeline.apps.serve import run

    main_program(partial(run, prog=prog))


if __name__ == "__main__":
    main()
