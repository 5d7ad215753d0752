"""The ASR stage: speech segments in, transcripts out, recognised on its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from pipeline.asr.options import AsrConfig
from pipeline.asr.packing import fits
from pipeline.events import EndOfInput, SpeechSegment, Transcript
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker


class Recognizer(Protocol):
    """A recogniser, as far as the stage uses it; see ``WhisperRecognizer``."""

    @property
    def config(self) -> AsrConfig: ...

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None) -> Transcript: ...

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None
    ) -> list[Transcript]: ...


class AsrStage:
    """Puts one transcript per segment on ``outbox``, including rejected ones.

    Consecutive segments share one window: while ``load`` asks for it, those that are already queued; with
    ``join_ms() > 0``, also those still to come.
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
        """Run until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(work := await self._take(), EndOfInput):
                for transcript in await worker.run(partial(self._transcribe, work)):
                    self.stats.transcribed(transcript)
                    await self.outbox.put(transcript)
            await self.outbox.put(work)
        finally:
            worker.close()

    async def _take(self) -> list[SpeechSegment] | EndOfInput:
        """The next segments to recognise together, or the end of input."""
        item, self._next = self._next or await self.inbox.get(), None
        if isinstance(item, EndOfInput):
            return item
        found = [item]
        wait_ms = self._join_ms()
        limit_ms = wait_ms or (self._load.measures.join_ms if self._load is not None else 0)
        while limit_ms and (wait_ms or not self.inbox.empty()):
            following = await self.inbox.get()
            if isinstance(following, EndOfInput) or not fits(found, following, limit_ms):
                self._next = following
                break
            self.stats.joined += 1
            found.append(following)
        return found

    def _transcribe(self, segments: list[SpeechSegment]) -> list[Transcript]:
        beams = self._load.measures.beam_size if self._load is not None else None
        narrower = {}
        if beams is not None and beams < self.recognizer.config.beam_size:
            narrower = {"beam_size": beams}
            self.stats.narrowed += len(segments)
        with self.stats.busy("asr"):
            if len(segments) == 1:
                return [self.recognizer.transcribe(segments[0], **narrower)]
            return self.recognizer.transcribe_packed(segments, **narrower)
