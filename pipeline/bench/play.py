"""Play a recording through the chain in real time and measure the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.cli import settle
from pipeline.audio.recording import Recording
from pipeline.bench.probe import IdleProbe, LoopProbe, LoopTimes, peak_mb, resident_mb
from pipeline.bench.shown import Received
from pipeline.bench.stopwatch import SegmentTimes, Span, Stopwatch
from pipeline.config import PipelineConfig
from pipeline.events import Delta
from pipeline.run.cores import usable_cores
from pipeline.run.worker import Worker
from pipeline.sinks.latency_log import LatencyLog

if TYPE_CHECKING:
    from pipeline.loading import Models


@dataclass(frozen=True)
class PlayedRun:
    """Results of one run."""

    recording: str
    duration_s: float
    segments: list[SegmentTimes]
    busy_s: dict[str, float]
    """Stage → seconds of work."""
    cpu_share: float
    """CPU time of this process during the run, of all cores that it may use, 0 to 1."""
    longest_lag_s: float
    backlog_s: float
    """The lag when the last audio came; see ``PipelineStats.lag_s``."""
    drained_s: float
    """From the end of the audio until everything was translated and received."""
    loop: LoopTimes
    idle_loop: LoopTimes
    """Lateness in an idle process at the same time: the baseline of this machine."""
    memory_mb: float
    memory_growth_mb: float
    memory_peak_mb: float
    spans: dict[str, list[Span]] = field(repr=False)
    received: list[Received] = field(repr=False)
    """All events."""

    @property
    def shown_s(self) -> list[float]:
        """Times at which translated text arrived."""
        return [one.elapsed_s for one in self.received if isinstance(one.event, Delta) and one.event.text]

    @property
    def real_time_factor(self) -> float:
        """Seconds of work of all stages per second of audio."""
        return sum(self.busy_s.values()) / self.duration_s


async def load_for_long_run(config: PipelineConfig) -> Models:
    """Load the models in a worker thread and exclude them from garbage collection, as the commands do."""
    from pipeline.loading import load_models

    loader = Worker("model loading")
    try:
        models = await loader.run(lambda: load_models(config))
        await loader.run(settle)
    finally:
        loader.close()
    return models


async def play(
    path: Path, config: PipelineConfig, models: Models, logs: Sequence[LatencyLog] = (), reference: str = ""
) -> PlayedRun:
    """Play one recording. ``reference`` is the translation that the logs name.

    Raises:
        StageError, AudioError, SinkError: a stage, the recording or a log failed.
    """
    from pipeline.translator import SpeechTranslator

    source, translator = Recording(path), SpeechTranslator(config, models)
    translator.stats = stopwatch = Stopwatch()
    for log in logs:
        log.start(str(path), lambda: stopwatch.stream_s, reference)
    writer = Worker("latency log")
    received: list[Received] = []
    before_mb, began_s, cpu_began_s = resident_mb(), time.perf_counter(), time.process_time()
    try:
        async with (
            translator,
            IdleProbe() as idle,
            LoopProbe() as probe,
            aclosing(translator.run(source, paced=True)) as events,
        ):
            async for event in events:
                stopwatch.got(event)
                received.append(Received(event, stopwatch.stream_s))
                for log in logs:
                    await writer.run(partial(log.write, event))
            cpu_s, wall_s = time.process_time() - cpu_began_s, time.perf_counter() - began_s
    finally:
        writer.close()
        writer.join(1.0)
    return PlayedRun(
        recording=str(path),
        duration_s=stopwatch.audio_s,
        segments=list(stopwatch.by_id.values()),
        busy_s=stopwatch.busy_s,
        cpu_share=cpu_s / wall_s / usable_cores(),
        longest_lag_s=stopwatch.longest_lag_s,
        backlog_s=stopwatch.backlog_at_end_s,
        drained_s=received[-1].elapsed_s - stopwatch.audio_s,
        loop=probe.times,
        idle_loop=idle.times,
        memory_mb=resident_mb(),
        memory_growth_mb=resident_mb() - before_mb,
        memory_peak_mb=peak_mb(),
        spans=stopwatch.spans,
        received=received,
    )
