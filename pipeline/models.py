"""python -m pipeline.models: list, fetch, compile and inspect models."""

from __future__ import annotations

from typing import NoReturn

from pipeline.apps.cli import main_program, quiet_interrupts


def main() -> NoReturn:
    """Run the command with the process's arguments and end the process."""
    quiet_interrupts()
    from pipeline.apps.models import run

    main_program(run)


if __name__ == "__main__":
    main()
