"""python -m pipeline.bench: run a benchmark on this machine."""

from __future__ import annotations

if __name__ == "__main__":
    from pipeline.apps.cli import quiet_interrupts

    quiet_interrupts()

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from pipeline.apps.cli import Parser, importing, main_program


class _Command(NamedTuple):
    """A subcommand, defined by the module of the same name. ``help`` is the first line of its docstring."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS: tuple[str, ...] = ("nmt", "live", "asr", "day", "vad", "speech", "pauses", "drafts", "peer", "serve")
"""Modules of this package. They import slow or optional dependencies only when they run."""


def _command(name: str) -> _Command:
    with importing():
        module = import_module(f"pipeline.bench.{name}")
    return _Command(cast(str, module.__doc__).splitlines()[0], module.add_arguments, module.run)


def arguments() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m pipeline.bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        command = _command(name)
        subparser = commands.add_parser(name, help=command.help, description=command.help)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def run(argv: list[str]) -> int:
    options = arguments().parse_args(argv)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    main_program(run)
