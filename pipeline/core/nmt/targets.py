"""Translation into one or several languages at once: one NMT stage each, and one stream of events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property

from ...errors import one_line
from ..captions.states import OpenTexts
from ..events import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Transcript, Translation
from ..notices import TranslationLost
from ..run.worker import Worker
from .same_language import SameLanguageStage, SameLanguageText
from .stage import NmtContext, NmtStage, Text
from .translator import TextTranslator


class LateTargets:
    """Languages that are added to a live run while it goes on. They get the sentences that were spoken before, too."""

    def __init__(self, kept: int) -> None:
        """``kept``: how many of these sentences, the newest."""
        self.past: deque[SourceSentence] = deque(maxlen=kept)
        self.add: Callable[[str, TextTranslator], bool] = lambda *_: False
        """Translate into one more language from now on; False if the run has ended or not begun. Called on the loop."""
        self.lose: Callable[[str, str], Awaitable[bool]] = _lose_nothing
        """Go on without a language, for a reason; False if it is the only one."""


async def _lose_nothing(*_: str) -> bool:
    return False


class TranslationStage:
    """Passes on what the sentence stage puts out, and adds the translations into every language.

    A live source (``live``): recognised text is passed on at once, and each language is translated on its own, so that a
    slow one does not hold back the others. If there are several, one that is ``capacity`` texts behind is given up.
    Other sources: the translations of a sentence follow it before the next event, in the order of ``models``, so that two
    runs put out the same events in the same order.

    A language whose translation fails several times in a row (see ``NmtStage``) is reported by a ``TranslationLost``, and the
    others go on. The failure of the last one ends the run.

    ``late``: languages may be added to a live run. The sentences before are translated into them beside what is said now, the
    newest first.
    """

    name = "NMT"

    def __init__(
        self,
        models: Mapping[str, TextTranslator],
        inbox: asyncio.Queue[Transcript | Text | EndOfInput],
        outbox: asyncio.Queue[PipelineEvent],
        context: NmtContext | None = None,
        *,
        capacity: int = 1_000,
        late: LateTargets | None = None,
    ) -> None:
        """``models``: a translator by target language, at least one."""
        self.inbox, self.outbox = inbox, outbox
        self._context = context = context or NmtContext()
        self.stats, self._live, self._capacity = context.stats, context.live, capacity
        self._languages = [_Language(*each, outbox, capacity, context) for each in models.items()]
        self._begun = list(self._languages)  # with those that were lost
        self.stats.languages = set(models)
        self._late, self._ending = late, False
        if late is not None:
            late.add, late.lose = self._add, self._give_up

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        self._failure = asyncio.get_running_loop().create_future()
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({work, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            await work
        finally:
            self._ending = True
            tasks = [work, *(language.task for language in self._begun if language.task is not None)]
            for task in tasks:
                task.cancel()
            self._failure.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for language in self._begun:
                if "worker" in vars(language):
                    language.worker.close()

    async def _work(self) -> None:
        sources = OpenTexts()
        while not isinstance(item := await self.inbox.get(), EndOfInput):
            sources.push(item)  # an app's stage may have changed final text
            await self.outbox.put(item)
            self.stats.sentences += isinstance(item, SourceSentence)
            if isinstance(item, SourceText | SourceSentence) and self._live():
                if self._late is not None and isinstance(item, SourceSentence):
                    self._late.past.append(item)
                await self._hand_over(item)
            elif isinstance(item, SourceSentence):
                await self._translate(item)
        self._ending = True
        running = [language for language in self._languages if language.task is not None]
        for language in running:
            await language.put(item)
        await asyncio.gather(
            *(language.task for language in running if language.task is not None), return_exceptions=True
        )
        await self.outbox.put(item)

    def _add(self, target: str, model: TextTranslator) -> bool:
        """Translate into one more language from now on; False if the run has ended or not begun."""
        if self._ending or self._late is None:
            return False
        language = _Language(target, model, self.outbox, self._capacity, self._context)
        self._languages.append(language)
        self._begun.append(language)
        self.stats.languages.add(target)
        language.task = asyncio.create_task(self._supervise(language, tuple(self._late.past)))
        return True

    async def _hand_over(self, text: Text) -> None:
        """Give a text to every language, whose own tasks translate it."""
        for language in list(self._languages):
            if language not in self._languages:  # it failed while another one was given up
                continue
            if language.task is None:
                language.task = asyncio.create_task(self._supervise(language))
            if language.inbox.full() and not language.outbox.blocked and len(self._languages) > 1:
                advice = "choose a smaller model or a lower nmt.beam_size for it"
                await self._give_up(language.target, f"{language.inbox.qsize()} texts wait for it; {advice}")
            else:  # waits for the reader, or for the last language
                await language.put(text)

    async def _translate(self, sentence: SourceSentence) -> None:
        """Translate a sentence into every language at once, and put out one language after the other."""
        running = [
            (language, asyncio.create_task(language.stage.translate(sentence, language.worker)))
            for language in self._languages
        ]
        try:
            for language, task in running:
                await language.outbox.release()
                try:
                    await task
                except Exception as error:
                    await self._lose(language, error)
                language.outbox.hold()
        finally:
            for _, task in running:
                task.cancel()
            await asyncio.gather(*(task for _, task in running), return_exceptions=True)

    async def _supervise(self, language: _Language, past: Sequence[SourceSentence] = ()) -> None:
        await language.outbox.release()
        try:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(language.stage.run())
                    group.create_task(language.catch_up(past))
            except ExceptionGroup as errors:
                await self._lose(language, errors.exceptions[0])
        except Exception as error:
            if not self._failure.done():
                self._failure.set_exception(error)

    async def _give_up(self, target: str, reason: str) -> bool:
        """Go on without a language, for a reason; False if it is the only one."""
        language = next((other for other in self._languages if other.target == target), None)
        if language is not None and language.task is not None:
            if len(self._languages) == 1:
                return False
            language.task.cancel()
            await self._lose(language, RuntimeError(reason))
        return True

    async def _lose(self, language: _Language, error: Exception) -> None:
        """Go on without a language."""
        self._languages.remove(language)
        if not self._languages:
            raise error
        self.stats.language_lost(language.target, one_line(error))
        await self.outbox.put(TranslationLost(language.target, one_line(error)))


class _Language:
    """The stage of one language, its thread and its queues."""

    def __init__(
        self,
        target: str,
        model: TextTranslator,
        outbox: asyncio.Queue[PipelineEvent],
        capacity: int,
        context: NmtContext,
    ) -> None:
        self.target = target
        self.inbox: asyncio.Queue[Text | EndOfInput] = asyncio.Queue(capacity)
        self.outbox = _Gate(outbox)
        self.task: asyncio.Task[None] | None = None
        self.stage: NmtStage | SameLanguageStage
        if isinstance(model, SameLanguageText):
            self.stage = SameLanguageStage(model, self.inbox, self.outbox, target, context.stats)
        else:
            self.stage = NmtStage(model, self.inbox, self.outbox, target=target, context=context)

    @cached_property
    def worker(self) -> Worker:
        """The thread for a source that is not live, and for past sentences; ``stage.run`` has its own."""
        return Worker(TranslationStage.name)  # failures name the stage

    async def catch_up(self, past: Sequence[SourceSentence]) -> None:
        """Translate the newest of the sentences first."""
        for sentence in reversed(past):
            await self.stage.translate(sentence, self.worker)

    async def put(self, text: Text | EndOfInput) -> None:
        """Put a text on ``inbox``, unless the language has failed: then nobody takes it."""
        if not self.inbox.full():
            self.inbox.put_nowait(text)
            return
        assert self.task is not None
        putting = asyncio.ensure_future(self.inbox.put(text))
        try:
            await asyncio.wait({putting, self.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            putting.cancel()


class _Gate:
    """The way to the common queue. While it is held, events wait; the end of input never passes."""

    def __init__(self, queue: asyncio.Queue[PipelineEvent]) -> None:
        self._queue = queue
        self._waiting: deque[TargetText | Translation] = deque()
        self._open = False
        self.blocked = False
        """Whether the language waits for the reader."""

    async def put(self, event: TargetText | Translation | EndOfInput) -> None:
        if isinstance(event, EndOfInput):
            return
        if self._open:
            self.blocked = True
            try:
                await self._queue.put(event)
            finally:
                self.blocked = False
        else:
            self._waiting.append(event)

    def hold(self) -> None:
        self._open = False

    async def release(self) -> None:
        while self._waiting:
            await self._queue.put(self._waiting.popleft())
        self._open = True
