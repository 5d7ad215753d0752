"""python -m pipeline.translate: recordings become subtitle files, as fast as the machine goes."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from pipeline.audio.recording import Recording
from pipeline.cli import main_program, report
from pipeline.config import PipelineConfig
from pipeline.errors import PipelineError, UsageError
from pipeline.events import EndOfInput, Transcript
from pipeline.live import add_model_arguments, configured
from pipeline.subtitles.files import FORMATS, open_sinks, sink_makers
from pipeline.subtitles.sink import write_all
from pipeline.worker import Worker

if TYPE_CHECKING:
    from pipeline.translator import Models


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipeline.translate", description=__doc__)
    parser.add_argument("audio", nargs="+", type=Path, metavar="AUDIO", help="recordings")
    parser.add_argument(
        "--output-dir", type=Path, required=True, metavar="D", help="where the subtitle files go; made if missing"
    )
    parser.add_argument("--format", default="srt", metavar="F,…", help=f"any of {','.join(FORMATS)} (default: srt)")
    add_model_arguments(parser)
    return parser


def planned(options: argparse.Namespace) -> list[tuple[Path, dict[str, Path]]]:
    """For each recording, the files to write: format → path.

    Raises:
        UsageError: an unknown format, a missing recording, or two recordings that would write the same file.
    """
    kinds = [kind.strip() for kind in options.format.split(",")]
    for kind in kinds:
        if kind not in FORMATS:
            raise UsageError(f"unknown format {kind!r}; allowed are {', '.join(FORMATS)}")
    plan: dict[str, Path] = {}
    for path in options.audio:
        if not os.path.isfile(path):  # Path.is_file raises for a name that is too long
            raise UsageError(f"no such file: {path}; give the paths of recordings")
        if path.stem in plan:
            raise UsageError(
                f"{plan[path.stem]} and {path} would both write {path.stem}.{kinds[0]}; rename one or run them apart"
            )
        plan[path.stem] = path
    return [(path, {kind: options.output_dir / f"{stem}.{kind}" for kind in kinds}) for stem, path in plan.items()]


async def translate_all(plan: list[tuple[Path, dict[str, Path]]], config: PipelineConfig) -> list[Path]:
    """Translate every recording; returns those that failed. A failure ends its recording, not the others."""
    from pipeline.translator import load_models

    loader = Worker("model loading")
    models = await loader.run(partial(load_models, config))
    loader.close()
    failed: list[Path] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for path, outputs in plan:
            task = progress.add_task(path.name, total=None, done="")
            try:
                await _translate_one(path, outputs, config, models, progress, task)
            except PipelineError as error:
                failed.append(path)
                report(error)
    return failed


async def _translate_one(
    path: Path, outputs: dict[str, Path], config: PipelineConfig, models: Models, progress: Progress, task: TaskID
) -> None:
    from pipeline.translator import SpeechTranslator

    source = Recording(path)
    progress.update(task, total=source.duration_s)
    sinks = open_sinks(outputs, path, sink_makers(config.subtitles))
    writer = Worker("subtitles")
    done = 0.0
    try:
        async with SpeechTranslator(config, models) as translator, aclosing(translator.run(source)) as events:
            async for event in events:
                await writer.run(partial(write_all, sinks, event))
                if isinstance(event, Transcript | EndOfInput):
                    done = event.end_s if isinstance(event, Transcript) else event.duration_s
                    speed = done / max(1e-9, time.perf_counter() - translator.stats.started)
                    length = f"{source.duration_s:.0f} s" if source.duration_s else "?"
                    shown = f"{done:.0f} s of {length}, {speed:.1f} times real time"
                    progress.update(task, completed=done, done=shown)
        progress.update(task, total=done, completed=done)
        progress.console.print(f"{path.name}: {translator.stats.summary()}", highlight=False)
    finally:
        writer.close()
        writer.join(1.0)  # no sink is closed while it is written to
        for sink in sinks:
            sink.close()


def run(argv: list[str]) -> int:
    options = arguments().parse_args(argv)
    plan = planned(options)
    config = configured(options)
    try:
        options.output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {options.output_dir} ({error.strerror}); choose another with --output-dir"
        ) from error
    failed = asyncio.run(translate_all(plan, config))
    for path, outputs in plan:
        print(f"{path}: {'failed' if path in failed else ', '.join(map(str, outputs.values()))}")
    return 1 if failed else 0


if __name__ == "__main__":
    main_program(run)
