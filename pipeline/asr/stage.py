"""The ASR stage: speech segments in, transcripts out, recognised on its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ..errors import PipelineError
from ..events import EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript, TranscriptSoFar
from ..run.options import DraftOptions
from ..run.overload import LoadControl, OverloadOptions
from ..run.stats import PipelineStats
from ..run.worker import FAILED, FailedCalls, Worker
from .context import Context, Heard, fits, same_audio
from .drafting import Drafting
from .language_segmenter import LanguageSegmenter
from .open_numbers import OpenNumbers
from .options import AsrConfig
from .recognizer import (
    BatchRecognizer,
    DraftRecognizer,
    DraftRefusedError,
    RecognitionOptions,
    Recognizer,
    StreamingRecognizer,
    by_segment,
)
from .terms import HeardTerms

log = logging.getLogger(__name__)

# Audio recognised at once for a draft, with its context, in milliseconds: with a second of padding, the shortest window.
_DRAFT_MS = 9_000
# Groups of segments of a recording that are recognised at once. More gain little; see ``WhisperEngine.generate_several``.
_GROUPS = 4


class AsrStage:
    """Puts one transcript per segment on ``outbox``, including rejected ones. Passes pauses on.

    Consecutive segments are recognised together: while ``load`` asks for it, those that are already queued; with
    ``join_ms() > 0``, also those still to come, and several groups at once. Otherwise each is recognised after the audio that
    ``context`` keeps. A ``SegmentSoFar`` in a pause is recognised at once; if the segment then ends
    as it was, its transcript is ready.

    With ``drafts``, a segment in progress is recognised again and again, by ``drafter`` if there is one, and
    ``TranscriptSoFar`` says what was heard in it. A ``StreamingRecognizer`` is fed with what is new instead. The final
    transcript begins with the words committed there.

    A call of ``recognizer`` that fails costs its segment, whose transcript is rejected as "failed"; one for a draft, nothing.
    Segments that were recognised together are tried one by one. The third segment in a row that fails, or a
    ``PipelineError``, ends ``run``.
    """

    name = "ASR"

    def __init__(
        self,
        recognizer: Recognizer | StreamingRecognizer,
        inbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput],
        outbox: asyncio.Queue[Transcript | TranscriptSoFar | Pause | EndOfInput],
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
        join_ms: Callable[[], int] = lambda: 0,
        context: Context | None = None,
        several_languages: bool = False,
        drafts: DraftOptions | None = None,
        drafter: DraftRecognizer | None = None,
        terms: HeardTerms | None = None,
        beams: int = AsrConfig.beam_size,
        max_segment_ms: int = 0,
    ) -> None:
        """``several_languages``: the recogniser tells them apart, and is told the language of the last transcript.

        ``drafter``: a smaller recogniser for drafts, which commits nothing; None: ``recognizer``, if it can draft.

        ``terms``: the glossary of the stream. ``beams``: hypotheses of the recogniser, of which it keeps fewer while behind.

        ``max_segment_ms``: the longest segment. If it is given, live ones that end in a number wait for more of it.
        """
        self.recognizer = recognizer = by_segment(recognizer)
        self.inbox, self.outbox, self.stats = inbox, outbox, stats or PipelineStats()
        self._load, self._join_ms = load or LoadControl(OverloadOptions()), join_ms
        self._context, self._terms, self._own_beams = context or Context(0, 0), terms, beams
        self._ready: list[SpeechSegment | SegmentSoFar | Pause | EndOfInput] = []  # taken from the inbox
        self._early: tuple[SpeechSegment, Transcript] | None = None
        self._several, self._language = several_languages, ""
        self._changes = LanguageSegmenter.told_by(recognizer if several_languages else None)
        self._calls = FailedCalls()
        self._withheld: list[Transcript] = []  # rests of segments that are not shown
        drafts = drafts or DraftOptions(enabled=False)
        own = recognizer if isinstance(recognizer, DraftRecognizer) else None
        found = (drafter or own) if drafts.enabled else None
        self._drafting = Drafting(recognizer, found, drafts, self.stats.clock, commits=drafter is None)
        self._numbers = OpenNumbers(max_segment_ms, self._drafting.goes_on) if max_segment_ms else None

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        with contextlib.closing(Worker(self.name)) as worker:
            while not isinstance(work := await self._take(), EndOfInput):
                await self._put_left_over(work)
                if isinstance(work, SegmentSoFar):
                    # If more is waiting, the segment, or more of it, is there already.
                    due = work.pausing or (self._use_context() and self._drafting.due(work.segment))
                    if self.inbox.empty() and due:
                        await self._put(await worker.run(partial(self._look_ahead, work)))
                    continue
                if isinstance(work, Pause):
                    await self.outbox.put(work)
                    continue
                groups = await self._with_more(work)
                recognise = partial(self._transcribe_batch, groups) if groups else partial(self._transcribe, work)
                await self._put(await worker.run(recognise))
            await self._put_left_over(work)
            await self.outbox.put(work)

    async def _put(self, found: Sequence[Transcript | TranscriptSoFar]) -> None:
        """Put out what was recognised, then the rests that are not shown."""
        for transcript in (*found, *self._withheld):
            if isinstance(transcript, Transcript):
                self.stats.transcribed(transcript)
            await self.outbox.put(transcript)
        self._withheld.clear()

    async def _take(self) -> list[SpeechSegment] | SegmentSoFar | Pause | EndOfInput:
        """The next segments to recognise together, one that may end now, a pause, or the end of input."""
        while not self._ready:
            following = await self.inbox.get()
            self._ready += self._numbers.push(following, self._early_text) if self._numbers else [following]
        item = self._ready.pop(0)
        if not isinstance(item, SpeechSegment):
            return item
        found = [item]
        wait_ms = self._join_ms()
        limit_ms = wait_ms or self._load.measures.join_ms
        pause: Pause | None = None
        while limit_ms and not self._ready and (wait_ms or not self.inbox.empty()):
            following = await self.inbox.get()
            if isinstance(following, SegmentSoFar):
                continue
            if isinstance(following, Pause):  # the times of the segments show it too, unless it is the last item
                pause = following
                continue
            if isinstance(following, EndOfInput) or not fits(found, following, limit_ms):
                self._ready, pause = [following], None
                break
            self.stats.joined += 1
            found.append(following)
        self._ready += [pause] if pause is not None else []
        return found

    def _early_text(self, segment: SpeechSegment) -> str:
        """What was heard in a segment in the pause at its end; empty if that is not known, or there is no time to wait."""
        early = self._early if self._use_context() else None
        return early[1].text if early is not None and same_audio(early[0], segment) else ""

    async def _with_more(self, first: list[SpeechSegment]) -> list[list[SpeechSegment]]:
        """The segments of a group, and those of the following groups that are to be recognised at the same time.

        Empty if groups are recognised one by one. Otherwise a recording's groups always come this way, in the same
        batches from its first one on: also the last one alone, and when the run is resumed. So all these runs have the
        same transcripts.
        """
        if not self._at_once():
            return []
        groups = [first]
        while len(groups) < _GROUPS:
            following = await self._take()
            if isinstance(following, list):
                groups.append(following)
            elif not isinstance(following, SegmentSoFar):
                self._ready.insert(0, following)
                break
        return groups

    def _at_once(self) -> bool:
        """Whether groups are independent of each other, and the recogniser takes several."""
        alone = self._several or self._drafting.enabled or (self._terms is not None and not self._terms.empty)
        return bool(self._join_ms()) and not alone and isinstance(self.recognizer, BatchRecognizer)

    def _look_ahead(self, so_far: SegmentSoFar) -> list[Transcript | TranscriptSoFar]:
        """Recognise the segment in progress: its parts in another language, then what is to be shown of the rest."""
        with self.stats.busy("asr"):
            *ended, segment = self._changes.parts(so_far.segment)
        found: list[Transcript | TranscriptSoFar] = [*self._transcribe_parts(ended)] if ended else []
        if so_far.pausing or not self._changes.unsure:
            shown = self._look_at(segment, pausing=so_far.pausing)
            found += [shown] if shown is not None else []
        return found

    def _look_at(self, segment: SpeechSegment, *, pausing: bool) -> TranscriptSoFar | None:
        drafting = self._drafting
        if pausing and not drafting.streams:  # it may end here
            transcript = self._recognise_one(segment)
            self._early = segment, transcript
            return drafting.pushed(segment, transcript)
        context = self._context.before(segment, _DRAFT_MS)
        with self.stats.busy("asr"):
            try:
                found = drafting.draft(segment, self._options(context))
            except PipelineError:
                raise
            except Exception as error:
                if not isinstance(error, DraftRefusedError):
                    log.debug("a draft of segment %d failed", segment.id, exc_info=True)
                return None
        self.stats.drafts += 1
        if self._terms is not None and found is not None:
            self._terms.heard(found.transcript)
        return found

    def _transcribe(self, segments: list[SpeechSegment]) -> list[Transcript]:
        with self.stats.busy("asr"):
            parts = [part for segment in segments for part in self._changes.parts(segment)]
        return self._transcribe_parts(parts)

    def _transcribe_parts(self, segments: list[SpeechSegment]) -> list[Transcript]:
        drafting = self._drafting
        if not self._load.measures.early:
            self.stats.undrafted += sum(map(drafting.missed, segments))
        if drafting.committed_in(segments[0]):
            found = list(map(self._finish, segments))
        else:
            found = self._prepared(segments) or self._recognise(segments)
            found[0] = drafting.finished(segments[0], found[0])
        self._keep(segments, found)
        return found

    def _transcribe_batch(self, groups: list[list[SpeechSegment]]) -> list[Transcript]:
        assert isinstance(self.recognizer, BatchRecognizer)
        segments = [segment for each in groups for segment in each]
        try:
            with self.stats.busy("asr"):
                found = self.recognizer.transcribe_batch(groups, self._options(count=len(segments)))
        except PipelineError:
            raise
        except Exception:
            log.debug("%d groups could not be recognised together", len(groups), exc_info=True)
            found = [self._recognise(group) for group in groups]
        transcripts = [transcript for each in found for transcript in each]
        self._keep(segments, transcripts)
        return transcripts

    def _keep(self, segments: Sequence[SpeechSegment], found: Sequence[Transcript]) -> None:
        """Keep what recognition needs to know of the transcripts later."""
        for segment, transcript in zip(segments, found, strict=True):
            if transcript.rejected is None:
                self._language = transcript.language
                if self._terms is not None:
                    self._terms.heard(transcript)
            for each in (transcript, *self._withheld):
                self._context.push(segment, each)

    async def _put_left_over(self, work: list[SpeechSegment] | SegmentSoFar | Pause | EndOfInput) -> None:
        """Put out words of a segment that was cut in front of them, if no speech follows there."""
        following = work[0] if isinstance(work, list) else work.segment if isinstance(work, SegmentSoFar) else work
        if (left_over := self._drafting.left_over(following)) is not None:
            await self.outbox.put(left_over)

    def _finish(self, segment: SpeechSegment) -> Transcript:
        """The transcript of a segment in which words may be committed."""
        drafting = self._drafting
        committed = drafting.committed_in(segment)
        transcript = drafting.cut(segment) if committed and segment.forced_cut else None
        if transcript is None:
            (transcript,) = self._prepared([segment]) or [self._recognise_one(segment)]
            if drafting.withheld is not None:
                self._withheld.append(drafting.withheld)
        return drafting.finished(segment, transcript)

    def _recognise_one(self, segment: SpeechSegment) -> Transcript:
        if not self._drafting.committed_in(segment):
            return self._recognise([segment])[0]
        with self.stats.busy("asr"):
            return self._drafting.recognised(segment, self._options(count=1), self._attempt)

    def _prepared(self, segments: list[SpeechSegment]) -> list[Transcript]:
        """The transcript of a segment that was recognised before it ended, if it is still the same."""
        early, self._early = self._early, None
        if early is None or len(segments) > 1:
            return []
        before, transcript = early
        (segment,) = segments
        if not same_audio(before, segment):
            return []
        with self.stats.busy("asr"):
            return [replace(transcript, heard_s=segment.heard_s, speech_end_s=segment.speech_end_s)]

    def _recognise(self, segments: list[SpeechSegment]) -> list[Transcript]:
        if len(segments) > 1:
            try:
                with self.stats.busy("asr"):
                    return self.recognizer.transcribe(segments, self._options(count=len(segments)))
            except PipelineError:
                raise
            except Exception:
                log.debug("%d segments could not be recognised together", len(segments), exc_info=True)
            return [self._recognise([segment])[0] for segment in segments]
        (segment,) = segments
        context = self._context.before(segment) if self._use_context() else ()
        options = self._options(context, count=1)
        with self.stats.busy("asr"):
            return [self._attempt(segment, lambda: self.recognizer.transcribe(segments, options)[0])]

    def _attempt(self, segment: SpeechSegment, recognise: Callable[[], Transcript]) -> Transcript:
        """The transcript of a segment; one without text if the recogniser fails."""
        try:
            found = recognise()
        except Exception as error:
            reason = self._calls.reason(error)
            log.warning("the speech from %.1f to %.1f s is not recognised: %s", segment.start_s, segment.end_s, reason)
            self.stats.failures[self.name] = reason
            return Transcript(
                *(segment.id, segment.speech_start_s, segment.end_s, "", self._language),
                rejected=FAILED,
                heard_s=segment.heard_s,
                speech_end_s=segment.speech_end_s,
            )
        self._calls.worked()
        return found

    def _options(self, context: Sequence[Heard] = (), count: int = 0) -> RecognitionOptions:
        """``count``: how many segments are recognised that have ended or pause."""
        beams = self._load.measures.beam_size
        beams = beams if beams is not None and beams < self._own_beams else None
        self.stats.narrowed += count if beams is not None else 0
        before = (self._language or None) if self._several else None
        return RecognitionOptions(before=before, context=context, beams=beams, terms=self._terms)

    def _use_context(self) -> bool:
        """Whether segments are recognised after what was said before; segments of a recording are joined instead."""
        return self._load.measures.context and not self._join_ms()
