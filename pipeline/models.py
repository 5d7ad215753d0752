"""python -m pipeline.models: look at translation models."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from pipeline.cli import main_program
from pipeline.nmt.inspection import as_text, inspect_model


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipeline.models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    inspect = commands.add_parser("inspect", help="say what a model directory holds and whether it will run")
    inspect.add_argument("directory", type=Path, metavar="DIR")
    inspect.add_argument("--file-suffix", default="", help='precision, such as "_quantized"')
    inspect.add_argument("--json", action="store_true", help="the report as JSON")
    return parser


def run(argv: list[str]) -> int:
    options = arguments().parse_args(argv)
    report = inspect_model(options.directory, options.file_suffix)
    print(json.dumps(dataclasses.asdict(report), ensure_ascii=False, indent=1) if options.json else as_text(report))
    return 0 if report.runs else 1


if __name__ == "__main__":
    main_program(run)
