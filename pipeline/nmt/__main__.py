"""python -m pipeline.nmt: lines of text on standard input, translations on standard output."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command with the process's arguments and end the process."""
    from pipeline.apps.cli import main_program, quiet_interrupts

    quiet_interrupts()
    from pipeline.apps.nmt import run

    main_program(run)


if __name__ == "__main__":
    main()
