"""The NMT stage: takes transcripts, puts out the transcripts and one delta per target token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Protocol

from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.nmt.decoder import DecoderState
from pipeline.nmt.search import OnStart
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.sentences.assembler import SentenceAssembler
from pipeline.sentences.options import SentenceOptions


class TextTranslator(Protocol):
    """The interface of a translator that the stage needs; see ``MarianModel``."""

    def stream(
        self, transcript: Transcript, target: str | None, on_start: OnStart | None = None, beams: int | None = None
    ) -> Iterator[Delta]: ...


class NmtStage:
    """Translates transcripts in order into ``target``, by default the language that the model's files name.

    Puts each transcript on ``outbox``, then the deltas of the sentences that end in it (none if it is rejected or
    blank), and finally the end of input. A sentence that the next transcript does not continue is translated before it.
    A full ``outbox`` pauses the translation. Cancelling ``run`` stops the current decode within one step; ``model``
    stays usable.
    """

    name = "NMT"

    def __init__(
        self,
        model: TextTranslator,
        inbox: asyncio.Queue[Transcript | EndOfInput],
        outbox: asyncio.Queue[PipelineEvent],
        *,
        target: str | None = None,
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
        sentences: SentenceAssembler | None = None,
    ) -> None:
        """``sentences`` puts those together that go on over a pause; without it each transcript is translated by itself."""
        self.model, self.inbox, self.outbox, self.target = model, inbox, outbox, target
        self._sentences = sentences or SentenceAssembler(SentenceOptions(long_pause_ms=0), active=lambda: False)
        self.stats = stats or PipelineStats()
        self._load = load

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(item := await self.inbox.get(), EndOfInput):
                if (ended := self._sentences.before(item)) is not None:
                    await self._translate(ended, worker)
                await self.outbox.put(item)
                if (ended := self._sentences.push(item)) is not None:
                    await self._translate(ended, worker)
                elif item.rejected is None:
                    self.stats.segment_untranslated(item.segment_id)
            if (ended := self._sentences.end()) is not None:
                await self._translate(ended, worker)
            await self.outbox.put(item)
        finally:
            worker.close()

    async def _translate(self, transcript: Transcript, worker: Worker) -> None:
        running: list[DecoderState] = []
        stopped = False

        def started(state: DecoderState) -> None:
            running[:] = [state]
            if stopped:  # cancelled between two sentences, or before the first
                state.terminate()

        beams = self._load.measures.beam_size if self._load is not None else None

        def stream() -> Iterator[Delta]:  # a generator, so that the model is first called on the worker thread
            yield from self.model.stream(transcript, self.target, started, beams)

        deltas = stream()

        def step() -> Delta | None:
            with self.stats.busy("nmt"):
                return next(deltas, None)

        empty = True
        try:
            while (delta := await worker.run(step)) is not None:
                empty = False
                self.stats.token(delta.segment_id)
                self.stats.sentences += delta.end_of_sentence
                await self.outbox.put(delta)
            if empty:
                self.stats.segment_untranslated(transcript.segment_id)
        finally:
            stopped = True
            for state in running:
                state.terminate()
