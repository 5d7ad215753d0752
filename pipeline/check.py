"""python -m pipeline.check: what in subtitle files breaks the rules of layout."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main(prog: str = "python -m pipeline.check") -> NoReturn:
    """Run the command with the process's arguments and end the process. ``prog`` is its name in help and errors."""
    quiet_interrupts()

    from pipeline.apps.check import run

    main_program(partial(run, prog=prog))


if __name__ == "__main__":
    main()
