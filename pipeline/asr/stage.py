"""The ASR stage: speech segments in, transcripts out, recognised on its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pipeline.asr.context import Context, Heard
from pipeline.asr.drafts import Agreement, DraftSchedule, without_end
from pipeline.asr.options import AsrConfig
from pipeline.asr.packing import fits
from pipeline.events import EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript, TranscriptSoFar
from pipeline.run.drafts import DraftOptions
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker

# Audio recognised at once for a draft, with its context, in milliseconds: with a second of padding, the shortest window.
_DRAFT_MS = 9_000


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


@runtime_checkable
class DraftRecognizer(Protocol):
    """A recogniser that can recognise a segment in progress; see ``WhisperRecognizer``."""

    def draft(self, context: Sequence[Heard], segment: SpeechSegment, before: str | None = None) -> Transcript: ...


class AsrStage:
    """Puts one transcript per segment on ``outbox``, including rejected ones. Passes pauses on.

    Consecutive segments share one window: while ``load`` asks for it, those that are already queued; with
    ``join_ms() > 0``, also those still to come. Otherwise each is recognised after the audio that ``context`` keeps. A
    ``SegmentSoFar`` in a pause is recognised at once; if the segment then ends as it was, its transcript is ready.

    With ``drafts``, a segment in progress is recognised again and again, and ``TranscriptSoFar`` says what was heard in it.
    The final transcript begins with the words committed there.
    """

    name = "ASR"

    def __init__(
        self,
        recognizer: Recognizer,
        inbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput],
        outbox: asyncio.Queue[Transcript | TranscriptSoFar | Pause | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
        join_ms: Callable[[], int] = lambda: 0,
        context: Context | None = None,
        several_languages: bool = False,
        drafts: DraftOptions | None = None,
    ) -> None:
        """``several_languages``: the recogniser tells them apart, and is told the language of the last transcript."""
        self.recognizer, self.inbox, self.outbox = recognizer, inbox, outbox
        self.stats = stats or PipelineStats()
        self._load, self._join_ms, self._context = load, join_ms, context
        self._next: SpeechSegment | SegmentSoFar | Pause | EndOfInput | None = None
        self._early: tuple[SpeechSegment, Transcript] | None = None
        self._several, self._language = several_languages, ""
        drafter = recognizer if isinstance(recognizer, DraftRecognizer) else None
        self._drafter = drafter if drafts is not None and drafts.enabled else None
        self._schedule = DraftSchedule(drafts or DraftOptions())
        self._agreement = Agreement((drafts or DraftOptions()).margin_ms / 1000)

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(work := await self._take(), EndOfInput):
                if isinstance(work, SegmentSoFar):
                    # If more is waiting, the segment, or more of it, is there already.
                    if self.inbox.empty() and (work.pausing or self._due(work.segment)):
                        so_far = await worker.run(partial(self._look_ahead, work))
                        if so_far is not None:
                            await self.outbox.put(so_far)
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

    def _due(self, segment: SpeechSegment) -> bool:
        return self._drafter is not None and self._use_context() and self._schedule.due(segment)

    def _look_ahead(self, so_far: SegmentSoFar) -> TranscriptSoFar | None:
        """Recognise the segment in progress; return what is new in it, if drafts are wanted."""
        segment = so_far.segment
        began = self.stats.clock()
        if so_far.pausing:  # it may end here
            (transcript,) = self._recognise([segment])
            self._early = segment, transcript
        else:
            assert self._drafter is not None
            transcript = self._draft(self._drafter, segment)
            self._schedule.ran(segment, self.stats.clock() - began)
        if self._drafter is None:
            return None
        agreement = self._agreement
        if agreement.segment != segment.id:
            agreement.begin(segment.id)
        if not agreement.push(transcript, segment.heard_s):
            return None
        draft = agreement.draft if so_far.pausing else without_end(agreement.draft)
        return TranscriptSoFar(agreement.whole(transcript, draft))

    def _draft(self, recognizer: DraftRecognizer, segment: SpeechSegment) -> Transcript:
        context = self._context.before(segment, _DRAFT_MS) if self._context is not None else ()
        self.stats.drafts += 1
        with self.stats.busy("asr"):
            return recognizer.draft(context, segment, (self._language or None) if self._several else None)

    def _with_committed(self, segment: SpeechSegment, transcript: Transcript) -> Transcript:
        """The final transcript of a segment, which begins with the words that were committed while it was in progress."""
        agreement = self._agreement
        if agreement.segment != segment.id:
            return transcript
        after = agreement.divided(segment.end_s) if segment.forced_cut else []
        if after:
            found = agreement.whole(transcript, ()) if agreement.committed else replace(transcript, text="", words=())
        else:
            found = agreement.finished(transcript)
        agreement.begin(segment.id + 1)
        if after:  # the next segment begins with words that were committed already
            agreement.committed, agreement.language = after, found.language
        return found

    def _transcribe(self, segments: list[SpeechSegment]) -> list[Transcript]:
        found = self._prepared(segments) or self._recognise(segments)
        found = [self._with_committed(*pair) for pair in zip(segments, found, strict=True)]
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
