"""python -m pipeline.models: list, fetch, copy, compile and inspect models."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from typing import NamedTuple

from ..backends import as_text, inspect_model
from ..console import Parser, description_of, importing, some_path
from ..errors import UsageError
from ..names import escaped


class _Command(NamedTuple):
    """A subcommand."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    help: str
    examples: tuple[str, ...]
    """Invocations, each with what it does, for the help; see ``Parser``."""


_EXAMPLES = ("%(prog)s list --pairs", "%(prog)s pull en-zh", "%(prog)s compile opus-mt-en-de my-model")


def arguments(prog: str = "python -m pipeline.models") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, command in _COMMANDS.items():
        description = command.help[:1].upper() + command.help[1:]
        subparser = commands.add_parser(name, help=command.help, description=description, examples=command.examples)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="one more configuration to include"
    )
    parser.add_argument(
        "--pairs", action="store_true", help="list the language pairs with a known translation model instead"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def _add_pull_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a configuration (en-zh, or a TOML file), a hub id, a Whisper size, or kokoro, for voices",
    )
    parser.add_argument("--revision", metavar="R", help="commit, tag or branch of a hub id's repository")


def _add_fetch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--demo", action="store_true", required=True, help="what the demo's configurations need")
    parser.add_argument(
        "--models", type=some_path, required=True, metavar="FOLDER", help="where: runs take it as --models"
    )


def _add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=some_path, metavar="SRC", help="a checkpoint, or an fp32 ONNX export")
    parser.add_argument("destination", type=some_path, metavar="DST", help="a new directory")
    graphs = parser.add_argument_group("weights and outputs")
    graphs.add_argument(
        "--weights",
        choices=["fp32", "int8", "int4", "auto"],
        default="auto",
        help="default: auto, the fastest that is as good as fp32 on the sample, or int8 without one",
    )
    graphs.add_argument(
        "--sample",
        type=some_path,
        metavar="FILE",
        help="text to measure with; each line is a sentence, a tab, and its translation",
    )
    graphs.add_argument(
        "--shortlist", type=some_path, metavar="FILE", help="target-language text: keep only its most frequent pieces"
    )
    graphs.add_argument("--shortlist-size", type=int, metavar="N", help="maximum number of output rows (default: 8192)")
    graphs.add_argument(
        "--alignment",
        type=_layer_and_head,
        metavar="LAYER:HEAD",
        help="the head of cross-attention that was trained to align (default: the best one on the sample)",
    )


def _add_inspect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=some_path, metavar="DIR", help="the directory of a translation model")
    parser.add_argument("--file-suffix", default="", metavar="S", help='precision, such as "_quantized"')
    parser.add_argument("--json", action="store_true", help="the report as JSON")


def _layer_and_head(text: str) -> tuple[int, int]:
    layer, colon, head = text.partition(":")
    if not (colon and layer.isdecimal() and head.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYER:HEAD; give two numbers, such as 5:0")
    return int(layer), int(head)


def run_list(options: argparse.Namespace) -> int:
    with importing():
        # Slow: imports the recogniser's libraries.
        from .known_models import as_table, known_speech_models, named_models, pair_states, pairs_as_table, state_of
    from ..config import named_configs

    if options.pairs:
        if options.config:
            raise UsageError("--pairs lists the bundled table, which configurations cannot extend; leave --config out")
        pairs = pair_states()
        if options.json:
            table = [dataclasses.asdict(pair) | dataclasses.asdict(state) for pair, state in pairs]
            print(json.dumps(table, ensure_ascii=False, indent=1))
        else:
            print(pairs_as_table(pairs))
        return 0
    models = named_models([*named_configs(), *options.config])
    named = {model.ref.source for model in models}
    models += [model for model in known_speech_models() if model.ref.source not in named]
    rows = [(model, state_of(model)) for model in models]
    if options.json:
        entries = [
            {name: getattr(model.ref, name) for name in ("revision", "licence")}
            | {"kind": model.kind, "name": model.ref.source, "configs": model.configs}
            | dataclasses.asdict(state)
            for model, state in rows
        ]
        print(json.dumps(entries, ensure_ascii=False, indent=1))
    else:
        print(as_table(rows))
    return 0


def run_pull(options: argparse.Namespace) -> int:
    with importing():
        from .known_models import models_called, pull  # slow: imports the recogniser's libraries
    from ..store import progress_bar

    models = models_called(options.name, options.revision)
    try:
        for model in models:
            with progress_bar() as progress:
                done = pull(model, progress)
            print(escaped(done), flush=True)
    except KeyboardInterrupt:
        print("interrupted; what arrived is kept: run this again to resume", file=sys.stderr)
        raise
    return 0


def run_fetch(options: argparse.Namespace) -> int:
    with importing():
        from .known_models import copy_demo  # slow: imports the recogniser's libraries
    from ..store import progress_bar

    with progress_bar() as progress:
        done = list(copy_demo(options.models, progress))
    print(*map(escaped, done), sep="\n")
    return 0


def run_compile(options: argparse.Namespace) -> int:
    if options.shortlist is None and options.shortlist_size is not None:
        raise UsageError(
            "--shortlist-size is the size of the list made from --shortlist, which is missing; give --shortlist FILE"
        )
    with importing():
        from ..backends import SHORTLIST_SIZE, compile_model  # slow: imports onnx
    from ..store import progress_bar

    with progress_bar() as progress:
        report = compile_model(
            options.source,
            options.destination,
            weights=options.weights,
            sample=options.sample,
            shortlist=options.shortlist,
            shortlist_size=SHORTLIST_SIZE if options.shortlist_size is None else options.shortlist_size,
            alignment=options.alignment,
            progress=progress,
        )
    print(f"{escaped(str(options.destination))}: {report.weights}, {report.rows} of {report.vocabulary} output rows")
    return 0


def run_inspect(options: argparse.Namespace) -> int:
    report = inspect_model(options.directory, options.file_suffix)
    print(json.dumps(dataclasses.asdict(report), ensure_ascii=False, indent=1) if options.json else as_text(report))
    return 0 if report.runs else 1


_COMMANDS: dict[str, _Command] = {
    "list": _Command(
        _add_list_arguments, run_list, "list the known models, and where each one is", ("%(prog)s", "%(prog)s --pairs")
    ),
    "pull": _Command(
        _add_pull_arguments,
        run_pull,
        "fetch models, or resume an interrupted download",
        ("%(prog)s en-zh", "%(prog)s Helsinki-NLP/opus-mt-en-de"),
    ),
    "fetch": _Command(
        _add_fetch_arguments,
        run_fetch,
        "copy models into a folder, for machines without a network or the packages",
        ("%(prog)s --demo --models FOLDER",),
    ),
    "compile": _Command(
        _add_compile_arguments,
        run_compile,
        "convert a translation model to the streaming layout, the fastest to decode",
        ("%(prog)s opus-mt-en-de my-model", "%(prog)s opus-mt-en-de my-model --weights int4"),
    ),
    "inspect": _Command(
        _add_inspect_arguments,
        run_inspect,
        "show what a model directory contains and whether it will run",
        ("%(prog)s models/demo/nmt-en-zh", "%(prog)s opus-mt-en-de/onnx --file-suffix _quantized"),
    ),
}


def run(argv: list[str], prog: str = "python -m pipeline.models") -> int:
    options = arguments(prog).parse_args(argv)
    status: int = options.run(options)
    return status
