"""python -m pipeline.translate: subtitle files for recordings, as fast as the machine allows."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main(prog: str = "python -m pipeline.translate") -> NoReturn:
    """Run the command with the process's arguments and end the process. ``prog`` is its name in help and errors."""
    quiet_interrupts()
    from pipeline.run.memory import keep_freed_memory

    keep_freed_memory()  # before NumPy is imported, which starts threads
    from pipeline.apps.translate import run

    main_program(partial(run, prog=prog))


if __name__ == "__main__":
    main()
