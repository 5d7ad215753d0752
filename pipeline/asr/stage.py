"""The ASR stage: speech segments in, transcripts out, recognised one at a time on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from pipeline.config import AsrConfig
from pipeline.events import EndOfInput, SpeechSegment, Transcript
from pipeline.overload import LoadControl, joined, joins
from pipeline.stats import PipelineStats
from pipeline.worker import Worker


class Recognizer(Protocol):
    """What the stage needs of one; see ``WhisperRecognizer``."""

    @property
    def config(self) -> AsrConfig: ...

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None) -> Transcript: ...


class AsrStage:
    """Puts one transcript a segment on ``outbox``, rejected ones included.

    Segments that follow each other are recognised in one call: those that wait while ``load`` asks for it, and up to
    ``join_ms()`` also those that are still to come. Their transcript has the first one's id.
    """

    name = "ASR"

    def __init__(
        self,
        recognizer: Recognizer,
        inbox: asyncio.Queue[SpeechSegment | EndOfInput],
        outbox: asyncio.Queue[Transcript | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
        join_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.recognizer, self.inbox, self.outbox = recognizer, inbox, outbox
        self.stats = stats or PipelineStats()
        self._load, self._join_ms = load, join_ms
        self._next: SpeechSegment | EndOfInput | None = None

    async def run(self) -> None:
        """Work until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(item := await self._take(), EndOfInput):
                transcript = await worker.run(partial(self._transcribe, item))
                if transcript.rejected:
                    self.stats.segment_rejected(transcript.segment_id)
                await self.outbox.put(transcript)
            await self.outbox.put(item)
        finally:
            worker.close()

    async def _take(self) -> SpeechSegment | EndOfInput:
        """The next work: a segment, joined with those behind it where that is asked for."""
        item, self._next = self._next or await self.inbox.get(), None
        wait_ms = self._join_ms()
        limit_ms = wait_ms or (self._load.measures.join_ms if self._load is not None else 0)
        while limit_ms and isinstance(item, SpeechSegment) and (wait_ms or not self.inbox.empty()):
            following = await self.inbox.get()
            if isinstance(following, EndOfInput) or not joins(item, following, limit_ms):
                self._next = following
                break
            self.stats.segment_joined(following.id)
            item = joined(item, following)
        return item

    def _transcribe(self, segment: SpeechSegment) -> Transcript:
        beams = self._load.measures.beam_size if self._load is not None else None
        with self.stats.busy("asr"):
            if beams is None or beams >= self.recognizer.config.beam_size:
                return self.recognizer.transcribe(segment)
            self.stats.narrowed += 1
            return self.recognizer.transcribe(segment, beam_size=beams)
