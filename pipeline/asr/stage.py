"""The ASR stage: speech segments in, transcripts out, recognised on its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from pipeline.asr.context import Context, Heard
from pipeline.asr.options import AsrConfig
from pipeline.asr.packing import fits
from pipeline.events import EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker


class Recognizer(Protocol):
    """A recogniser, as far as the stage uses it; see ``WhisperRecognizer``."""

    @property
    def config(self) -> AsrConfig: ...

    def transcribe(
        self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None
    ) -> Transcript: ...

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]: ...

    def transcribe_after(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        beam_size: int | None = None,
        before: str | None = None,
    ) -> Transcript: ...


class AsrStage:
    """Puts one transcript per segment on ``outbox``, including rejected ones. Passes pauses on.

    Consecutive segments share one window: while ``load`` asks for it, those that are already queued; with
    ``join_ms() > 0``, also those still to come. Otherwise each is recognised after the audio that ``context`` keeps. A
    ``SegmentSoFar`` is recognised at once; if the segment then ends as it was, its transcript is ready.
    """

    name = "ASR"

    def __init__(
        self,
        recognizer: Recognizer,
        inbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput],
        outbox: asyncio.Queue[Transcript | Pause | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
        join_ms: Callable[[], int] = lambda: 0,
        context: Context | None = None,
        several_languages: bool = False,
    ) -> None:
        """``several_languages``: the recogniser tells them apart, and is told the language of the last transcript."""
        self.recognizer, self.inbox, self.outbox = recognizer, inbox, outbox
        self.stats = stats or PipelineStats()
        self._load, self._join_ms, self._context = load, join_ms, context
        self._next: SpeechSegment | SegmentSoFar | Pause | EndOfInput | None = None
        self._early: tuple[SpeechSegment, Transcript] | None = None
        self._several, self._language = several_languages, ""

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(work := await self._take(), EndOfInput):
                if isinstance(work, SegmentSoFar):
                    if self.inbox.empty():  # otherwise the segment, or more of it, is there already
                        await worker.run(partial(self._prepare, work.segment))
                    continue
                if isinstance(work, Pause):
                    await self.outbox.put(work)
                    continue
                for transcript in await worker.run(partial(self._transcribe, work)):
                    self.stats.transcribed(transcript)
                    await self.outbox.put(transcript)
            await self.outbox.put(work)
        finally:
            worker.close()

    async def _take(self) -> list[SpeechSegment] | SegmentSoFar | Pause | EndOfInput:
        """The next segments to recognise together, one that may end now, a pause, or the end of input."""
        item, self._next = self._next or await self.inbox.get(), None
        if not isinstance(item, SpeechSegment):
            return item
        found = [item]
        wait_ms = self._join_ms()
        limit_ms = wait_ms or (self._load.measures.join_ms if self._load is not None else 0)
        pause: Pause | None = None
        while limit_ms and (wait_ms or not self.inbox.empty()):
            following = await self.inbox.get()
            if isinstance(following, SegmentSoFar):
                continue
            if isinstance(following, Pause):  # the times of the segments show it too, unless it is the last item
                pause = following
                continue
            if isinstance(following, EndOfInput) or not fits(found, following, limit_ms):
                self._next, pause = following, None
                break
            self.stats.joined += 1
            found.append(following)
        self._next = self._next or pause
        return found

    def _prepare(self, segment: SpeechSegment) -> None:
        """Recognise a segment that may end now."""
        (transcript,) = self._recognise([segment])
        self._early = segment, transcript

    def _transcribe(self, segments: list[SpeechSegment]) -> list[Transcript]:
        found = self._prepared(segments) or self._recognise(segments)
        for segment, transcript in zip(segments, found, strict=True):
            if transcript.rejected is None:
                self._language = transcript.language
            if self._context is not None:
                self._context.push(segment, transcript)
        return found

    def _prepared(self, segments: list[SpeechSegment]) -> list[Transcript]:
        """The transcript of a segment that was recognised before it ended, if it is still the same."""
        early, self._early = self._early, None
        if early is None or len(segments) > 1:
            return []
        before, transcript = early
        (segment,) = segments
        if (before.id, before.start_sample) != (segment.id, segment.start_sample):
            return []
        if not np.array_equal(before.samples, segment.samples):
            return []
        with self.stats.busy("asr"):
            return [replace(transcript, heard_s=segment.heard_s, speech_end_s=segment.speech_end_s)]

    def _recognise(self, segments: list[SpeechSegment]) -> list[Transcript]:
        beams = self._load.measures.beam_size if self._load is not None else None
        options: dict[str, Any] = {}
        if beams is not None and beams < self.recognizer.config.beam_size:
            options["beam_size"] = beams
            self.stats.narrowed += len(segments)
        if self._several:
            options["before"] = self._language or None
        context = self._context.before(segments[0]) if self._context is not None and self._use_context() else ()
        with self.stats.busy("asr"):
            if len(segments) > 1:
                return self.recognizer.transcribe_packed(segments, **options)
            if context:
                return [self.recognizer.transcribe_after(context, segments[0], **options)]
            return [self.recognizer.transcribe(segments[0], **options)]

    def _use_context(self) -> bool:
        """Whether segments are recognised after what was said before; segments of a recording are joined instead."""
        return (self._load is None or self._load.measures.context) and not self._join_ms()
