"""Made from the parsers: scripts that complete the program's commands and options in a shell, and its manual page."""

from __future__ import annotations

import argparse
import os
from importlib import import_module

import shtab

from .. import __version__
from ..config import named_configs
from ..console import Parser
from ..errors import UsageError
from .commands import COMMANDS, DESCRIPTION

PROGRAM = "speech-translate"
_FOLDERS = {"D", "DIR", "FOLDER"}
_FILES = {"AUDIO", "FILE"}


def completion(shell: str) -> str:
    """The script for a shell that ``shtab`` knows."""
    parser = _whole_program()
    _complete_values(parser)
    return shtab.complete(parser, shell)


def manual_page() -> str:
    """The page speech-translate(1), in troff. For a process that ends after it: it sets COLUMNS."""
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError:
        raise UsageError(
            "argparse-manpage, which writes the page, is not installed; install it with: pip install argparse-manpage"
        ) from None
    os.environ["COLUMNS"] = "10000"  # argparse breaks no lines; troff does
    page = Manpage(_whole_program(), format="single-commands-section")
    page.description, page.source, page.manual = DESCRIPTION, f"{PROGRAM} {__version__}", "User Commands"
    return str(page)


def _whole_program() -> Parser:
    """A parser that has all commands with their options."""
    parser = Parser(prog=PROGRAM)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, what in COMMANDS.items():
        module = import_module("..bench.__main__" if name == "bench" else f".{name}", __package__)
        own_parser: Parser = module.arguments(f"{PROGRAM} {name}")
        # Its own --help is copied.
        commands.add_parser(name, parents=[own_parser], add_help=False, help=what)
    return parser


def _complete_values(parser: argparse.ArgumentParser) -> None:
    """Say how the values of arguments are completed: argparse does not know which are files, or configurations."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_values(command)
        elif action.dest == "config":
            vars(action)["complete"] = _CONFIGS
        elif action.metavar in _FILES:
            vars(action)["complete"] = shtab.FILE
        elif action.metavar in _FOLDERS:
            vars(action)["complete"] = shtab.DIRECTORY


_NAMES = " ".join(named_configs())
_CONFIGS = {
    "bash": "_speech_translate_configs",
    "zsh": f"({_NAMES})",
    "fish": _NAMES,
    "preamble": {
        "bash": f'_speech_translate_configs() {{\n  compgen -W "{_NAMES}" -- "$1"\n  compgen -f -X "!*.toml" -- "$1"\n}}'
    },
}
