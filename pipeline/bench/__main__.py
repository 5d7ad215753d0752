"""python -m pipeline.bench: run a benchmark on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from ..apps import entry_point
from ..console import Parser, description_of, importing


class _Command(NamedTuple):
    """A subcommand, defined by the module of the same name. ``help`` is the first line of its docstring."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS: dict[str, tuple[str, ...]] = {
    "nmt": ("%(prog)s --model firefox/en-pt-tiny", "%(prog)s --model my-model --rounds 3 --json speed.json"),
    "live": ("%(prog)s --config demo", "%(prog)s talk.wav --config demo --compare --json"),
    "texts": ("%(prog)s pairs.tsv", "%(prog)s pairs.tsv --model firefox/pt-en-tiny --back --show 10"),
    "asr": ("%(prog)s recordings --threads 1", "%(prog)s recordings --asr small --hypotheses 1,5"),
    "speech": ("%(prog)s recordings", "%(prog)s recordings --reading reading.wav"),
    "capacity": (
        "%(prog)s talk.wav --config demo --lag 2",
        "%(prog)s --config demo --sessions 4 --readers 20 --seconds 600",
    ),
}
"""Modules of this package, with examples. They import slow or optional dependencies only when they run."""
_EXAMPLES = ("%(prog)s live --config demo", "%(prog)s nmt --model firefox/en-pt-tiny", "%(prog)s asr --help")


def _command(name: str) -> _Command:
    with importing():
        module = import_module(f".{name}", __package__)
    what = cast(str, module.__doc__).splitlines()[0].replace("``", "")
    return _Command(what, module.add_arguments, module.run)


def arguments(prog: str = "python -m pipeline.bench") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, examples in COMMANDS.items():
        command = _command(name)
        subparser = commands.add_parser(name, help=command.help, description=command.help, examples=examples)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def run(argv: list[str], prog: str = "python -m pipeline.bench") -> int:
    options = arguments(prog).parse_args(argv)
    status: int = options.run(options)
    return status


main = entry_point(__name__, "python -m pipeline.bench")

if __name__ == "__main__":
    main()
