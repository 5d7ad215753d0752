"""The ASR stage: speech segments in, transcripts out, recognised one at a time on a thread of its own."""

from __future__ import annotations

import asyncio
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

    While ``load`` asks for it, segments that wait and follow each other are recognised in one call: their transcript has
    the first one's id.
    """

    name = "ASR"

    def __init__(
        self,
        recognizer: Recognizer,
        inbox: asyncio.Queue[SpeechSegment | EndOfInput],
        outbox: asyncio.Queue[Transcript | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
    ) -> None:
        self.recognizer, self.inbox, self.outbox = recognizer, inbox, outbox
        self.stats = stats or PipelineStats()
        self._load = load
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
        """The next work: a segment, joined with those behind it where the load asks for that."""
        item, self._next = self._next or await self.inbox.get(), None
        limit_ms = self._load.measures.join_ms if self._load is not None else 0
        while limit_ms and isinstance(item, SpeechSegment) and not self.inbox.empty():
            following = self.inbox.get_nowait()
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
