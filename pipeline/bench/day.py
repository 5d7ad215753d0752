"""Run hours of speech, silence and noise faster than real time; check memory, work and that no segment is lost."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.options import add_model_arguments, configured
from pipeline.audio.recording import read_audio
from pipeline.bench.day_audio import GAP_S, DaySource, Scene
from pipeline.bench.ledger import Ledger, Sample, median_or_zero, memory_slope
from pipeline.bench.play import load_for_long_run
from pipeline.bench.probe import LATE_MS, LoopProbe, LoopTimes
from pipeline.bench.target import only_target
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import EndOfInput, Samples, Transcript
from pipeline.languages.marks import letters
from pipeline.latency.emissions import unit_of
from pipeline.run.worker import Worker
from pipeline.sinks.files import FORMATS, open_sinks, sink_makers
from pipeline.sinks.latency_log import open_latency_log
from pipeline.sinks.sink import write_all

if TYPE_CHECKING:
    from pipeline.loading import Models

MEMORY_MB_AN_HOUR = 1.0
# In a run of up to _POOLS_HOURS, the pools of ONNX Runtime, CTranslate2 and oneDNN still grow, but by less than
# _POOLS_MB: measured 3 to 12 MB on an AMD EPYC, most of it in the first half hour, while the memory of Python and NumPy stays
# constant. Audio that is kept would grow by 15 MB in the part of ten minutes that is fitted. In a longer run only the slope
# counts.
_POOLS_MB = 14.0
_POOLS_HOURS = 4.0
_SAMPLE_S = 60.0
_MIN_HEARD_SHARE = 0.85
"""Share of sentences that must be recognised as in the recording alone. Measured: 0.92; noise before a sentence decides
whether Whisper writes "six" or "6", and the number before decides about the next one."""
# Limit for CPU time per segment, later hours over earlier ones. Above 1 because segments differ and the machine may be shared:
# single hours of one run differed by up to 1.28.
_MAX_WORK_GROWTH = 1.25


@dataclass(frozen=True)
class HourReport:
    hour: int
    segments: int
    translated: int
    rejected: int
    late_s: float
    """Median wall-clock seconds from a segment's closing to its last token, queueing included."""
    wall_s: float
    cpu_s: float
    memory_mb: float


@dataclass(frozen=True)
class DayReport:
    """Results of a simulated day."""

    hours: list[HourReport]
    segments: int
    lost: int
    disorder: int
    sentences_spoken: int
    sentences_heard: int
    """Of these, recognised as in the recording alone."""
    invented: int
    """Segments of silence or noise whose transcript was not rejected."""
    memory_mb_an_hour: float
    memory_hours: float
    """Hours of audio over which the growth was measured."""
    work_growth: float
    """CPU time per segment, median of the later half of the hours over that of the earlier half."""
    loop: LoopTimes

    @property
    def failures(self) -> list[str]:
        """One message for each requirement that was not met."""
        return [
            message
            for message, failed in {
                f"{self.lost} segments lost": self.lost != 0,
                f"{self.disorder} events out of order": self.disorder != 0,
                f"memory grows by {self.memory_mb_an_hour:.2f} MB an hour": self.memory_mb_an_hour >= MEMORY_MB_AN_HOUR
                and (self.memory_hours > _POOLS_HOURS or self.memory_mb_an_hour * self.memory_hours >= _POOLS_MB),
                f"{self.sentences_heard} of {self.sentences_spoken} sentences recognised": self.sentences_heard
                < _MIN_HEARD_SHARE * self.sentences_spoken,
                "no sentence was spoken: nothing is recognised in the recordings alone, or the day is too short": (
                    self.sentences_spoken == 0
                ),
                f"work for a segment grew {self.work_growth:.2f} times": self.work_growth > _MAX_WORK_GROWTH,
            }.items()
            if failed
        ]


class Listener:
    """Compares the letters of each scene's transcripts with those of its recording alone.

    Marks and capitals depend on what was said before, which is another recording here.
    """

    def __init__(self, scenes: deque[Scene], alone: list[list[str]]) -> None:
        self._scenes, self._alone = scenes, alone
        self._texts: list[str] = []
        self.spoken = self.heard = self.invented = 0

    def got(self, transcript: Transcript) -> None:
        middle_s = (transcript.start_s + transcript.end_s) / 2
        while middle_s > self._scenes[0].end_s + GAP_S:
            self._score(self._scenes.popleft())
        if transcript.rejected is None:
            self._texts.append(letters(transcript.text))
            self.invented += self._scenes[0].kind != "speech"

    def end(self) -> None:
        while self._scenes:
            self._score(self._scenes.popleft())

    def _score(self, scene: Scene) -> None:
        if scene.kind == "speech":
            expected = Counter(map(letters, self._alone[scene.recording]))
            self.spoken += expected.total()
            self.heard += (expected & Counter(self._texts)).total()
        self._texts.clear()


async def simulate(
    recordings: list[Samples], hours: float, config: PipelineConfig, models: Models, folder: Path, seed: int = 0
) -> DayReport:
    """Run a day through the chain without pacing, writing one sink of each kind in ``folder``.

    Raises:
        StageError, SinkError: a stage or a sink failed.
    """
    from pipeline.translator import SpeechTranslator

    alone = [await transcripts_alone(recording, config, models) for recording in recordings]
    source = DaySource(recordings, hours, seed)
    listener = Listener(source.scenes, alone)
    translator = SpeechTranslator(config, models)
    translator.stats = ledger = Ledger()
    log = open_latency_log(folder / "day-latency.jsonl", unit_of(only_target(config)), only_target(config))
    log.start("day.wav", lambda: ledger.audio_s)
    files = {(kind, ""): folder / f"day.{kind}" for kind in FORMATS}
    sinks = [*open_sinks(files, None, sink_makers(config.subtitles)), log]
    writer = Worker("subtitles")
    try:
        await writer.run(partial(ledger.sample, 0.0))
        async with translator, LoopProbe() as probe, aclosing(translator.run(source)) as events:
            async for event in events:
                ledger.got(event)
                if isinstance(event, Transcript):
                    listener.got(event)
                await writer.run(partial(write_all, sinks, event))
                await writer.run(ledger.update_lowest_memory)
                if ledger.audio_s >= ledger.samples[-1].audio_s + _SAMPLE_S or isinstance(event, EndOfInput):
                    await writer.run(partial(ledger.sample, ledger.audio_s))
                    _show(ledger)
    finally:
        writer.close()
        writer.join(1.0)
        for sink in sinks:
            sink.close()
    listener.end()
    return _report(ledger, listener, probe)


async def transcripts_alone(recording: Samples, config: PipelineConfig, models: Models) -> list[str]:
    """Return the texts recognised in the recording alone."""
    from pipeline.translator import SpeechTranslator

    async def feed() -> None:
        await translator.feed(recording)
        await translator.end()

    async with SpeechTranslator(config, models) as translator:
        feeding = asyncio.create_task(feed())
        try:
            return [
                event.text
                async for event in translator.events()
                if isinstance(event, Transcript) and event.rejected is None
            ]
        finally:  # still running only if a stage failed; events() has raised that error
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)


def _report(ledger: Ledger, listener: Listener, probe: LoopProbe) -> DayReport:
    def last_sample(hour: int) -> Sample:
        """Return the last sample of the first ``hour`` hours."""
        return [sample for sample in ledger.samples if sample.audio_s <= hour * 3600][-1]

    hours = [
        HourReport(
            number + 1,
            hour.segments,
            hour.translated,
            hour.rejected,
            median_or_zero(hour.late_s),
            last_sample(number + 1).wall_s - last_sample(number).wall_s,
            last_sample(number + 1).cpu_s - last_sample(number).cpu_s,
            last_sample(number + 1).memory_mb,
        )
        for number, hour in sorted(ledger.hours.items())
    ]
    # The last scene is played to its end and may begin another hour. That incomplete hour is not compared.
    work = [one.cpu_s / one.segments for one in hours if one.hour * 3600 <= ledger.audio_s]
    return DayReport(
        hours,
        ledger.segments,
        ledger.lost,
        ledger.disorder,
        listener.spoken,
        listener.heard,
        listener.invented,
        *memory_slope(ledger.samples),
        growth(work),
        probe.times,
    )


def growth(values: Sequence[float]) -> float:
    """Median of the later half of ``values`` over that of the earlier half; 1 if there are fewer than two."""
    half = len(values) // 2
    earlier = median_or_zero(values[:half])
    return median_or_zero(values[-half:]) / earlier if earlier else 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("audio", nargs="+", type=Path, metavar="FILE", help="recordings to use as speech")
    add_model_arguments(parser)
    parser.add_argument("--hours", type=float, default=8.0, metavar="H", help="how long the day is (default: 8)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the simulated day (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    config = configured(options)
    only_target(config)
    if not 0 < options.hours <= 1000:
        raise UsageError(f"--hours is {options.hours:g}; give a number above 0, up to 1000")
    if options.seed < 0:
        raise UsageError(f"--seed is {options.seed}; give a whole number from 0")
    recordings = [read_audio(path) for path in options.audio]
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(_day(recordings, options, config, Path(folder)))
    print(json.dumps(dataclasses.asdict(report), indent=1) if options.json else _text(report))
    for failure in report.failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if report.failures else 0


async def _day(
    recordings: list[Samples], options: argparse.Namespace, config: PipelineConfig, folder: Path
) -> DayReport:
    return await simulate(recordings, options.hours, config, await load_for_long_run(config), folder, options.seed)


def _show(ledger: Ledger) -> None:
    now = ledger.samples[-1]
    print(f"{now.audio_s / 3600:6.2f} h  {ledger.segments} segments  {now.memory_mb:.0f} MB", file=sys.stderr)


def _text(report: DayReport) -> str:
    lines = ["hour  segments  translated  rejected  last token after  took       CPU     memory"]
    lines += [
        f"{one.hour:4}  {one.segments:8}  {one.translated:10}  {one.rejected:8}  {one.late_s:14.2f} s  "
        f"{one.wall_s:5.0f} s  {one.cpu_s:5.0f} s  {one.memory_mb:6.1f} MB"
        for one in report.hours
    ]
    loop = report.loop
    return "\n".join(
        [
            *lines,
            f"{report.segments} segments, {report.lost} lost, {report.disorder} events out of order; "
            f"{report.sentences_heard} of {report.sentences_spoken} sentences recognised as in the recording alone, "
            f"{report.invented} segments of silence or noise translated",
            f"memory: {report.memory_mb_an_hour:+.2f} MB an hour; work for a segment, later hours over earlier: {report.work_growth:.2f}",
            f"event loop: late by {loop.longest_ms:.1f} ms at most, 99 % within {loop.p99_ms:.1f} ms, "
            f"{loop.late} of {loop.asked} times more than {LATE_MS} ms; "
            f"at most {loop.longest_work_ms:.1f} ms of CPU at a stretch",
        ]
    )
