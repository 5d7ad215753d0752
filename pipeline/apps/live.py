"""python -m pipeline.live: live subtitles from a microphone, or from a recording at its own pace."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import Console

from ..config import PipelineConfig
from ..console import (
    STARTED,
    Parser,
    add_verbosity_arguments,
    description_of,
    importing,
    set_verbosity,
    some_output,
    some_path,
    some_text,
    standard_input,
    tell,
    tell_loading,
)
from ..core import AudioSource
from ..errors import UsageError
from ..languages import LanguageConfig, language_tag
from ..media import (
    FORMATS,
    SINKS,
    MakeSink,
    Recording,
    Sink,
    TerminalSink,
    close_all,
    is_blank,
    open_sinks,
    sink_makers,
)
from ..names import STANDARD_OUTPUT
from .options import (
    AUTO_SPEAKERS,
    add_audio_track_argument,
    add_layout_arguments,
    add_model_arguments,
    configured,
    naming_demo,
)
from .pushes import add_push_argument, open_pushes
from .speaking import Speech, add_speak_arguments, uses_device

if TYPE_CHECKING:
    from ..archives import Output
    from ..media import LatencyLog, Microphone
    from ..push import PushSink

_EXAMPLES = (
    "%(prog)s --mic --config demo",
    "%(prog)s talk.wav --config demo --fast --srt talk.srt",
    "%(prog)s https://example.org/live.m3u8 --source en --target de",
)


def arguments(prog: str = "python -m pipeline.live") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    source = parser.add_argument_group("input, one of them")
    source.add_argument(
        "audio",
        nargs="?",
        type=some_text,
        metavar="AUDIO",
        help="a recording, the URL of a stream (HLS, RTMP, RTSP, HTTP), or - for raw 16 kHz mono 16-bit PCM on standard input",
    )
    source.add_argument("--mic", action="store_true", help="listen to a microphone")
    source.add_argument("--device", type=some_text, metavar="ID|NAME", help="which input device; implies --mic")
    source.add_argument(
        "--loopback", action="store_true", help="listen to what this computer plays, where the system allows that"
    )
    source.add_argument(
        "--follow",
        action="store_true",
        help="the recording is still being written: wait at its end until nothing more comes",
    )
    source.add_argument("--list-devices", action="store_true", help="list the input and output devices and exit")
    add_audio_track_argument(source)
    source.add_argument(
        "--fast",
        action="store_true",
        help="process a recording faster than its own pace; do not treat standard input as live",
    )
    parser.add_argument("--whole", action="store_true", help="show whole sentences only: text that never changes")
    add_model_arguments(parser)
    parser.add_argument(
        "--speakers",
        choices=[AUTO_SPEAKERS],
        help="tell voices apart, and number them: subtitles and files say who speaks",
    )
    files = parser.add_argument_group("subtitle files")
    for kind in FORMATS:
        files.add_argument(
            f"--{kind}", type=some_output, metavar="FILE", help=f"also write {kind.upper()}; - is standard output"
        )
    files.add_argument(
        "--file",
        type=some_file,
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="also write a format of an installed package (docs/extending.md)",
    )
    files.add_argument("--overwrite", action="store_true", help="replace existing subtitles")
    add_layout_arguments(files)
    add_push_argument(parser.add_argument_group("captions elsewhere"))
    voice = parser.add_argument_group("a voice")
    add_speak_arguments(voice)
    logs = parser.add_argument_group("latency")
    logs.add_argument(
        "--latency-log",
        type=some_path,
        metavar="FILE",
        help="also log when text was displayed: .jsonl for simulstream, .log for SimulEval",
    )
    logs.add_argument("--final-log", type=some_path, metavar="FILE", help="the same for final text")
    add_verbosity_arguments(parser)
    return parser


def some_file(text: str) -> tuple[str, Path]:
    """Argument type: FORMAT=FILE."""
    kind, _, file = text.partition("=")
    if kind not in SINKS or not file:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(f'{name}=FILE' for name in SINKS)}")
    return kind, some_output(file)


def _listens(options: argparse.Namespace) -> bool:
    """Whether the options name a microphone."""
    named: bool = options.mic or options.loopback or options.device is not None
    return named


def open_source(options: argparse.Namespace, config: PipelineConfig) -> AudioSource:
    """Open the audio source that the options name; they must name exactly one."""
    microphone = _listens(options)
    if microphone and options.audio is not None:
        raise UsageError(f"both a microphone and {options.audio} were given; choose one")
    if options.loopback and options.device is not None:
        raise UsageError("--loopback finds the device, and --device names one; choose one")
    url = options.audio is not None and "://" in options.audio
    if options.follow and (microphone or url or options.audio in (None, "-")):
        raise UsageError(
            "--follow is for a recording that is still being written; give the path of one, or leave it out"
        )
    if options.audio_track is not None and (microphone or options.audio == "-"):
        raise UsageError(
            f"--audio-track chooses a track of a recording, but the input is {'a microphone' if microphone else 'raw PCM'}; "
            "leave it out"
        )
    if microphone:
        from ..media import Microphone, loopback_device

        return Microphone(
            loopback_device() if options.loopback else options.device,
            rescan=not uses_device(options),
            backlog_s=config.overload.backlog_s,
        )
    if options.audio is None:
        raise UsageError("no input: give a recording, - for raw PCM on standard input, or --mic")
    if options.audio == "-":
        from ..media import PcmStream

        return PcmStream(standard_input())
    chosen = {"language": config.languages.only_spoken, "track": options.audio_track}
    if url:
        from ..media import is_stream, open_stream

        if is_stream(options.audio):
            return open_stream(options.audio, config.overload.backlog_s, **chosen)
    recording = Recording(some_path(options.audio), growing=options.follow, **chosen)
    if recording.track_note is not None:
        tell(recording.track_note)
    return recording


def display(languages: LanguageConfig, *, taken: bool, whole: bool = False) -> TerminalSink | None:
    """The display of the growing subtitles: standard output, unless it is ``taken`` by a subtitle format.

    Then it is standard error, if that is a terminal and standard output is not; else None.
    """
    rewritten = [target for target in languages.targets if languages.is_spoken(target) and language_tag(target).script]
    if not taken:
        return TerminalSink(Console(highlight=False), languages.targets, rewritten, whole=whole)
    visible = sys.stderr is not None and sys.stderr.isatty() and not (sys.stdout and sys.stdout.isatty())
    if not visible:
        return None
    return TerminalSink(Console(stderr=True, highlight=False), languages.targets, rewritten, whole=whole)


def run(argv: list[str], prog: str = "python -m pipeline.live") -> int:
    options = arguments(prog).parse_args(argv)
    set_verbosity(options)
    if options.list_devices:
        from ..media import list_devices

        for kind in ("input", "output"):
            print("\n".join([f"{kind} devices:", *list_devices(kind)]))
        return 0
    config = configured(options)
    source = open_source(options, config)
    microphone = cast("Microphone", source) if _listens(options) else None
    if options.fast and microphone is None:
        config = replace(config, drafts=replace(config.drafts, enabled=False))  # so that no draft model is loaded
    _check_outputs(options)
    targets = config.languages.targets
    speech = Speech(options, targets)
    logs: list[LatencyLog] = []
    makers, outputs = _files(options, config, speech, logs)
    if not options.overwrite:
        _check_new(outputs)
    recording = source.path if isinstance(source, Recording) else None
    tell_loading(config.asr.model)
    with importing():  # after checking most options, before creating files that an interrupt would leave behind
        from .live_run import LiveRun
    terminal = display(config.languages, taken=STANDARD_OUTPUT in outputs.values())
    local = recording if isinstance(recording, Path) else None
    files = open_sinks(outputs, local, makers, targets)
    sinks: list[Sink] = [*files, *([terminal] if terminal is not None else [])]
    pushes: list[PushSink] = []
    paced = recording is not None and not options.fast
    live: LiveRun | None = None
    try:
        pushes = open_pushes(options.push, targets, config.subtitles)
        sinks += pushes
        sinks += speech.open()
        live = LiveRun(
            source, config, sinks, paced=paced, live=not options.fast, microphone=microphone, terminal=terminal
        )
        stats = live.stats
        for log in logs:
            log.start(str(recording) if recording is not None else "live", lambda: stats.stream_s)
        for push in pushes:
            push.begin(lambda: stats.stream_s)
        with naming_demo(options):
            asyncio.run(live.run())
        close_all([*files, *pushes])  # a terminal that is closed, or Ctrl-C, while the voice ends costs them nothing
        speech.finish()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        # A file that a cancelled run is still writing may never take more; the process ends without it.
        close_all([sink for sink in sinks if live is None or not live.is_writing(sink)])
    tell(stats.summary())
    lost = not speech.summarized() or any(push.lost for push in pushes)
    ready_s = stats.started - STARTED
    tell(f"{stats.details()}\nready {ready_s:.2f} s after the start, imports and models loaded", logging.DEBUG)
    return 1 if stats.lost_languages or stats.failures or lost else 0


def _files(
    options: argparse.Namespace, config: PipelineConfig, speech: Speech, logs: list[LatencyLog]
) -> tuple[dict[str, MakeSink], dict[Output, Path]]:
    """How each kind of file is opened, and the files that the options name. Latency logs are added to ``logs``."""
    files = dict(options.file)
    outputs: dict[Output, Path] = {}
    makers: dict[str, MakeSink] = sink_makers(config.subtitles, more=files) | {
        "latency-log": partial(_latency_log, logs, final=False),
        "final-log": partial(_latency_log, logs, final=True),
    }
    given = {kind: path for kind in makers if (path := getattr(options, kind.replace("-", "_"), None)) is not None}
    if given or files:
        from ..archives import named_outputs

        outputs = named_outputs(given | files, config.languages.targets)
    speech.add_track(makers, outputs)
    return makers, outputs


def _check_new(outputs: Mapping[Output, Path]) -> None:
    """Raise UsageError for a subtitle file that exists. One without a cue, a pipe and a device do not count."""
    for (kind, _), path in outputs.items():
        if kind in SINKS and path != STANDARD_OUTPUT and os.path.isfile(path) and not is_blank(path, kind):
            raise UsageError(f"{path} exists; name another file, or replace it with --overwrite")


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise UsageError for outputs of a real-time run that are asked for without one, and logs without a file."""
    if options.push and options.fast:
        raise UsageError(
            "--push sends text while people speak, but --fast does not run in real time; leave one of the two out"
        )
    for name in ("latency-log", "final-log"):
        if options.fast and getattr(options, name.replace("-", "_")):
            raise UsageError(
                f"--{name} measures latency, but --fast does not run in real time; leave one of the two out"
            )
        if getattr(options, name.replace("-", "_")) == STANDARD_OUTPUT:
            raise UsageError(
                f"--{name} cannot write to standard output; name a file: ….jsonl for simulstream's format, or instances.log "
                "for SimulEval's"
            )


def _latency_log(logs: list[LatencyLog], path: Path, languages: Sequence[str] = (), *, final: bool) -> Sink:
    from ..media import open_latency_log, unit_of

    (language,) = languages
    log = open_latency_log(path, unit_of(language), language, final=final)
    logs.append(log)
    return log
