"""python -m pipeline.translate: subtitle files from recordings, as fast as the machine allows.

Give files, or folders to search for recordings. Existing subtitles are kept, unless they have no cue, and those that
an interrupted run began are finished; --overwrite replaces them. The subtitles of NAME.wav are NAME.srt, or
NAME.wav.srt if the folder has another recording called NAME.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pipeline.apps.cli import Parser, description_of, report, some_path
from pipeline.apps.journal import JournalSink, KnownSpeech, KnownTranslation, header
from pipeline.apps.options import add_audio_track_argument, add_bilingual_argument, add_model_arguments, configured
from pipeline.apps.outputs import Output, language_tags
from pipeline.apps.recordings import Begin, Job, begin, labels_of, plan
from pipeline.audio.recording import Recording
from pipeline.config import PipelineConfig
from pipeline.errors import PipelineError, StageError, UsageError
from pipeline.events import EndOfInput, PipelineEvent, Transcript, Translation
from pipeline.names import escaped, shell_word
from pipeline.run.worker import Worker
from pipeline.sinks.blank import is_blank
from pipeline.sinks.files import FORMATS, open_sinks, sink_makers
from pipeline.sinks.sink import Sink, close_all, write_all

# Milliseconds of a recording per recogniser window: Whisper's 30 s less its padding.
_PACK_MS = 28_000
_EXAMPLES = (
    "%(prog)s talk.mp3 --config demo",
    "%(prog)s recordings --output-dir subtitles --format srt,vtt --bilingual",
    "%(prog)s film.mkv --source en --target zh,de --audio-track 2",
)
# How many withheld stretches the table names one by one; the JSONL has all.
_NAMED = 3

if TYPE_CHECKING:
    from pipeline.loading import Models
    from pipeline.run.stats import PipelineStats


def arguments(prog: str = "python -m pipeline.translate") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    source = parser.add_argument_group("input")
    source.add_argument(
        "audio", nargs="+", type=some_path, metavar="AUDIO", help="recordings, or folders that hold some"
    )
    add_audio_track_argument(source)
    files = parser.add_argument_group("subtitle files")
    files.add_argument(
        "--output-dir",
        type=some_path,
        metavar="D",
        help="folder for the subtitle files, created if missing (default: beside each recording)",
    )
    files.add_argument("--format", default="srt", metavar="F,…", help=f"any of {','.join(FORMATS)} (default: srt)")
    files.add_argument(
        "--lang-suffix",
        action="store_true",
        help="add the target language to the file names, as players expect: NAME.zh.srt; always on for several targets",
    )
    files.add_argument("--overwrite", action="store_true", help="replace existing subtitles")
    add_bilingual_argument(files)
    add_model_arguments(parser)
    return parser


@dataclass
class Result:
    """The result of a job."""

    job: Job
    outcome: str = "not begun"
    failed: bool = False
    audio_s: float = 0.0
    elapsed_s: float = 0.0
    sentences: int = 0
    withheld: str = ""
    """Speech that was heard but withheld, for display."""
    outputs: dict[Output, Path] = field(default_factory=dict)
    how: Begin = Begin.NEW
    damage: tuple[str, ...] = ()
    """What was missing in the recording, for display."""
    truncated: int = 0
    """Number of sentences whose translation looped or reached a limit and was cut."""
    without_cue: bool = False
    """Whether an output was written but has no cue."""

    @property
    def summary(self) -> str:
        """The outcome, for display."""
        if self.without_cue:
            if self.withheld:
                return "no subtitles: everything heard was withheld; is --source right? The next run tries again"
            reason = "the translation is empty" if self.sentences else "no speech was found"
            return f"no subtitles: {reason}; the next run tries again"
        if not self.outputs:
            return self.outcome
        said = f"{self.outcome}, under a shorter name" if self.job.is_shortened else self.outcome
        gaps = [f"the recording is {' and '.join(self.damage)}"] if self.damage else []
        if self.truncated:
            cut = "1 translation was" if self.truncated == 1 else f"{self.truncated} translations were"
            gaps.append(f"{cut} cut short")
        return f"{said}, but {' and '.join(gaps)}" if gaps else said

    @property
    def complete(self) -> bool:
        """Whether the job is done and nothing is known to be missing."""
        return self.outcome in ("done", "finished") and not (self.without_cue or self.damage or self.truncated)

    def fail(self, error: PipelineError) -> None:
        self.outcome, self.failed = "failed", True
        report(error)

    def count(self, stats: PipelineStats) -> None:
        self.audio_s, self.sentences = stats.audio_s, stats.sentences
        self.elapsed_s = time.perf_counter() - stats.started
        self.withheld = stats.withheld_summary(_NAMED)


def formats(asked: str) -> list[str]:
    """The formats in a comma-separated list, each once.

    Raises:
        UsageError: one is not known.
    """
    kinds = list(dict.fromkeys(kind.strip() for kind in asked.split(",")))
    for kind in kinds:
        if kind not in FORMATS:
            raise UsageError(f"unknown format {kind!r}; allowed are {', '.join(FORMATS)}")
    return kinds


async def translate_all(
    results: Sequence[Result], config: PipelineConfig, *, overwrite: bool, audio_track: int | None = None
) -> None:
    """Do every job and fill in its result. A failure ends its recording, not the others.

    Args:
        audio_track: of each recording, counted from 1; None chooses by the source language.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    models: Models | None = None
    progress = Progress(*columns, console=Console(stderr=True))
    with ExitStack() as stack:
        for result in results:
            try:
                # Check now: another run may have written files while earlier recordings were translated.
                result.how, outputs = begin(result.job, config, overwrite=overwrite, audio_track=audio_track)
                if result.how is Begin.SKIP:
                    result.outcome = "already there: left as it is, --overwrite replaces it"
                    continue
                source = Recording(result.job.recording, language=config.languages.only_spoken, track=audio_track)
            except PipelineError as error:
                result.fail(error)
                continue
            if models is None:
                models = await _load(config)
                stack.enter_context(progress)  # after the models' download, which has its own progress bar
            if source.track_note is not None:
                progress.console.print(source.track_note, markup=False, highlight=False, soft_wrap=True)
            result.outcome, result.outputs = "interrupted", outputs
            name = escaped(source.path.name)
            task = progress.add_task(name, total=source.duration_s, done="")
            try:
                begun_with = header(result.job.recording, config, labels_of(result.job, outputs), audio_track)
                await _translate_one(result, source, config, models, begun_with, partial(progress.update, task))
                result.outcome = "finished" if result.how is Begin.RESUME else "done"
                blank = {output for output, path in outputs.items() if is_blank(path, output[0])}
                shown = {kind for kind, target in outputs if (kind, target) not in blank}
                result.without_cue = any(kind not in shown for kind, _ in outputs)
                said = f"{name}: {progress.tasks[0].fields['done']}"
                progress.console.print(said, markup=False, highlight=False, soft_wrap=True)
            except PipelineError as error:
                result.fail(error)
            finally:
                progress.remove_task(task)  # a terminal has no room for many progress bars


async def _load(config: PipelineConfig) -> Models:
    from pipeline.loading import load_models

    loader = Worker("model loading")
    try:
        return await loader.run(partial(load_models, config))
    finally:
        loader.close()


async def _translate_one(
    result: Result,
    source: Recording,
    config: PipelineConfig,
    models: Models,
    begun_with: dict[str, Any],
    shown: Callable[..., None],
) -> None:
    """Write the result's files.

    Args:
        begun_with: the journal's header.
        shown: receives progress, with the arguments of ``Progress.update``.
    """
    from pipeline.translator import SpeechTranslator

    known = result.job.journal
    speech: KnownSpeech | None = None
    pending: list[PipelineEvent] = []
    end: EndOfInput | None = None
    with ExitStack() as stack:
        sinks = _open_sinks(result, config, begun_with, stack)
        if result.how is Begin.RESUME:
            speech = KnownSpeech(models.recognizer, known)
            models = replace(
                models,
                recognizer=speech,
                translations={
                    target: KnownTranslation(model, known, target) for target, model in models.translations.items()
                },
            )
        writer = Worker("subtitles")
        stack.callback(writer.join, 1.0)  # finish writing before the sinks are closed
        stack.callback(writer.close)
        async with SpeechTranslator(config, models) as translator, aclosing(translator.run(source)) as events:
            async for event in events:
                if isinstance(event, EndOfInput):  # write it last; a broken source may be resumed
                    end = event
                else:
                    pending.append(event)
                    # If the recording breaks earlier than in the previous run, its last sentence ends there, and other
                    # events come than before. While the journal has more, wait for the next transcript, so that files
                    # do not get shorter.
                    if isinstance(event, Transcript) or speech is None or not speech.has_more:
                        await writer.run(partial(_write, sinks, pending))
                        pending = []
                result.count(translator.stats)
                result.truncated += isinstance(event, Translation) and event.truncated
                if isinstance(event, Transcript | EndOfInput):
                    done_s = event.end_s if isinstance(event, Transcript) else event.duration_s
                    length = f"{source.duration_s:.0f} s" if source.duration_s else "?"
                    speed = done_s / max(1e-9, result.elapsed_s)
                    shown(completed=done_s, done=f"{done_s:.0f} s of {length}, {speed:.1f} times real time")
            if end is not None:
                await writer.run(partial(_write, sinks, [*pending, end]))
            lost = translator.stats.lost_languages
        result.damage = tuple(source.damage)
        shown(total=result.audio_s, completed=result.audio_s)
    if end is None:  # cancellation does not reach this line
        raise StageError("pipeline", RuntimeError("it ended before its input did"))
    if lost:
        raise StageError("NMT", RuntimeError("; ".join(f"into {language}: {why}" for language, why in lost.items())))
    known.unlink(missing_ok=True)


def _write(sinks: Sequence[Sink], events: Sequence[PipelineEvent]) -> None:
    for event in events:
        write_all(sinks, event)


def _open_sinks(result: Result, config: PipelineConfig, begun_with: dict[str, Any], stack: ExitStack) -> list[Sink]:
    """Open the journal, then the subtitle files; ``stack`` closes them.

    Everything in a file is already in the journal, so that the next run knows of it whatever happens.
    """
    job, resume = result.job, result.how is Begin.RESUME
    _make_folder(job.journal.parent)
    sinks: list[Sink] = [JournalSink(job.journal, begun_with, resume=resume)]
    stack.callback(sinks[0].close)
    makers = sink_makers(config.subtitles, resume=True)
    files = open_sinks(result.outputs, job.recording, makers, config.languages.targets)
    stack.callback(close_all, files)
    return sinks + files


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot create the folder {folder} ({error.strerror}); choose another with --output-dir"
        ) from error


def summary(results: Sequence[Result]) -> Table:
    """The results as a table."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("recording", overflow="fold")
    for name in ("audio", "sentences", "times real time"):
        table.add_column(name, justify="right")
    table.add_column("heard and not shown", overflow="fold")
    table.add_column("outcome", overflow="fold")
    for result in results:
        numbers = ["", "", ""]
        if result.audio_s:
            speed = result.audio_s / max(1e-9, result.elapsed_s)
            numbers = [f"{result.audio_s:.0f} s", str(result.sentences), f"{speed:.1f}"]
        files = "".join(f"\n{escaped(str(path))}" for path in result.outputs.values() if os.path.isfile(path))
        style = "red" if result.failed else "green" if result.complete else "yellow"
        recording, outcome = Text(escaped(str(result.job.recording))), Text(result.summary + files, style=style)
        table.add_row(recording, *numbers, Text(result.withheld), outcome)
    return table


def resume_hint(results: Sequence[Result], *, overwrite: bool) -> str:
    """How to finish an interrupted run, for display."""
    if not overwrite:
        return "the same command resumes the run"
    # Without --overwrite, subtitles from before would be kept.
    old = [
        r.job
        for r in results
        if r.outcome in ("not begun", "interrupted")
        and not os.path.isfile(r.job.journal)  # exists from the first result on
        and len(r.job.missing()) < len(r.job.outputs)
    ]
    rest = (
        f"; not begun, so still to be overwritten: {' '.join(shell_word(job.recording) for job in old)}" if old else ""
    )
    return f"the same command without --overwrite resumes the run{rest}"


def run(argv: list[str], prog: str = "python -m pipeline.translate") -> int:
    options = arguments(prog).parse_args(argv)
    config = configured(options)
    if config.asr.join_ms is None:
        config = replace(config, asr=replace(config.asr, join_ms=_PACK_MS))
    config = replace(config, drafts=replace(config.drafts, enabled=False))  # so that no draft model is loaded
    tags = language_tags(config.languages.targets, always=options.lang_suffix)
    jobs = plan(options.audio, formats(options.format), options.output_dir, tags)
    results = [Result(job) for job in jobs]
    if options.output_dir:
        _make_folder(options.output_dir)
    interrupted = False
    try:
        asyncio.run(translate_all(results, config, overwrite=options.overwrite, audio_track=options.audio_track))
    except KeyboardInterrupt:
        interrupted = True
    # Without a terminal, do not wrap paths: the width has room for two paths of the maximum length.
    console, table = Console(highlight=False), summary(results)
    if not console.is_terminal:
        console.width = Measurement.get(console, console.options.update_width(20_000), table).maximum
    console.print(table)
    if interrupted:
        print(f"interrupted: {resume_hint(results, overwrite=options.overwrite)}", file=sys.stderr)
        return 130
    return 1 if any(result.failed for result in results) else 0
