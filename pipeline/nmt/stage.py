"""The NMT stage: takes the text of sentences, puts out one delta per target token, and each finished translation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from pipeline.events import Delta, EndOfInput, SourceDelta, SourceSentence, Translation
from pipeline.languages import same_language
from pipeline.languages.marks import MARKS, final_marks
from pipeline.nmt.decoder import DecoderState
from pipeline.nmt.drafts import Draft, Steady, masked
from pipeline.nmt.search import OnStart
from pipeline.run.drafts import DraftOptions
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.sentences.growing import GrowingText, edit


class TextTranslator(Protocol):
    """The interface of a translator that the stage needs; see ``MarianModel``.

    ``draft`` is only passed if the sentence is in progress.
    """

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: Draft | None = None,
    ) -> Iterator[Delta | Translation]: ...


Text = SourceDelta | SourceSentence


class Outbox(Protocol):
    """Where the stage puts its events: an ``asyncio.Queue``, or something like it."""

    async def put(self, event: Delta | Translation | EndOfInput, /) -> None: ...


class NmtStage:
    """Translates sentences in order into ``target``, by default the language that the model's files name.

    Takes ``SourceDelta`` and ``SourceSentence`` from ``inbox``. For each finished sentence it puts deltas and one
    ``Translation`` on ``outbox``, and finally the end of input. With ``drafts``, a sentence in progress is translated too
    whenever its text has changed; if several changes wait, only the newest text is translated. The last words of a draft
    are not shown, unless the text so far is committed and ends like a sentence, and what is shown is only withdrawn if later
    drafts agree that it must change (``options``). Sentences spoken in the target language are left out.

    A full ``outbox`` pauses the translation. Cancelling ``run`` stops the current decode within one step; ``model``
    stays usable.
    """

    name = "NMT"

    def __init__(
        self,
        model: TextTranslator,
        inbox: asyncio.Queue[Text | EndOfInput],
        outbox: Outbox,
        *,
        target: str | None = None,
        drafts: Callable[[], bool] = lambda: False,
        options: DraftOptions | None = None,
        stats: PipelineStats | None = None,
        load: LoadControl | None = None,
    ) -> None:
        self.model, self.inbox, self.outbox, self.target = model, inbox, outbox, target
        self.stats = stats or PipelineStats()
        self._drafts, self._options, self._load = drafts, options or DraftOptions(), load
        self._draft, self._steady = Draft(), Steady(self._options.agreeing)
        self._source = GrowingText()
        self._shown = GrowingText()
        """The translation of the sentence in progress, as put on ``outbox``."""
        self._language = target or ""  # of that translation

    async def run(self) -> None:
        """Run until the end of input has been passed on.

        Raises:
            TextChangeError: a ``SourceDelta`` withdraws committed text.
        """
        worker, number = Worker(self.name), -1
        try:
            while not isinstance(item := await self.inbox.get(), EndOfInput):
                if item.sentence != number:  # the sentence before may have been dropped by a stage of the app's
                    number, self._source, self._shown = item.sentence, GrowingText(), GrowingText()
                    self._draft, self._steady = Draft(), Steady(self._options.agreeing)
                if isinstance(item, SourceDelta):
                    self._source.apply(item)
                    if not self._source.text:
                        await self._withdraw(item)
                    elif self._drafts() and self.inbox.empty():
                        draft = SourceSentence(
                            item.sentence, item.language, self._source.text, item.start_s, item.end_s, item.heard_s
                        )
                        await self.translate(draft, worker, final=False)
                else:
                    await self.translate(item, worker)
            await self.outbox.put(item)
        finally:
            worker.close()

    async def _withdraw(self, change: SourceDelta) -> None:
        """The text of the sentence in progress was withdrawn: withdraw its translation as well."""
        if not len(self._shown):
            return
        delta = Delta(change.sentence, self._language, "", len(self._shown), heard_s=change.heard_s, complete=True)
        self._shown, self._draft, self._steady = GrowingText(), Draft(), Steady(self._options.agreeing)
        await self.outbox.put(delta)

    async def translate(self, sentence: SourceSentence, worker: Worker, *, final: bool = True) -> None:
        """Translate one sentence, or its beginning as a draft, and put the events on ``outbox``."""
        if self.target is not None and same_language(sentence.language, self.target):
            self.stats.translated(self.target, sentence.heard_s)
            return
        running: list[DecoderState] = []
        stopped = False

        def started(state: DecoderState) -> None:
            running[:] = [state]
            if stopped:  # cancelled between two searches, or before the first
                state.terminate()

        beams = self._load.measures.beam_size if self._load is not None else None

        def stream() -> Iterator[Delta | Translation]:  # a generator, so that the model is first called on the worker
            shown = self._shown.text
            if final:
                found = self.model.stream(sentence, self.target, started, beams)
            else:
                found = self.model.stream(sentence, self.target, started, beams, self._draft)
                if not self._ends_like_a_sentence:
                    found = self._steady.events(masked(found, shown, self._options), shown)
            yield from updates(shown, found, final=final)

        events = stream()

        def step() -> Delta | Translation | None:
            with self.stats.busy("nmt"):
                return next(events, None)

        completed = False
        try:
            while (event := await worker.run(step)) is not None:
                if isinstance(event, Delta):
                    self._shown.apply(event)
                    self._language = event.language
                    self.stats.token(event.heard_s)
                    completed |= event.complete
                else:
                    completed = True
                await self.outbox.put(event)
            if not completed:  # a draft that did not change: no event tells the reader
                self.stats.translated(self.target or "", sentence.heard_s)
            if final:
                self._shown = GrowingText()
        finally:
            stopped = True
            for state in running:
                state.terminate()

    @property
    def _ends_like_a_sentence(self) -> bool:
        """Whether the text of the sentence in progress is committed and has a final mark. Only a pause can commit a mark."""
        text = self._source
        return text.committed == len(text) and any(mark in MARKS for mark in final_marks(text.text))


def updates(shown: str, events: Iterator[Delta | Translation], *, final: bool) -> Iterator[Delta | Translation]:
    """The events of a translation as changes of ``shown``, the draft of the same sentence that it replaces.

    Where ``shown`` is empty, the events are passed on. Otherwise tokens are held back until the new text is as long as the
    old one, so that text is replaced in one change and does not shrink in between. Unless ``final``, nothing is committed,
    a translation without a change has no events, and the ``Translation`` is left out.
    """
    text = GrowingText()
    old = shown
    changed = not old
    waiting: list[float] = []  # log-probabilities of the tokens since the last change
    for event in events:
        if isinstance(event, Translation):
            if final:
                yield event
            continue
        text.apply(event)
        waiting.append(event.log_probability)
        if old and len(text) < len(old) and not event.complete:
            continue
        withdrawn, appended = edit(shown, text.text) if old else (event.withdrawn, event.text)
        changed |= bool(withdrawn or appended)
        if old and not (withdrawn or appended) and not (event.complete and (final or changed)):
            continue
        yield replace(
            event,
            text=appended,
            withdrawn=withdrawn,
            committed=len(text) if final and event.complete else 0,
            token=event.token if len(waiting) == 1 else None,
            log_probability=sum(waiting),
        )
        shown, waiting = text.text, []
