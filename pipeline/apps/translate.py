"""python -m pipeline.translate: subtitle files from recordings, or from other subtitles, as fast as the machine allows.

Give files, or folders to search for recordings. Existing subtitles are kept, unless they have no cue, and those that
an interrupted run began are finished; --overwrite replaces them. The subtitles of NAME.wav are NAME.srt, or
NAME.wav.srt if the folder has another recording called NAME.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from ..config import PipelineConfig
from ..errors import UsageError
from ..run.worker import Worker
from ..sinks.files import FORMATS
from .bars import Bar, Bars
from .cli import (
    Parser,
    add_verbosity_arguments,
    description_of,
    is_told,
    report,
    set_verbosity,
    some_path,
    some_text,
    tell_loading,
    whole_number,
)
from .options import add_audio_track_argument, add_layout_arguments, add_model_arguments, configured, naming_demo
from .outputs import language_tags
from .recording_run import Options, make_folder, open_recording, translate_recording
from .recordings import check_unused, plan, read_manifest
from .results import Result, plain, table
from .several import translate_in_processes
from .shards import parse_shard
from .speakers import speaker_names
from .subtitle_files import SubtitleOptions, translate_subtitles, with_subtitles

# Milliseconds of a recording per recogniser window: 20 s less Whisper's padding. The encoder takes half as much time again
# or more per second of speech in longer windows; see ``pipeline.asr.whisper``.
_PACK_MS = 19_000
# Pauses of a recording up to this length are heard too: in them are words that the detector misses, and a window sounds as it was
# said. (Ten recordings of quick turns, 5,556 words: 616 wrong and 81 lost in runs of three or more, instead of 700 and 130. 109 s
# of speech take 5 s either way, with 2 to 5 s of pause after every 6 s of it 12 s instead of 8.)
_FILL_MS = 6_000
_EXAMPLES = (
    "%(prog)s talk.mp3 --config demo",
    "%(prog)s recordings --output-dir subtitles --format srt,vtt --bilingual",
    "%(prog)s film.mkv --source en --target zh,de --audio-track 2",
    "%(prog)s film.en.srt --config demo --bilingual",
)

if TYPE_CHECKING:
    from ..loading import Models


def arguments(prog: str = "python -m pipeline.translate") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    source = parser.add_argument_group("input")
    source.add_argument(
        "audio",
        nargs="*",
        type=some_path,
        metavar="AUDIO",
        help="recordings, subtitle files, or folders that hold some",
    )
    source.add_argument(
        "--manifest",
        type=some_path,
        metavar="FILE",
        help="a text file that names recordings, one a line; - is standard input",
    )
    add_audio_track_argument(source)
    source.add_argument(
        "--speakers",
        type=some_text,
        metavar="NAME,…",
        help="each channel of the recordings has one speaker, as in a call: their names, or 1,2; each is recognised on its own, "
        "and the subtitles say who speaks",
    )
    files = parser.add_argument_group("subtitle files")
    files.add_argument(
        "--output-dir",
        type=some_path,
        metavar="D",
        help="folder for the subtitle files, created if missing (default: beside each recording)",
    )
    files.add_argument(
        "--format", metavar="F,…", help=f"any of {','.join(FORMATS)} (default: srt; for subtitles their own format)"
    )
    files.add_argument(
        "--lang-suffix",
        action="store_true",
        help="add the target language to the file names, as players expect: NAME.zh.srt; always on for several targets",
    )
    files.add_argument("--overwrite", action="store_true", help="replace existing subtitles")
    add_layout_arguments(files)
    spread = parser.add_argument_group("several processes or machines")
    spread.add_argument(
        "--processes",
        type=whole_number(1, 256),
        default=1,
        metavar="N",
        help="translate N recordings at once, each in a process of its own (default: 1)",
    )
    spread.add_argument(
        "--shard",
        type=some_text,
        metavar="I/N",
        help="translate only the I-th of N shares of the recordings, for several machines that see the same folders; auto/N in "
        "an indexed Kubernetes job, auto in a Slurm array",
    )
    add_model_arguments(parser)
    add_verbosity_arguments(parser)
    return parser


def formats(asked: str) -> list[str]:
    """The formats in a comma-separated list, each once."""
    kinds = list(dict.fromkeys(kind.strip() for kind in asked.split(",")))
    for kind in kinds:
        if kind not in FORMATS:
            raise UsageError(f"unknown format {kind!r}; allowed are {', '.join(FORMATS)}")
    return kinds


def for_recordings(config: PipelineConfig) -> PipelineConfig:
    """The configuration with the settings of recordings, where it does not say otherwise."""
    if config.asr.join_ms is None:
        config = replace(config, asr=replace(config.asr, join_ms=_PACK_MS))
    if config.vad.fill_ms is None and config.asr.join_ms and config.languages.only_spoken is not None:
        room_ms = min(config.vad.max_segment_ms, config.overload.max_segment_ms) - config.vad.opening_ms
        config = replace(config, vad=replace(config.vad, fill_ms=max(0, min(_FILL_MS, room_ms - 1))))
    return replace(config, drafts=replace(config.drafts, enabled=False))  # so that no draft model is loaded


async def translate_all(results: Sequence[Result], options: Options) -> None:
    """Do every job, one after another, and fill in its result. A failure ends its recording, not the others."""
    models: Models | None = None
    with ExitStack() as stack:
        bars = Bars(stack, len(results))
        for number, result in enumerate(results, 1):
            sources = open_recording(result, options)
            if sources is not None:
                models = models or await _load(options.config)
                with Bar(bars, result.job.recording.name, number) as bar:
                    await translate_recording(result, sources, options, models, bar)
                    if result.outcome in ("done", "finished"):
                        bar.finished()
            bars.ended()
            if result.error:
                report(result.error)


async def _load(config: PipelineConfig) -> Models:
    tell_loading(config.asr.model)
    from ..loading import load_models

    loader = Worker("model loading")
    try:
        return await loader.run(partial(load_models, config))
    finally:
        loader.close()


def run(argv: list[str], prog: str = "python -m pipeline.translate") -> int:
    options = arguments(prog).parse_args(argv)
    set_verbosity(options)
    config = for_recordings(configured(options))
    shard = parse_shard(options.shard) if options.shard else None
    speakers = speaker_names(options.speakers) if options.speakers else ()
    named = options.audio + (read_manifest(options.manifest) if options.manifest else [])
    if not named:
        raise UsageError("no recording is named; give AUDIO or --manifest")
    named, subtitles = with_subtitles(named, config.languages.targets)
    kinds = formats(options.format) if options.format else []
    if subtitles:
        mine = subtitles if shard is None else subtitles[shard.number - 1 :: shard.count]
        good = translate_subtitles(mine, SubtitleOptions(config, kinds, options.output_dir, options.overwrite))
        if not (good and named):
            return 0 if good else 1
    tags = language_tags(config.languages.targets, always=options.lang_suffix)
    jobs = plan(named, kinds or ["srt"], options.output_dir, tags)
    if shard is not None:
        jobs = shard.of(jobs)
    check_unused(jobs)
    results = [Result(job) for job in jobs]
    if options.output_dir is not None:
        make_folder(options.output_dir)
    what = Options(config, options.overwrite, options.audio_track, speakers, aside=shard is not None)
    interrupted = False
    try:
        if options.processes > 1 and len(jobs) > 1:
            translate_in_processes(results, what, options.processes)
        else:
            with naming_demo(options):
                asyncio.run(translate_all(results, what))
    except KeyboardInterrupt:
        interrupted = True
    if is_told():
        if sys.stdout is not None and sys.stdout.isatty():
            Console(highlight=False).print(table(results))
        else:
            print(*plain(results), sep="\n")
    if interrupted:
        again = "the same command without --overwrite" if options.overwrite else "the same command"
        kept = "; it keeps old subtitles of recordings that were not begun" if options.overwrite else ""
        print(f"interrupted: {again} resumes the run{kept}", file=sys.stderr)
        return 130
    return 1 if any(result.failed for result in results) else 0
