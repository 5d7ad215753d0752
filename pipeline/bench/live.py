"""Play recordings in real time and report when each word was shown, settled and final, what changed, latency and load.

Times are taken where an embedding program would receive the events. docs/measuring.md defines the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..apps import add_model_arguments, configured
from ..backends import DraftModel
from ..config import DEMO_SPEECH, PipelineConfig
from ..core import DEFAULT, Samples, SentenceAssembler, SourceSentence, Worker, by_segment
from ..errors import UsageError
from ..media import Recording, Reference, Unit, read_audio, read_cues, unit_of, units
from ..names import escaped
from .measures import measured
from .play import PlayedRun, load_for_long_run, packs, play, segments_of
from .report import LiveResult, as_json, as_text

if TYPE_CHECKING:
    from ..core import Models

# Read by a person, unlike the others (examples/audio/README.md). An installed package has the demo's voices only.
_HUMAN_SPEECH = DEMO_SPEECH.with_name("novel.wav")


def variants(config: PipelineConfig, *, compare: bool) -> dict[str, PipelineConfig]:
    """The configurations that are played, by name in the report: ``config`` and, to ``compare``, one without drafts before it."""
    without = dataclasses.replace(config, drafts=dataclasses.replace(config.drafts, enabled=False))
    return {"none": without, "drafts": config} if compare else {"drafts": config}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "audio", nargs="*", type=Path, metavar="FILE",
        help="recordings, played one after the other (default: novel.wav of the examples, read by a person, or travel.wav, which voices of the demo speak); what is said in "
        "talk.wav is compared with talk.txt if there is one",
    )  # fmt: skip
    add_model_arguments(parser)
    parser.add_argument(
        "--compare", action="store_true",
        help="play each recording without drafts, too: speech in progress is not recognised, and text appears at pauses",
    )  # fmt: skip
    parser.add_argument(
        "--reference", action="append", type=Path, default=[], metavar="FILE",
        help="reference translation, once for each recording: .srt or .vtt with times, or .txt for the whole recording",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


@dataclass
class _Session:
    """A recording that was played, and what is needed to measure it."""

    config: PipelineConfig
    played: list[tuple[str, Path, PlayedRun]] = field(default_factory=list)
    references: dict[Path, list[Reference]] = field(default_factory=dict)
    transcripts: dict[Path, str] = field(default_factory=dict)
    offline: dict[Path, list[SourceSentence]] = field(default_factory=dict)

    def results(self) -> list[LiveResult]:
        languages = self.config.languages.source, only_target(self.config)
        return [
            LiveResult(
                name,
                run,
                measured(
                    run.received, languages, run.duration_s,
                    offline=self.offline.get(path), references=self.references.get(path, ()),
                    transcript=self.transcripts.get(path),
                ),
                has_reference=path in self.references,
            )
            for name, path, run in self.played
        ]  # fmt: skip


def run(options: argparse.Namespace) -> int:
    config = configured(options)
    unit = unit_of(only_target(config))
    paths = options.audio or [_HUMAN_SPEECH if _HUMAN_SPEECH.is_file() else DEMO_SPEECH]
    if options.reference and len(options.reference) != len(paths):
        raise UsageError(
            f"{len(options.reference)} references for {len(paths)} recordings; give --reference once for each"
        )
    for path in paths:
        Recording(path).close()
    session = _Session(config, transcripts=transcripts(paths, options.reference))
    if options.reference:
        session.references = {
            path: read_reference(reference, unit) for path, reference in zip(paths, options.reference, strict=True)
        }
    try:
        asyncio.run(_play_all(paths, variants(config, compare=options.compare), session))
    finally:  # show what was measured before a failure or an interrupt
        results = session.results()
        if results:
            print(as_json(results) if options.json else as_text(results, compared=options.compare))
    return 0


def only_target(config: PipelineConfig) -> str:
    """The target language."""
    targets = config.languages.targets
    if len(targets) > 1:
        raise UsageError(
            f"the targets are {', '.join(targets)}, but one translation is measured at a time; choose one with --target"
        )
    return targets[0]


def read_reference(path: Path, unit: Unit) -> list[Reference]:
    """Read the sentences of a reference.

    A text file gives one sentence of infinite length, because the length of the recording is not known yet.
    """
    suffix = path.suffix.lower()
    if suffix not in (".srt", ".vtt", ".txt"):
        raise UsageError(f"{path} is not a supported reference; give .srt or .vtt with times, or .txt without")
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the reference {path} ({reason}); give a file in UTF-8") from error
    try:
        cues = [] if suffix == ".txt" else read_cues(text)
    except UsageError as error:
        raise UsageError(f"cannot read the reference {path}: {error}") from None
    timed = [("\n".join(cue.lines), float(cue.start_ms), float(cue.end_ms - cue.start_ms)) for cue in cues]
    lines = [
        Reference(tuple(words), start_ms, length_ms)
        for text, start_ms, length_ms in timed or [(text, 0.0, math.inf)]
        if (words := units(text, unit)) and length_ms > 0
    ]
    if not lines:
        raise UsageError(f"{path} contains no sentence; give the translation of the recording")
    return lines


def transcripts(paths: Sequence[Path], references: Sequence[Path] = ()) -> dict[Path, str]:
    """The text of each recording that has a text file beside it; a file given as a translation is left out."""
    translations = {path.resolve() for path in references}
    texts: dict[Path, str] = {}
    for path in paths:
        beside = path.with_suffix(".txt")
        if beside.is_file() and beside.resolve() not in translations:
            try:
                texts[path] = beside.read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(
                    f"cannot read {beside}, the text of {path.name} ({reason}); give a file in UTF-8, or rename it"
                ) from error
    return texts


async def _play_all(paths: Sequence[Path], configs: Mapping[str, PipelineConfig], session: _Session) -> None:
    """Play the recordings one after the other, each with all configurations; then recognise each as a whole.

    The results are added to ``session`` as they come. Recognising as a whole comes last: it takes memory.
    """
    loader = _Loader()
    for path in paths:
        for name, config in configs.items():
            models = await loader.load(config)
            print(f"playing {escaped(str(path))}{f' with {name}' if len(configs) > 1 else ''} …", file=sys.stderr)
            session.played.append((name, path, await play(path, config, models)))
    models = await loader.load(session.config)
    worker = Worker("offline recognition")
    try:
        for path in dict.fromkeys(paths):
            print(f"recognising {escaped(str(path))} as a whole …", file=sys.stderr)
            samples = await worker.run(partial(read_audio, path))
            session.offline[path] = await worker.run(partial(offline_sentences, samples, models, session.config))
    finally:
        worker.close()


def offline_sentences(samples: Samples, models: Models, config: PipelineConfig) -> list[SourceSentence]:
    """The sentences of a recording, recognised in windows of several segments.

    What the recogniser withholds is left out.
    """
    assembler, events = SentenceAssembler(config.sentences), []
    recognizer = by_segment(models.recognizer)
    for pack in packs(segments_of(samples, config.vad)):
        for transcript in recognizer.transcribe(pack, DEFAULT):
            events += assembler.push(transcript)
    events += assembler.end()
    return [event for event in events if isinstance(event, SourceSentence)]


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
    asr = dataclasses.replace(config.asr, draft=drafts)
    return PipelineConfig(config.languages, config.vad, asr, nmt=config.nmt, nmt_overrides=config.nmt_overrides)
