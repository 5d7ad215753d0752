"""Play a recording through the chain in real time and measure the run, or cut it into segments and windows at once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends import AsrConfig, SpeechDetector, find_recognizer, usable_cores
from ..config import PipelineConfig
from ..console import settle
from ..core import Endpointer, PipelineStats, Samples, SpeechSegment, VadConfig, Worker, fits
from ..media import Recording
from .processes import peak_mb, resident_mb
from .words import ReceivedEvent

if TYPE_CHECKING:
    from ..core import Models


PACK_MS = 28_000
"""Milliseconds of speech in a window: Whisper's 30 s less its padding."""


@dataclass(frozen=True)
class PlayedRun:
    """Results of one run."""

    recording: str
    duration_s: float
    busy_s: dict[str, float]
    """Stage → seconds of work."""
    cpu_share: float
    """CPU time of this process during the run, of all cores that it may use, 0 to 1."""
    longest_lag_s: float
    backlog_s: float
    """The lag when the last audio came; see ``PipelineStats.lag_s``."""
    drained_s: float
    """Time from the end of the audio until everything was translated and received."""
    memory_mb: float
    memory_growth_mb: float
    memory_peak_mb: float
    received: list[ReceivedEvent] = field(repr=False)
    """All events, in the order in which they were received."""

    @property
    def real_time_factor(self) -> float:
        """Seconds of work of all stages per second of audio."""
        return sum(self.busy_s.values()) / self.duration_s


@dataclass
class Stats(PipelineStats):
    """Keeps the lag when the newest audio came."""

    backlog_at_end_s: float = 0.0

    def received(self, samples: int) -> None:
        super().received(samples)
        self.backlog_at_end_s = self.lag_s


async def load_for_long_run(config: PipelineConfig) -> Models:
    """Load the models in a worker thread and exclude them from garbage collection, as the commands do."""
    from ..config import load_models

    loader = Worker("model loading")
    try:
        models = await loader.run(lambda: load_models(config))
        await loader.run(settle)
    finally:
        loader.close()
    return models


async def play(path: Path, config: PipelineConfig, models: Models) -> PlayedRun:
    """Play one recording."""
    from ..core import SpeechTranslator

    source, translator = Recording(path), SpeechTranslator(config, models)
    translator.stats = stats = Stats()
    before_mb, began_s, cpu_began_s = resident_mb(), time.perf_counter(), time.process_time()
    async with translator, aclosing(translator.run(source, paced=True)) as events:
        received = [ReceivedEvent(event, stats.stream_s) async for event in events]
        cpu_s, wall_s = time.process_time() - cpu_began_s, time.perf_counter() - began_s
    return PlayedRun(
        recording=str(path),
        duration_s=stats.audio_s,
        busy_s=stats.busy_s,
        cpu_share=cpu_s / wall_s / usable_cores(),
        longest_lag_s=stats.longest_lag_s,
        backlog_s=stats.backlog_at_end_s,
        drained_s=received[-1].elapsed_s - stats.audio_s,
        memory_mb=resident_mb(),
        memory_growth_mb=resident_mb() - before_mb,
        memory_peak_mb=peak_mb(),
        received=received,
    )


def segments_of(samples: Samples, config: VadConfig) -> list[SpeechSegment]:
    """Return the segments that the VAD stage would emit."""
    detector, endpointer = SpeechDetector(config), Endpointer(config)
    segments: list[SpeechSegment] = []
    for frames in (detector.push(samples), detector.flush()):
        for frame, decision in frames:
            for segment in endpointer.push(frame, *decision):
                segments.append(dataclasses.replace(segment, heard_sample=detector.heard_samples))
    return segments + endpointer.flush()


def packs(segments: Sequence[SpeechSegment]) -> Iterator[list[SpeechSegment]]:
    """Group consecutive segments into windows of at most ``PACK_MS``."""
    pack: list[SpeechSegment] = []
    for segment in segments:
        if pack and not fits(pack, segment, PACK_MS):
            yield pack
            pack = []
        pack.append(segment)
    if pack:
        yield pack


def faster_whisper(config: AsrConfig) -> Any:
    """faster-whisper's model with the same weights, arithmetic and threads."""
    from faster_whisper import WhisperModel

    weights = str(find_recognizer(config))
    return WhisperModel(weights, device="cpu", compute_type=config.compute_type, cpu_threads=config.threads)
