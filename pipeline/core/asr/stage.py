"""The ASR stage: speech segments in, the transcripts of closed groups out, and in live runs drafts of the open one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..events import EndOfInput, Pause, SegmentSoFar, SoundEvent, SpeechSegment, Transcript, TranscriptSoFar
from ..run.overload import LoadControl
from ..run.worker import Worker
from .final import FinalRecognition
from .groups import Group, Groups

if TYPE_CHECKING:
    from .live.drafts import LiveDrafts

# Groups that are recognised at once. More gain little; see ``WhisperEngine.generate_several``.
_GROUPS = 4

_Item = SpeechSegment | SegmentSoFar | Pause | SoundEvent | EndOfInput


class AsrStage:
    """Recognises groups of segments when they have closed. Puts a transcript for each segment on ``outbox``, including rejected
    ones, and passes pauses and sounds on that come after a group, in order.

    With ``drafts``, the open group is recognised as it grows, too: at each ``SegmentSoFar``, if nothing else waits. A
    ``TranscriptSoFar`` says what was heard in it. Drafts change nothing of the transcripts, and are left out while ``load`` asks for it.
    """

    name = "ASR"

    def __init__(
        self,
        inbox: asyncio.Queue[_Item],
        outbox: asyncio.Queue[Transcript | TranscriptSoFar | Pause | SoundEvent | EndOfInput],
        groups: Groups,
        final: FinalRecognition,
        drafts: LiveDrafts | None = None,
        load: LoadControl | None = None,
        live: Callable[[], bool] = lambda: False,
        reading: Callable[[], bool] = lambda: False,
    ) -> None:
        """``live``: the audio comes as it is spoken. ``reading``: a recording is read, and more of it comes soon: a closed group waits
        for others to be recognised with it.
        """
        self.inbox, self.outbox, self.stats = inbox, outbox, final.stats
        self._groups, self._final, self._drafts, self._load = groups, final, drafts, load
        self._live, self._reading = live, reading
        self._closed: list[Group | Pause | SoundEvent] = []
        """Groups, pauses and sounds that are put out next, in order."""
        self._sounds: list[SoundEvent] = []
        """Sounds heard since the open group began: they follow it."""

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        with contextlib.closing(Worker(self.name)) as worker:
            while True:
                item = await self.inbox.get()
                if isinstance(item, SegmentSoFar):
                    await self._look(item, worker)
                else:
                    await self._take(item, worker)
                if isinstance(item, EndOfInput):
                    await self.outbox.put(item)
                    return

    async def _take(self, item: SpeechSegment | Pause | SoundEvent | EndOfInput, worker: Worker) -> None:
        """Group a segment with those before, and recognise the groups that have closed, several at once if possible."""
        if isinstance(item, SpeechSegment):
            if self._load is not None and not self._load.drafts and self._drafts is not None:
                self.stats.undrafted += self._drafts.missed(item)
            self.stats.grouped(item)
            for part in await worker.run(partial(self._final.parts, item)):
                self._close(self._groups.push(part), item.heard_s)
        elif isinstance(item, SoundEvent):
            (self._sounds if self._groups.open else self._closed).append(item)
        else:
            heard_s = item.start_s + item.length_s if isinstance(item, Pause) else item.duration_s
            self._close(self._groups.push(item), heard_s)
            if isinstance(item, Pause) and not self._groups.open:  # otherwise its group says more
                self._closed.append(item)
        waiting = sum(isinstance(each, tuple) for each in self._closed)
        several = _GROUPS if self._final.at_once else 1
        idle = self.inbox.empty() and not self._reading()
        if waiting >= several or isinstance(item, EndOfInput) or idle or not waiting:
            await self._put_out(worker)
        drafts = self._drafts_now() if isinstance(item, SpeechSegment) else None
        if drafts is not None and self._groups.open:
            draft = await worker.run(partial(drafts.ended, self._groups.open))
            if draft is not None:
                await self.outbox.put(draft)

    def _drafts_now(self) -> LiveDrafts | None:
        """The drafts, if there is time for them."""
        in_time = self._live() and self.inbox.empty() and (self._load is None or self._load.drafts)
        return self._drafts if in_time else None

    def _close(self, groups: list[Group], heard_s: float) -> None:
        for group in groups:
            self.stats.group_closed(group, heard_s)
            self._closed += [group, *self._sounds]
            self._sounds = []

    async def _put_out(self, worker: Worker) -> None:
        """Put out the transcripts of the groups that have closed, and the pauses after each."""
        closed, self._closed = self._closed, []
        groups = [item for item in closed if isinstance(item, tuple)]
        transcripts = iter(await worker.run(partial(self._recognised, groups)) if groups else [])
        for item in closed:
            if not isinstance(item, tuple):
                await self.outbox.put(item)
                continue
            for transcript in next(transcripts):
                self.stats.transcribed(transcript)
                await self.outbox.put(transcript)

    def _recognised(self, groups: list[Group]) -> list[list[Transcript]]:
        """The transcripts of groups: several at once, or those that a pause has brought already."""
        heard: list[list[Transcript]] = []
        while len(heard) < len(groups):
            todo = groups[len(heard) :]
            early = self._drafts.prepared(todo[0]) if self._drafts is not None else None
            if early is not None:
                self._final.take(todo[0], early)
            heard += [early] if early is not None else self._final.recognised(todo if self._final.at_once else todo[:1])
        if self._drafts is not None:
            for group, transcripts in zip(groups, heard, strict=True):
                self._drafts.closed(group, transcripts)
        return heard

    async def _look(self, so_far: SegmentSoFar, worker: Worker) -> None:
        """Recognise the open group as it is now, if there is time."""
        segment = so_far.segment
        if not self.inbox.empty():
            return  # the segment, or more of it, is there already
        if not self._final.several_languages:  # otherwise, its parts are known when it has ended
            self._close(self._groups.reached(segment), segment.heard_s)
        await self._put_out(worker)
        if (drafts := self._drafts_now()) is not None and (so_far.pausing or drafts.due(segment)):
            look = partial(drafts.look, self._groups.open, segment, pausing=so_far.pausing)
            if (draft := await worker.run(look)) is not None:
                await self.outbox.put(draft)
