"""speech-translate COMMAND, or python -m pipeline COMMAND: the commands of this package as one program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..console import Parser, main_program
from .commands import COMMANDS, DESCRIPTION

_EXAMPLES = (
    "%(prog)s live --mic --config demo",
    "%(prog)s translate talk.mp3 --source en --target de",
    "%(prog)s live --help",
)


class _Print(argparse.Action):
    """Prints a shell's completion script, or the manual page, and exits."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from .completion import completion, manual_page  # imports all commands

        print(completion(str(values)) if self.choices else manual_page())
        parser.exit()


def run(argv: list[str], prog: str) -> int:
    """Show the help, the version or an error; commands do not get here."""
    parser = Parser(prog=prog, description=f"Streaming speech translation: {DESCRIPTION}.", examples=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"speech-translate {__version__}")
    parser.add_argument(
        "--print-completion",
        action=_Print,
        choices=("bash", "zsh", "fish"),
        metavar="SHELL",
        help="print a script that completes commands and options in bash, zsh or fish",
    )
    parser.add_argument("--print-manual", action=_Print, nargs=0, help="print the manual page, for man")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, what in COMMANDS.items():
        commands.add_parser(name, help=what)
    if argv and Path(argv[0]).exists():
        parser.error(f"{argv[0]} is not a command; to write subtitles of a recording: {prog} translate {argv[0]}")
    parser.parse_args(argv)
    return 0


def main() -> NoReturn:
    """Run the command that the process's first argument names, and end the process."""
    prog = "python -m pipeline" if Path(sys.argv[0]).name == "__main__.py" else "speech-translate"
    if len(sys.argv) > 1 and (name := sys.argv[1]) in COMMANDS:
        del sys.argv[1]
        module = import_module("..bench.__main__" if name == "bench" else f"..{name}", __package__)
        module.main(f"{prog} {name}")
    main_program(partial(run, prog=prog))
