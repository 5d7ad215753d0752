"""Play recordings in real time and report when each word was shown and committed, what changed, latency and load.

Times are taken where an embedding program would receive the events. docs/measuring.md defines the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.options import add_model_arguments, configured
from pipeline.asr.options import DraftModel
from pipeline.audio.recording import Recording, read_audio
from pipeline.bench.measures import measured
from pipeline.bench.offline import offline_sentences
from pipeline.bench.play import PlayedRun, load_for_long_run, play
from pipeline.bench.policies import POLICIES, Policy, some_policies
from pipeline.bench.reference import read_reference
from pipeline.bench.report import Result, as_json, as_text, picture_of, text_picture_of
from pipeline.bench.target import only_target
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import SourceSentence
from pipeline.latency.emissions import unit_of
from pipeline.latency.metrics import Reference
from pipeline.names import escaped
from pipeline.resources import DEMO_SPEECH
from pipeline.run.worker import Worker
from pipeline.sinks.latency_log import LatencyLog, open_latency_log
from pipeline.sinks.sink import BlockFile

if TYPE_CHECKING:
    from pipeline.loading import Models

# Read by a person, unlike the others (examples/audio/README.md).
_HUMAN_SPEECH = DEMO_SPEECH.with_name("novel.wav")
_LOGS = ("latency-log", "committed-log")
_PICTURES = ("plot", "timeline")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "audio", nargs="*", type=Path, metavar="FILE",
        help="recordings, played one after the other (default: read speech that comes with the examples); what is said in "
        "talk.wav is compared with talk.txt if there is one",
    )  # fmt: skip
    add_model_arguments(parser)
    parser.add_argument(
        "--compare", type=some_policies, metavar="POLICY,…",
        help="play each recording with several policies, or all: "
        + "; ".join(f"{policy.name} ({policy.help})" for policy in POLICIES.values()),
    )  # fmt: skip
    parser.add_argument(
        "--reference", action="append", type=Path, default=[], metavar="FILE",
        help="reference translation, once for each recording: .srt or .vtt with times, or .txt for the whole recording",
    )  # fmt: skip
    parser.add_argument(
        "--latency-log", type=Path, metavar="FILE",
        help="also log when translated text was displayed: .jsonl for simulstream, .log for SimulEval",
    )  # fmt: skip
    parser.add_argument(
        "--committed-log", type=Path, metavar="FILE", help="the same for committed text: when it became final"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the words said, shown and committed over time, as SVG"
    )
    parser.add_argument("--timeline", type=Path, metavar="FILE", help="draw what each stage did when, as SVG")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


@dataclass
class _Session:
    """What was played, and what is needed to measure it."""

    config: PipelineConfig
    played: list[tuple[Policy, Path, PlayedRun]] = field(default_factory=list)
    references: dict[Path, list[Reference]] = field(default_factory=dict)
    transcripts: dict[Path, str] = field(default_factory=dict)
    offline: dict[Path, list[SourceSentence]] = field(default_factory=dict)

    def results(self) -> list[Result]:
        languages = self.config.languages.source, only_target(self.config)
        return [
            Result(
                policy.name,
                run,
                measured(
                    run.received, languages, run.duration_s,
                    offline=self.offline.get(path), references=self.references.get(path, ()),
                    transcript=self.transcripts.get(path),
                ),
                has_reference=path in self.references,
            )
            for policy, path, run in self.played
        ]  # fmt: skip


def run(options: argparse.Namespace) -> int:
    config = configured(options)
    unit = unit_of(only_target(config))
    paths = options.audio or [default_recording()]
    _check(options, paths)
    for path in paths:
        Recording(path).close()
    session = _Session(config, transcripts=transcripts(paths, options.reference))
    if options.reference:
        session.references = {
            path: read_reference(reference, unit) for path, reference in zip(paths, options.reference, strict=True)
        }
    compared = options.compare is not None
    with ExitStack() as stack:
        logs: list[LatencyLog] = []
        for name in _LOGS:
            if (path := getattr(options, name.replace("-", "_"))) is not None:
                logs.append(open_latency_log(path, unit, only_target(config), committed=name == "committed-log"))
                stack.callback(logs[-1].close)
        pictures = {name: BlockFile(path) for name in _PICTURES if (path := getattr(options, name)) is not None}
        for picture in pictures.values():
            stack.callback(picture.close)
        try:
            asyncio.run(_play_all(paths, options.compare or [POLICIES["drafts"]], session, logs))
        finally:  # show what was measured before a failure or an interrupt
            results = session.results()
            if results:
                print(as_json(results) if options.json else as_text(results, compared=compared))
        if "plot" in pictures:
            pictures["plot"].append(text_picture_of(results, compared=compared))
        if "timeline" in pictures:
            pictures["timeline"].append(picture_of(results[0]))
    return 0


def _check(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Check the options against each other.

    Raises:
        UsageError: they contradict each other, or an output is also an input.
    """
    if options.reference and len(options.reference) != len(paths):
        raise UsageError(
            f"{len(options.reference)} references for {len(paths)} recordings; give --reference once for each"
        )
    inputs = {path.resolve() for path in (*paths, *options.reference)}
    for name, path in _outputs(options):
        if name in _PICTURES and len(paths) > 1:
            raise UsageError(f"--{name} draws one run, but {len(paths)} recordings were given; give one")
        if name in _PICTURES and path.suffix.lower() != ".svg":
            raise UsageError(f"--{name} {path}: its name must end with .svg")
        if options.compare is not None and name != "plot":
            raise UsageError(f"--{name} records one run, but --compare makes several; leave one of the two out")
        if path.resolve() in inputs:
            raise UsageError(f"{path} is also a recording or a reference; give --{name} another file")
    given = [path.resolve() for _, path in _outputs(options)]
    if len(set(given)) < len(given):
        raise UsageError("two outputs name the same file; give each its own")


def _outputs(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """The output files given: option → path."""
    for name in (*_PICTURES, *_LOGS):
        if (path := getattr(options, name.replace("-", "_"))) is not None:
            yield name, path


def default_recording() -> Path:
    """Read speech from the examples; an installed package has the demo's voices only."""
    return _HUMAN_SPEECH if _HUMAN_SPEECH.is_file() else DEMO_SPEECH


def transcripts(paths: Sequence[Path], references: Sequence[Path] = ()) -> dict[Path, str]:
    """What is said in each recording that has a text file beside it; a file given as a translation is none.

    Raises:
        UsageError: a file cannot be read.
    """
    translations = {path.resolve() for path in references}
    found: dict[Path, str] = {}
    for path in paths:
        beside = path.with_suffix(".txt")
        if beside.is_file() and beside.resolve() not in translations:
            try:
                found[path] = beside.read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(
                    f"cannot read {beside}, the text of {path.name} ({reason}); give a file in UTF-8, or rename it"
                ) from error
    return found


async def _play_all(
    paths: Sequence[Path], policies: Sequence[Policy], session: _Session, logs: Sequence[LatencyLog]
) -> None:
    """Play the recordings one after the other, each with all policies; then recognise each as a whole.

    The results are added to ``session`` as they come. Recognising as a whole comes last: it takes memory.
    """
    loader = _Loader()
    for path in paths:
        # The translation that the logs name, in one line.
        units = [unit for reference in session.references.get(path, ()) for unit in reference.units]
        translation = (" " if unit_of(only_target(session.config)) == "word" else "").join(units)
        for policy in policies:
            config = policy.applied(session.config)
            models = await loader.load(config)
            name = f" with {policy.name}" if len(policies) > 1 else ""
            print(f"playing {escaped(str(path))}{name} …", file=sys.stderr)
            session.played.append((policy, path, await play(path, config, models, logs, translation)))
    models = await loader.load(session.config)
    worker = Worker("offline recognition")
    try:
        for path in dict.fromkeys(paths):
            print(f"recognising {escaped(str(path))} as a whole …", file=sys.stderr)
            samples = await worker.run(partial(read_audio, path))
            session.offline[path] = await worker.run(partial(offline_sentences, samples, models, session.config))
    finally:
        worker.close()


class _Loader:
    """Loads models, and keeps them while the configurations ask for the same ones."""

    def __init__(self) -> None:
        self._config: PipelineConfig | None = None
        self._models: Models | None = None

    async def load(self, config: PipelineConfig) -> Models:
        if self._models is None or self._config is None or _of_models(self._config) != _of_models(config):
            self._models = None  # free its memory first
            self._config, self._models = config, await load_for_long_run(config)
        return self._models


def _of_models(config: PipelineConfig) -> PipelineConfig:
    """The configuration with the options on which the models do not depend at their defaults."""
    drafts = config.asr.draft if config.draft_model is not None else DraftModel()
    asr = replace(config.asr, context_ms=0, join_ms=None, draft=drafts)
    return PipelineConfig(config.languages, config.vad, asr, nmt=config.nmt, nmt_overrides=config.nmt_overrides)
