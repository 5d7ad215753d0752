"""speech-translate COMMAND, or python -m pipeline COMMAND."""

from __future__ import annotations

from typing import NoReturn

from .console import quiet_interrupts


def main() -> NoReturn:
    """Run the command that the process's first argument names, and end the process."""
    quiet_interrupts()
    from .apps import main

    main()


if __name__ == "__main__":
    main()
