"""The sentence stage: takes transcripts and pauses, puts out the transcripts and the text of sentences."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..events import EndOfInput, Pause, SoundEvent, SourceSentence, SourceText, Transcript, TranscriptSoFar
from ..run.options import SentenceOptions
from ..run.worker import Worker
from .assembler import SentenceAssembler, SourceEvent
from .sounds import SoundCaptions

if TYPE_CHECKING:
    from ...glossary import CurrentGlossary, Glossary


class SentenceStage:
    """Puts each transcript on ``outbox``, then the texts of sentences that it changes; see ``SentenceAssembler``."""

    name = "sentences"

    def __init__(
        self,
        inbox: asyncio.Queue[Transcript | TranscriptSoFar | Pause | SoundEvent | EndOfInput],
        outbox: asyncio.Queue[Transcript | SourceText | SourceSentence | EndOfInput],
        options: SentenceOptions | None = None,
        glossary: CurrentGlossary | None = None,
        sounds: SoundCaptions | None = None,
    ) -> None:
        """``sounds``: has the captions of each ``SoundEvent``, of which there are none without it."""
        self._glossary, self._sounds = glossary, sounds
        self.inbox, self.outbox = inbox, outbox
        self._assembler = SentenceAssembler(options)

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        with contextlib.closing(Worker(self.name)) as worker:  # splitting a long text takes milliseconds
            while not isinstance(item := await self.inbox.get(), EndOfInput):
                if isinstance(item, Transcript):
                    await self.outbox.put(item)
                for event in await worker.run(partial(self._take, item)):
                    await self.outbox.put(event)
            for event in self._with_terms(self._assembler.end()):
                await self.outbox.put(event)
            await self.outbox.put(item)

    def _take(self, item: Transcript | TranscriptSoFar | Pause | SoundEvent) -> list[SourceEvent]:
        if isinstance(item, SoundEvent):
            return self._with_terms(self._captioned(item))
        if isinstance(item, Transcript) and self._sounds is not None:
            self._sounds.heard(item)
        if isinstance(item, TranscriptSoFar):
            return self._assembler.so_far(item.transcripts)
        events = self._assembler.push(item) if isinstance(item, Transcript) else self._assembler.pause(item)
        return self._with_terms(events)

    def _captioned(self, sound: SoundEvent) -> list[SourceEvent]:
        if self._sounds is None:
            return []
        caption = self._sounds.caption(sound, self._assembler.goes_on_until_s)
        return self._assembler.sound(sound, caption, self._sounds.language) if caption is not None else []

    def _with_terms(self, events: Sequence[SourceEvent]) -> list[SourceEvent]:
        """The events, with the glossary's terms in sentences that have ended."""
        if self._glossary is None:
            return list(events)
        return [
            _with_terms(event, self._glossary()) if isinstance(event, SourceSentence) and event.sound is None else event
            for event in events
        ]


def _with_terms(sentence: SourceSentence, glossary: Glossary) -> SourceSentence:
    matches = glossary.spoken(sentence.language).found_in(sentence.text)
    return replace(sentence, terms=tuple(match.term.source for match in matches))
