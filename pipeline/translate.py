"""python -m pipeline.translate: subtitle files for recordings, as fast as the machine allows."""

from __future__ import annotations

from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main() -> NoReturn:
    """Run the command with the process's arguments and end the process."""
    quiet_interrupts()
    from pipeline.apps.translate import run

    main_program(run)


if __name__ == "__main__":
    main()
