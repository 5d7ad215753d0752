"""The ASR stage: speech segments in, transcripts out, recognised one at a time on a thread of its own."""

from __future__ import annotations

import asyncio
from functools import partial

from pipeline.asr.whisper import WhisperRecognizer
from pipeline.events import EndOfInput, SpeechSegment, Transcript
from pipeline.stats import PipelineStats
from pipeline.worker import Worker


class AsrStage:
    """Puts one transcript a segment on ``outbox``, rejected ones included."""

    name = "ASR"

    def __init__(
        self,
        recognizer: WhisperRecognizer,
        inbox: asyncio.Queue[SpeechSegment | EndOfInput],
        outbox: asyncio.Queue[Transcript | EndOfInput],
        stats: PipelineStats | None = None,
    ) -> None:
        self.recognizer, self.inbox, self.outbox = recognizer, inbox, outbox
        self.stats = stats or PipelineStats()

    async def run(self) -> None:
        """Work until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(item := await self.inbox.get(), EndOfInput):
                transcript = await worker.run(partial(self._transcribe, item))
                if transcript.rejected:
                    self.stats.segment_rejected(transcript.segment_id)
                await self.outbox.put(transcript)
            await self.outbox.put(item)
        finally:
            worker.close()

    def _transcribe(self, segment: SpeechSegment) -> Transcript:
        with self.stats.busy("asr"):
            return self.recognizer.transcribe(segment)
