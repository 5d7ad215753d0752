"""Play a recording through the chain in real time and measure the run."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.cli import settle
from pipeline.audio.recording import Recording
from pipeline.bench.probe import IdleProbe, LoopProbe, LoopTimes, peak_mb, resident_mb
from pipeline.bench.stopwatch import SegmentTimes, Span, Stopwatch
from pipeline.bench.target import only_target
from pipeline.config import PipelineConfig
from pipeline.events import Delta
from pipeline.latency.emissions import TextSoFar, Unit, unit_of
from pipeline.latency.metrics import Reference, Scores, mean_scores, normalized_erasure, stream_scores
from pipeline.run.worker import Worker
from pipeline.sinks.latency_log import LatencyLog

if TYPE_CHECKING:
    from pipeline.loading import Models


@dataclass(frozen=True)
class PlayedRun:
    """Results of one run."""

    recording: str
    duration_s: float
    unit: Unit
    segments: list[SegmentTimes]
    scores: Scores | None
    has_reference: bool
    """False: the run's own sentences are scored, with their text as the reference."""
    normalized_erasure: float
    busy_s: dict[str, float]
    """Stage → seconds of work."""
    longest_lag_s: float
    loop: LoopTimes
    idle_loop: LoopTimes
    """Lateness in an idle process at the same time: the baseline of this machine."""
    memory_mb: float
    memory_growth_mb: float
    memory_peak_mb: float
    spans: dict[str, list[Span]] = field(repr=False)
    shown_s: list[float] = field(repr=False)
    """Times at which text arrived."""

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
    path: Path, config: PipelineConfig, models: Models, references: list[Reference], log: LatencyLog | None = None
) -> PlayedRun:
    """Play one recording; ``references`` may be empty.

    Raises:
        StageError, AudioError, SinkError: a stage, the recording or the log failed.
    """
    from pipeline.translator import SpeechTranslator

    source, translator = Recording(path), SpeechTranslator(config, models)
    translator.stats = stopwatch = Stopwatch()
    unit = unit_of(only_target(config))
    text, sentence_texts = TextSoFar(unit), dict[int, TextSoFar]()
    if log:
        reference = (" " if unit == "word" else "").join(word for reference in references for word in reference.units)
        log.start(str(path), lambda: stopwatch.stream_s, reference)
    writer = Worker("latency log")
    before_mb = resident_mb()
    try:
        async with (
            translator,
            IdleProbe() as idle,
            LoopProbe() as probe,
            aclosing(translator.run(source, paced=True)) as events,
        ):
            async for event in events:
                stopwatch.got(event)
                if isinstance(event, Delta):
                    elapsed_s = stopwatch.stream_s
                    text.push(event, elapsed_s)
                    sentence_texts.setdefault(event.sentence, TextSoFar(unit)).push(event, elapsed_s)
                if log:
                    await writer.run(partial(log.write, event))
    finally:
        writer.close()
        writer.join(1.0)
    emissions = text.emissions()
    return PlayedRun(
        recording=str(path),
        duration_s=stopwatch.audio_s,
        unit=unit,
        segments=list(stopwatch.by_id.values()),
        scores=_scores(text, sentence_texts, stopwatch, references),
        has_reference=bool(references),
        normalized_erasure=normalized_erasure(text.withdrawn_units, len(emissions)),
        busy_s=stopwatch.busy_s,
        longest_lag_s=stopwatch.longest_lag_s,
        loop=probe.times,
        idle_loop=idle.times,
        memory_mb=resident_mb(),
        memory_growth_mb=resident_mb() - before_mb,
        memory_peak_mb=peak_mb(),
        spans=stopwatch.spans,
        shown_s=stopwatch.shown_s,
    )


def _scores(
    text: TextSoFar, sentence_texts: dict[int, TextSoFar], stopwatch: Stopwatch, references: list[Reference]
) -> Scores | None:
    """Score against the references; without any, score each sentence with its own text as the reference."""
    if references:
        # A reference without times covers the whole recording.
        whole_ms = stopwatch.audio_s * 1000
        return stream_scores(
            text.emissions(), [replace(one, duration_ms=min(one.duration_ms, whole_ms)) for one in references]
        )
    own = []
    for sentence in stopwatch.spoken:
        emissions = sentence_texts[sentence.sentence].emissions() if sentence.sentence in sentence_texts else []
        length_ms = (sentence.end_s - sentence.start_s) * 1000
        own.append((Reference(tuple(one.text for one in emissions), sentence.start_s * 1000, length_ms), emissions))
    return mean_scores(own)
