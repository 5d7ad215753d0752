"""The VAD stage: audio chunks in, speech segments and long pauses out."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ..events import SAMPLE_RATE, EndOfInput, Pause, Samples, SegmentSoFar, SoundEvent, SpeechSegment, mono_int16
from ..run.stats import PipelineStats
from ..run.worker import Worker
from .endpointing import Endpointer
from .gate import FrameDecision, FrameDetector
from .options import VadConfig

if TYPE_CHECKING:
    from .sounds import HeardSounds, SoundDetector

# Chunks that the detectors take together, if no draft is wanted: 1 s, so that a run that is stopped ends soon.
_CHUNKS_AT_ONCE = 10


class VadStage:
    """Takes audio chunks of any size from ``inbox`` and puts segments on ``outbox``, and a ``Pause`` after a segment that no
    speech has followed for each of the times ``pauses_ms``. While ``early()``, also a ``SegmentSoFar`` with every chunk during
    speech and after ``early_ms`` of silence, if nothing else waits on ``outbox``. With ``sounds``, a ``SoundEvent`` for each stretch
    of music or singing.

    The detectors run on the stage's own thread or the ``reader``, in order: one chunk at a time while a ``SegmentSoFar`` is
    wanted, otherwise those that are queued.
    """

    name = "VAD"

    def __init__(
        self,
        config: VadConfig,
        detector: Callable[[], FrameDetector],
        inbox: asyncio.Queue[Samples | EndOfInput],
        outbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | SoundEvent | EndOfInput],
        stats: PipelineStats | None = None,
        pauses_ms: Iterable[int] = (),
        early: Callable[[], bool] = lambda: False,
        reader: Callable[[], Worker | None] = lambda: None,
        sounds: SoundDetector | None = None,
    ) -> None:
        """``detector``: called once, on the stage's own thread. ``reader``: the thread that reads a recording, unless a read may stall. Detection takes turns with reading there,
        which takes half of the CPU time of two threads that wait for each other at every chunk.
        """
        self.inbox, self.outbox, self.stats = inbox, outbox, stats or PipelineStats()
        self._config, self._make_detector = config, detector
        self._endpointer = Endpointer(config)
        self._sounds: HeardSounds | None = None
        if sounds is not None:
            from .sounds import HeardSounds

            self._sounds = HeardSounds(sounds)
        self._pauses_s = sorted(each / 1000 for each in pauses_ms if each)
        self._reader, self._early = reader, early
        self._announced = False  # whether the current silence has been announced
        self._input_ended = False
        self._speech_end_s = 0.0
        self._due_s: list[float] = []  # the pauses after the last segment that have not been reached

    @cached_property
    def _detector(self) -> FrameDetector:  # created on a worker's thread because it loads a model
        return self._make_detector()

    async def run(self) -> None:
        """Run until the end of input has been passed on. Raises ValueError: an item is not mono int16 audio."""
        with contextlib.closing(Worker("VAD")) as worker:
            while chunks := await self._chunks():
                self.stats.audio_samples += sum(map(len, chunks))
                for events in await (self._reader() or worker).run(partial(self._push, *chunks), self.name):
                    await self._deliver(events)
                if (so_far := self._segment_so_far()) is not None:
                    await self.outbox.put(so_far)
            for segment in await worker.run(self._flush):
                await self._deliver(segment)
        await self.outbox.put(EndOfInput(self.stats.audio_s))

    async def _chunks(self) -> list[Samples]:
        """The next chunk and, unless a ``SegmentSoFar`` may follow it, those queued behind it; empty at the end of input."""
        chunks: list[Samples] = []
        while not self._input_ended and (not chunks or (len(chunks) < _CHUNKS_AT_ONCE and not self.inbox.empty())):
            item = await self.inbox.get()
            if isinstance(item, EndOfInput):
                self._input_ended = True
                break
            chunks.append(mono_int16(item))
            if self._early():
                break
        return chunks

    def _push(self, *chunks: Samples) -> list[SpeechSegment | Pause | SoundEvent]:
        with self.stats.busy("vad"):
            return [event for samples in chunks for event in self._cut(self._detector.push(samples))]

    def _flush(self) -> list[SpeechSegment | Pause | SoundEvent]:
        with self.stats.busy("vad"):
            events = [*self._cut(self._detector.flush()), *self._endpointer.flush()]
            return [*events, *self._settled_sounds(self._endpointer.received)]

    def _settled_sounds(self, until: int) -> Iterator[SoundEvent]:
        return self._sounds.settled(until, self._detector.heard_samples) if self._sounds is not None else iter(())

    async def _deliver(self, event: SpeechSegment | Pause | SoundEvent) -> None:
        if isinstance(event, SpeechSegment):
            self.stats.segment_closed(event)
        await self.outbox.put(event)

    def _segment_so_far(self) -> SegmentSoFar | None:
        silent_ms = self._endpointer.silent_ms
        pausing = silent_ms >= max(self._config.early_ms, 1)
        if not pausing:
            self._announced = False
        if not self.outbox.empty():
            return None
        if not self._early() or not self._endpointer.in_speech or (pausing and self._announced):
            return None
        if pausing:
            if not self._config.early_ms:
                return None
            self._announced = True
        segment = self._endpointer.so_far()
        return SegmentSoFar(segment, pausing) if segment is not None else None

    def _cut(self, frames: Iterable[tuple[Samples, FrameDecision]]) -> Iterator[SpeechSegment | Pause | SoundEvent]:
        """The segments that frames complete, the pauses and the sounds, which depend on the frames alone, not on how they are fed."""
        for frame, decision in frames:
            for segment in self._endpointer.push(frame, *decision):
                # The endpointer counts only decided frames; the detector also counts undecided ones.
                segment = dataclasses.replace(segment, heard_sample=self._detector.heard_samples)
                self._speech_end_s, self._due_s = segment.speech_end_s, list(self._pauses_s)
                yield segment
            if self._due_s and not self._endpointer.in_speech:
                length_s = self._endpointer.received / SAMPLE_RATE - self._speech_end_s
                while self._due_s and self._due_s[0] <= length_s:
                    yield Pause(self._speech_end_s, self._due_s.pop(0))
            if self._sounds is not None:
                self._sounds.push(frame)
                yield from self._settled_sounds(self._endpointer.settled)
