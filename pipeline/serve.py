"""python -m pipeline.serve: a server for browsers and programs, and its page."""

from __future__ import annotations

from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main() -> NoReturn:
    """Run the command with the process's arguments and end the process."""
    quiet_interrupts()
    from pipeline.apps.serve import run

    main_program(run)


if __name__ == "__main__":
    main()
