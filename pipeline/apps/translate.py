"""python -m pipeline.translate: subtitle files from recordings, or from other subtitles, as fast as the machine allows.

Give files, or folders to search for recordings. Existing subtitles are kept, unless they have no cue, and those that
an interrupted run began are finished; --overwrite replaces them. The subtitles of NAME.wav are NAME.srt, or
NAME.wav.srt if the folder has another recording called NAME.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.console import Console

from ..archives import (
    POLL_S,
    Job,
    Options,
    Result,
    Turns,
    check_unused,
    language_tags,
    make_folder,
    plain_lines,
    plan,
    read_manifest,
    results_table,
)
from ..config import PipelineConfig
from ..console import (
    Bar,
    Bars,
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
from ..errors import UsageError
from ..media import FORMATS, SINKS
from ..names import STANDARD_OUTPUT
from .options import (
    AUTO_SPEAKERS,
    add_audio_track_argument,
    add_layout_arguments,
    add_model_arguments,
    configured,
    naming_demo,
)
from .subtitle_files import SubtitleOptions, translate_subtitles, with_subtitles

_EXAMPLES = (
    "%(prog)s talk.mp3 --config demo",
    "%(prog)s recordings --output-dir subtitles --format srt,vtt --bilingual",
    "%(prog)s film.mkv --source en --target zh,de --audio-track 2",
    "%(prog)s film.en.srt --config demo --bilingual",
)

if TYPE_CHECKING:
    from ..core import Models


def arguments(prog: str = "python -m pipeline.translate") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    source = parser.add_argument_group("input")
    source.add_argument(
        "audio",
        nargs="*",
        type=some_place,
        metavar="AUDIO",
        help="recordings, subtitle files, or folders that hold some; also s3://, gs:// or az:// addresses",
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
        f"and the subtitles say who speaks; {AUTO_SPEAKERS}: the voices in one channel are told apart, and numbered",
    )
    files = parser.add_argument_group("subtitle files")
    files.add_argument(
        "--output-dir",
        type=some_place,
        metavar="D",
        help="folder for the subtitle files, created if missing, or an s3://, gs:// or az:// address (default: beside each "
        "recording)",
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
    files.add_argument(
        "--strict",
        action="store_true",
        help="refuse files in another language than the one to translate from, instead of saying so: by their names, their text or "
        "their speech",
    )
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
        "--cluster",
        type=some_text,
        metavar="tcp://HOST:8786",
        help="translate on the workers of this Dask scheduler, which see the same folders",
    )
    spread.add_argument(
        "--claim",
        action="store_true",
        help="translate the recordings that no other machine has claimed: give the same command on as many as you like, which "
        "see the same folders",
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


def some_place(text: str) -> Path | str:
    """Argument type: a path, or the address of a folder or file in an object store."""
    return text if text.startswith(("s3://", "gs://", "az://")) else some_path(text)


def formats(asked: str) -> list[str]:
    """The formats in a comma-separated list, each once; ours in any case."""
    named = (kind.strip() for kind in asked.split(","))
    kinds = list(dict.fromkeys(kind.lower() if kind.lower() in FORMATS else kind for kind in named))
    for kind in kinds:
        if kind not in SINKS:
            raise UsageError(f"unknown format {kind!r}; allowed are {', '.join(SINKS)}")
    return kinds


def for_recordings(config: PipelineConfig) -> PipelineConfig:
    """The configuration without drafts, so that no draft model is loaded."""
    return replace(config, drafts=replace(config.drafts, enabled=False))


async def translate_all(results: Sequence[Result], options: Options, turns: Turns) -> None:
    """Do every job, one after another, and fill in its result. A failure ends its recording, not the others."""
    from ..archives import translate_job  # not for those that leave it to other processes

    models: Models | None = None

    async def load() -> Models:
        nonlocal models
        models = models or await _load(options.config)
        return models

    with ExitStack() as stack:
        bars = Bars(stack, len(results))
        while turns.left:
            index = turns.take()
            if index is None:
                await asyncio.sleep(POLL_S)
                continue
            result = results[index]
            with Bar(bars, result.job.recording.name, index + 1) as bar:
                await translate_job(result, options, load, bar)
                if result.outcome in ("done", "finished"):
                    bar.finished()
            turns.release(index)
            bars.ended()
            if result.error:
                report(result.error)


async def _load(config: PipelineConfig) -> Models:
    tell_loading(config.asr.model)
    from ..config import load_models
    from ..core import Worker

    loader = Worker("model loading")
    try:
        return await loader.run(partial(load_models, config))
    finally:
        loader.close()


def _make_absolute(options: argparse.Namespace) -> None:
    """Make the paths absolute: workers have other current folders."""
    options.audio = [place.absolute() if isinstance(place, Path) else place for place in options.audio]
    for name in ("manifest", "output_dir", "glossary", "masked"):
        path = getattr(options, name)
        if isinstance(path, Path) and path != STANDARD_OUTPUT:
            setattr(options, name, path.absolute())


def run(argv: list[str], prog: str = "python -m pipeline.translate") -> int:
    options = arguments(prog).parse_args(argv)
    set_verbosity(options)
    if options.cluster:
        if options.processes > 1:
            raise UsageError("--processes is for this machine alone; the processes of --cluster are its workers")
        _make_absolute(options)
    if options.claim and options.overwrite:
        raise UsageError("--claim leaves existing subtitles as they are; remove them first, or leave --overwrite out")
    with TemporaryDirectory(prefix="speech-translate-") as root:
        return _run(options, Path(root))


def _run(options: argparse.Namespace, root: Path) -> int:
    """Run the command. Under the folder ``root``, files without content stand for those of object stores."""
    config = for_recordings(configured(options))
    shard = None
    if options.shard:
        from ..archives import parse_shard

        shard = parse_shard(options.shard)
    named = options.audio + (read_manifest(options.manifest) if options.manifest else [])
    if not named:
        raise UsageError("no recording is named; give AUDIO or --manifest")
    folder, stored = options.output_dir, any(isinstance(place, str) for place in [*named, options.output_dir])
    if stored:
        from ..archives import add_stand_ins, check_place, stand_in  # an extra

        named = [add_stand_ins(place, root) if isinstance(place, str) else place for place in named]
        if isinstance(folder, str):
            check_place(folder)
            folder = stand_in(folder, root)
    named, subtitles = with_subtitles(named, config.languages.targets)
    kinds = formats(options.format) if options.format else []
    if subtitles:
        if stored:
            raise UsageError(
                f"subtitle files are not translated in object stores; copy {subtitles[0][0].name} to a folder"
            )
        mine = subtitles if shard is None else subtitles[shard.number - 1 :: shard.count]
        good = translate_subtitles(mine, SubtitleOptions(config, kinds, folder, options.overwrite, options.strict))
        if not (good and named):
            return 0 if good else 1
    tags = language_tags(config.languages.targets, always=options.lang_suffix)
    jobs = plan(named, kinds or ["srt"], folder, tags)
    if stored:
        from ..archives import with_remote

        jobs = [with_remote(job, root) for job in jobs]
    return _do(options, config, jobs if shard is None else shard.of(jobs))


def _claims(results: Sequence[Result], folders: Sequence[Path]) -> Turns:
    from ..archives import Claims

    return Claims(results, *folders)


def _do(options: argparse.Namespace, config: PipelineConfig, jobs: Sequence[Job]) -> int:
    """Do the jobs; the exit status."""
    speakers: tuple[str, ...] = ()
    if options.speakers and not config.speakers.auto:
        from ..archives import speaker_names

        speakers = speaker_names(options.speakers)
    if not options.claim:
        check_unused(jobs)
    results = [Result(job) for job in jobs]
    folders = [options.output_dir] if isinstance(options.output_dir, Path) else []
    for folder in folders:
        make_folder(folder)
    aside = options.shard is not None or options.claim or options.cluster is not None
    what = Options(config, options.overwrite, options.audio_track, speakers, aside, options.strict)
    interrupted = False
    try:
        several = options.processes > 1 and len(jobs) > 1
        largest_first = several or options.cluster is not None
        order = Turns(results, largest_first=largest_first)
        with _claims(results, folders) if options.claim else order as turns:
            if options.cluster is not None:
                from ..archives import translate_on_cluster  # an extra

                translate_on_cluster(options.cluster, results, what, folders, turns)
            elif several:
                from ..archives import translate_in_processes

                translate_in_processes(results, what, options.processes, turns)
            else:
                with naming_demo(options):
                    asyncio.run(translate_all(results, what, turns))
    except KeyboardInterrupt:
        interrupted = True
    if is_told():
        if sys.stdout is not None and sys.stdout.isatty():
            Console(highlight=False).print(results_table(results))
        else:
            print(*plain_lines(results), sep="\n")
    if interrupted:
        again = "the same command without --overwrite" if options.overwrite else "the same command"
        kept = "; it keeps old subtitles of recordings that were not begun" if options.overwrite else ""
        print(f"interrupted: {again} resumes the run{kept}", file=sys.stderr)
        return 130
    return 1 if any(result.failed for result in results) else 0
