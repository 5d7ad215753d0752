"""The VAD stage: audio chunks in, speech segments out."""

from __future__ import annotations

import asyncio

import numpy as np

from pipeline.config import VadConfig
from pipeline.events import EndOfInput, Samples, SpeechSegment
from pipeline.overload import LoadControl
from pipeline.stats import PipelineStats
from pipeline.vad.endpointing import Endpointer
from pipeline.vad.webrtc import WebRtcVad


class VadStage:
    """Cuts any chunking of the audio into frames, decides each, and puts segments on ``outbox``.

    Runs on the event loop: half a second of audio takes under a millisecond.
    """

    name = "VAD"

    def __init__(
        self,
        config: VadConfig,
        inbox: asyncio.Queue[Samples | EndOfInput],
        outbox: asyncio.Queue[SpeechSegment | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
    ) -> None:
        self.inbox, self.outbox = inbox, outbox
        self.stats = stats or PipelineStats()
        self._load = load
        self._vad = WebRtcVad(config.mode, config.frame_ms)
        self._endpointer = Endpointer(config)
        self._rest: Samples = np.zeros(0, np.int16)

    async def run(self) -> None:
        """Work until the end of input has been passed on."""
        while not isinstance(item := await self.inbox.get(), EndOfInput):
            if self._load is not None:
                self._endpointer.limit(self._load.measures.max_segment_ms)
            with self.stats.busy("vad"):
                segments = self._push(item)
            for segment in segments:
                await self._deliver(segment)
        for segment in self._flush():
            await self._deliver(segment)
        await self.outbox.put(EndOfInput(self.stats.audio_s))

    async def _deliver(self, segment: SpeechSegment) -> None:
        self.stats.segment_closed(segment)
        if segment.forced_cut and self._load is not None and self._load.measures.max_segment_ms is not None:
            self.stats.shortened += 1
        await self.outbox.put(segment)

    def _push(self, chunk: Samples) -> list[SpeechSegment]:
        self.stats.audio_samples += len(chunk)
        pending = np.concatenate([self._rest, chunk])
        size = self._vad.frame_samples
        whole = len(pending) // size * size
        # A copy, so that the few samples left do not keep the whole chunk alive.
        self._rest = pending[whole:].copy()
        segments: list[SpeechSegment] = []
        for start in range(0, whole, size):
            frame = pending[start : start + size]
            segments += self._endpointer.push(frame, self._vad.is_speech(frame))
        return segments

    def _flush(self) -> list[SpeechSegment]:
        last = self._endpointer.push(self._rest, self._vad.is_speech(self._rest)) if len(self._rest) else []
        return last + self._endpointer.flush()
