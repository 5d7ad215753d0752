"""python -m pipeline.models: list, fetch, compile and inspect models."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from pipeline.apps.cli import Parser, importing, some_path
from pipeline.errors import UsageError
from pipeline.names import escaped
from pipeline.nmt.inspection import as_text, inspect_model


def arguments() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m pipeline.models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list the known models, and where each one is")
    listing.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="one more configuration to include"
    )
    listing.add_argument(
        "--pairs", action="store_true", help="list the language pairs with a known translation model instead"
    )
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=run_list)
    pull = commands.add_parser("pull", help="fetch models, or resume an interrupted download")
    pull.add_argument(
        "name", metavar="NAME", help="a configuration (en-zh, or a TOML file), a hub id, or a Whisper size"
    )
    pull.add_argument("--revision", metavar="R", help="commit, tag or branch of a hub id's repository")
    pull.set_defaults(run=run_pull)
    compiled = commands.add_parser(
        "compile", help="convert a translation model to the streaming layout, the fastest to decode"
    )
    compiled.add_argument("source", type=some_path, metavar="SRC", help="a checkpoint, or an fp32 ONNX export")
    compiled.add_argument("destination", type=some_path, metavar="DST", help="a new directory")
    compiled.add_argument(
        "--weights",
        choices=["fp32", "int8", "int4", "auto"],
        default="auto",
        help="default: auto, the fastest that is as good as fp32 on the sample, or int8 without one",
    )
    compiled.add_argument(
        "--sample",
        type=some_path,
        metavar="FILE",
        help="text to measure with; each line is a sentence, a tab, and its translation",
    )
    compiled.add_argument(
        "--shortlist", type=some_path, metavar="FILE", help="target-language text: keep only its most frequent pieces"
    )
    compiled.add_argument(
        "--shortlist-size", type=int, metavar="N", help="maximum number of output rows (default: 8192)"
    )
    compiled.add_argument(
        "--alignment", type=_layer_and_head, metavar="LAYER:HEAD", help="also output the cross-attention of this head"
    )
    compiled.add_argument("--report", action="store_true", help="print size, agreement with fp32 and speed")
    compiled.set_defaults(run=run_compile)
    inspect = commands.add_parser("inspect", help="show what a model directory contains and whether it will run")
    inspect.add_argument("directory", type=some_path, metavar="DIR")
    inspect.add_argument("--file-suffix", default="", help='precision, such as "_quantized"')
    inspect.add_argument("--json", action="store_true", help="the report as JSON")
    inspect.set_defaults(run=run_inspect)
    return parser


def _layer_and_head(text: str) -> tuple[int, int]:
    layer, colon, head = text.partition(":")
    if not (colon and layer.isdecimal() and head.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no LAYER:HEAD, such as 5:0")
    return int(layer), int(head)


def run_list(options: argparse.Namespace) -> int:
    with importing():
        # Slow: imports the recogniser's libraries.
        from pipeline.apps.catalog import (
            as_table,
            known_speech_models,
            named_models,
            pair_states,
            pairs_as_table,
            state_of,
        )
    from pipeline.resources import named_configs

    if options.pairs:
        if options.config:
            raise UsageError("--pairs shows the bundled table, which no configuration adds to; leave --config out")
        pairs = pair_states()
        if options.json:
            table = [dataclasses.asdict(pair) | dataclasses.asdict(state) for pair, state in pairs]
            print(json.dumps(table, ensure_ascii=False, indent=1))
        else:
            print(pairs_as_table(pairs))
        return 0
    models = named_models([*named_configs(), *options.config])
    named = {model.name for model in models}
    models += [model for model in known_speech_models() if model.name not in named]
    rows = [(model, state_of(model)) for model in models]
    if options.json:
        fields = ("kind", "name", "revision", "configs")
        found = [{key: getattr(model, key) for key in fields} | dataclasses.asdict(state) for model, state in rows]
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        print(as_table(rows))
    return 0


def run_pull(options: argparse.Namespace) -> int:
    with importing():
        from pipeline.apps.catalog import models_called, pull  # slow: imports the recogniser's libraries
    from pipeline.run.progress import progress_bar

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


def run_compile(options: argparse.Namespace) -> int:
    from rich.console import Console

    if options.shortlist is None and options.shortlist_size is not None:
        raise UsageError("--shortlist-size says how much of --shortlist is kept; give --shortlist, too")
    with importing():
        from pipeline.nmt.compiler.build import SHORTLIST_SIZE, compile_model  # slow: imports onnx
    from pipeline.nmt.compiler.report import as_table
    from pipeline.run.progress import progress_bar

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
    if options.report:
        Console().print(as_table(report))
    print(f"{escaped(str(options.destination))}: {report.weights}, {report.rows} of {report.vocabulary} output rows")
    return 0


def run_inspect(options: argparse.Namespace) -> int:
    report = inspect_model(options.directory, options.file_suffix)
    print(json.dumps(dataclasses.asdict(report), ensure_ascii=False, indent=1) if options.json else as_text(report))
    return 0 if report.runs else 1


def run(argv: list[str]) -> int:
    options = arguments().parse_args(argv)
    status: int = options.run(options)
    return status
