"""The NMT stage: takes the text of sentences, puts out the text after each target token, and each finished translation."""

from __future__ import annotations

import asyncio
import logging
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ...errors import PipelineError
from ...glossary import Glossary
from ...languages import MARKS, final_marks, same_language, sound_label
from ..captions.policy import AgreeingDrafts, at_once, updates
from ..events import EndOfInput, SourceSentence, SourceText, TargetText, Translation
from ..run.options import DraftOptions
from ..run.stats import PipelineStats
from ..run.worker import FailedCalls, Worker
from .draft_tokens import DraftTokens, attends
from .translator import Decoding, OnStart, TermTranslator, TextTranslator, TranslationRequest, passes

if TYPE_CHECKING:
    from ...glossary import CurrentGlossary

log = logging.getLogger(__name__)

# Sentences that a translator gets with the next one.
_BEFORE = 4

Text = SourceText | SourceSentence


class Outbox(Protocol):
    """The queue of the stage's events: an ``asyncio.Queue``, or something like it."""

    async def put(self, event: TargetText | Translation | EndOfInput, /) -> None: ...


@dataclass(frozen=True)
class NmtContext:
    """Objects that the translations of one run share."""

    live: Callable[[], bool] = lambda: False
    """Whether sentences in progress are translated too."""
    drafts: DraftOptions = field(default_factory=DraftOptions)
    stats: PipelineStats = field(default_factory=PipelineStats)
    glossary: CurrentGlossary | None = None
    """Returns the terms to translate as given from now on."""


class NmtStage:
    """Translates sentences in order into ``target``, by default the language that the model's files name.

    Takes ``SourceText`` and ``SourceSentence`` from ``inbox``. For each finished sentence it puts ``TargetText``s and one
    ``Translation`` on ``outbox``, and finally the end of input: translated whole, whatever was shown before. In a ``live`` run,
    sentences in progress are translated too whenever their text has changed or more of it is steady; of several texts of a
    sentence that wait, only the newest is. Of a sentence that ends in a pause, all of that is shown; of another, not the last
    words, and what is shown only changes for a clearly better wording. A model that ``attends`` decides that by ``DraftTokens``;
    for others, drafts must agree (``drafts``). A finished sentence comes with those before it. Sentences spoken in the target language are left out.

    A call of ``model`` that fails costs its sentence, whose ``Translation`` has the ``error``; one for a draft, nothing. The
    third sentence in a row that fails, or a ``PipelineError``, ends ``run``.

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
        context: NmtContext | None = None,
    ) -> None:
        self.model, self.inbox, self.outbox, self.target = model, inbox, outbox, target
        self._context = context or NmtContext()
        self.stats, self._options, glossary = self._context.stats, self._context.drafts, self._context.glossary
        self._attends = attends(model)
        self._glossary = DirectedGlossary(glossary, target) if glossary is not None else None
        if glossary is not None and not isinstance(model, TermTranslator):
            log.warning("%s does not translate the terms of a glossary", type(model).__name__)
            self._glossary = None
        self._before: list[tuple[int, str, tuple[str, str]]] = []
        """The newest sentences by number, each with its language and its translation."""
        self._calls = FailedCalls()
        self._open: dict[int, _Open] = {}
        """The sentences in progress, by number."""

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        worker = Worker(self.name)
        try:
            while not isinstance(item := await self.inbox.get(), EndOfInput):
                if isinstance(item, SourceText):
                    await self._take(item)
                else:
                    await self.translate(item, worker)
                while self._context.live() and self.inbox.empty() and (draft := self._next_draft()) is not None:
                    await self.translate(draft, worker, final=False)
            await self.outbox.put(item)
        finally:
            worker.close()

    async def _take(self, source: SourceText) -> None:
        """Take the newest text of a sentence; if nothing is left of it, withdraw its translation as well."""
        sentence = self._opened(source.sentence)
        before = sentence.source
        sentence.source, sentence.waits = source, True
        if not source.text or (before is not None and before.language != source.language):
            await self._withdraw(source.sentence, source.heard_s)

    async def _withdraw(self, number: int, heard_s: float) -> None:
        """Withdraw what is shown of a sentence's translation; it is translated anew."""
        sentence = self._opened(number)
        shown = sentence.shown
        sentence.restart(self._options)
        if shown is not None and shown.text:
            await self.outbox.put(replace(shown, text="", steady=0, tokens=(), heard_s=heard_s, complete=True))

    def _opened(self, number: int) -> _Open:
        if number not in self._open:
            self._open[number] = _Open(self._options)
        return self._open[number]

    def _forget_until(self, number: int) -> None:
        for before in [each for each in self._open if each < number]:
            del self._open[before]

    def _next_draft(self) -> SourceSentence | None:
        """The text of the first sentence that has changed, or of which more is certain, since it was last translated."""
        for _, sentence in sorted(self._open.items()):
            source, waits, sentence.waits = sentence.source, sentence.waits, False
            if source is None or not waits or not source.text:
                continue
            if sentence.gained(source, by_word=self._attends):
                return SourceSentence(
                    sentence=source.sentence,
                    language=source.language,
                    text=source.text,
                    start_s=source.start_s,
                    end_s=source.end_s,
                    heard_s=source.heard_s,
                )
            self.stats.translated(self.target or "", source.heard_s)
        return None

    async def translate(self, sentence: SourceSentence, worker: Worker, *, final: bool = True) -> None:
        """Translate one sentence, or its beginning as a draft, and put the events on ``outbox``."""
        if self.target is not None and same_language(sentence.language, self.target) and not passes(self.model):
            await self._leave_out(sentence, self.target, final=final)
            return
        opened = self._opened(sentence.sentence)
        opened.drafted.source = opened.source.steady_text if opened.source else ""
        running: list[Decoding] = []
        stopped = False

        def started(state: Decoding) -> None:
            running[:] = [state]
            if stopped:  # cancelled between two searches, or before the first
                state.terminate()

        events = self._stream(sentence, opened, started, final=final)

        def step() -> TargetText | Translation | Exception | None:
            with self.stats.busy("nmt", self.target or ""):
                try:
                    return next(events, None)
                except PipelineError:
                    raise
                except Exception as error:
                    return error

        completed = False
        try:
            while (event := await worker.run(step)) is not None:
                if isinstance(event, Exception):
                    completed = await self._lose(sentence, opened, event, final=final)
                    break
                if event.heard_s != sentence.heard_s:  # the lag is measured by it, whatever a translator says
                    event = replace(event, heard_s=sentence.heard_s)
                if isinstance(event, TargetText):
                    opened.shown = event
                    self.stats.token(event.heard_s)
                    completed |= event.complete
                else:  # of a finished sentence; see ``updates``
                    completed = True
                    self.stats.translated_terms += len(event.terms)
                    self.stats.missed_terms.update(event.missed_terms)
                    self.stats.doubtful += event.doubtful
                    self.stats.instead += event.instead is not None
                    if event.text and sentence.sound is None and not (event.doubtful or event.truncated):
                        # A language that is added later has the newest sentences translated first.
                        insort(self._before, (sentence.sentence, sentence.language, (sentence.text, event.text)))
                        del self._before[:-_BEFORE]
                await self.outbox.put(event)
            if not completed:  # a draft that did not change: no event tells the reader
                self.stats.translated(self.target or "", sentence.heard_s)
            if final:
                if event is None:
                    self._calls.worked()
                self._forget_until(sentence.sentence + 1)
        finally:
            stopped = True
            for state in running:
                state.terminate()

    async def _lose(self, sentence: SourceSentence, opened: _Open, error: Exception, *, final: bool) -> bool:
        """Go on without a translation that failed. Return whether an event tells the reader; none does of a draft.

        Raises:
            Exception: ``error``, if too many sentences have failed in a row.
        """
        if not final:
            log.debug("the draft of sentence %d failed", sentence.sentence, exc_info=error)
            return False
        shown = opened.shown
        language = self.target or (shown.language if shown else "")
        reason = self._calls.reason(error)
        log.warning("sentence %d is not translated into %s: %s", sentence.sentence, language, reason)
        self.stats.failures[self.name] = reason
        self.stats.not_shown(sentence.start_s, sentence.end_s, f"not translated into {language}")
        await self._withdraw(sentence.sentence, sentence.heard_s)
        await self.outbox.put(Translation(sentence.sentence, language, "", heard_s=sentence.heard_s, error=reason))
        return True

    def _stream(
        self, sentence: SourceSentence, opened: _Open, on_start: OnStart, *, final: bool
    ) -> Iterator[TargetText | Translation]:
        """The events of a translation. A generator, so that the model is first called on the worker."""
        whole = final or opened.ends_like_a_sentence  # in a pause, as it will be if nothing follows
        request = TranslationRequest(
            sentence,
            self.target,
            on_start,
            draft=not whole,
            glossary=self._glossary.now(sentence.language) if self._glossary is not None else None,
            drafted=opened.drafted if self._attends and not final else None,
            before=self._context_of(sentence) if whole else (),
            remote=final,
        )
        events = self.model.stream(request) if sentence.sound is None else self._caption(sentence, sentence.sound)
        if not final:
            shown = opened.shown.text if opened.shown else ""
            events = at_once(events) if whole or self._attends else opened.agreeing.events(events, shown)
        yield from updates(opened.shown, events, final=final)

    def _context_of(self, sentence: SourceSentence) -> tuple[tuple[str, str], ...]:
        """The sentences before, with their translations."""
        return tuple(
            texts
            for number, language, texts in self._before
            if number < sentence.sentence and same_language(language, sentence.language)
        )

    def _caption(self, sentence: SourceSentence, sound: str) -> Iterator[TargetText | Translation]:
        """The caption of a sound, as the events of its translation."""
        number, language, heard_s = sentence.sentence, self.target or sentence.language, sentence.heard_s
        text = sound_label(sound, language)
        yield TargetText(number, language, text, len(text), heard_s=heard_s, complete=True)
        yield Translation(number, language, text, heard_s=heard_s)

    async def _leave_out(self, sentence: SourceSentence, language: str, *, final: bool) -> None:
        """Do not translate a sentence that is spoken in the target language."""
        await self._withdraw(sentence.sentence, sentence.heard_s)  # a draft may have been in another language
        self.stats.translated(language, sentence.heard_s)
        if final:
            self._forget_until(sentence.sentence + 1)


class DirectedGlossary:
    """A glossary as it is now, for translating into one language."""

    def __init__(self, current: CurrentGlossary, target: str | None) -> None:
        self._current, self._target = current, target
        self._known: tuple[Glossary, str, Glossary] | None = None

    def now(self, language: str) -> Glossary | None:
        """The terms for a text in ``language``; None if there are none."""
        whole = self._current()
        if self._known is None or self._known[0] is not whole or self._known[1] != language:
            target = self._target
            directed = whole.spoken(language) if target is None else whole.between(language, target)
            self._known = whole, language, directed
        return directed if (directed := self._known[2]).terms else None


class _Open:
    """A sentence in progress and its translation."""

    def __init__(self, options: DraftOptions) -> None:
        self.source: SourceText | None = None
        """The newest text of the sentence."""
        self.waits = False
        """Whether the newest text is not translated yet."""
        self.restart(options)

    def restart(self, options: DraftOptions) -> None:
        """Forget the translation, so that the next text is translated anew."""
        self._translated = ("", 0)
        """The text that was translated last, and how much of it was steady; see ``gained``."""
        self.shown: TargetText | None = None
        """The translation, as put on ``outbox``."""
        self.agreeing, self.drafted = AgreeingDrafts(options), DraftTokens()

    def gained(self, source: SourceText, *, by_word: bool) -> bool:
        """Whether the text is new, or more of it is steady than when it was translated last; then it is remembered.

        More of the same translation may be shown when more is steady: ``by_word`` when more words are, otherwise when the
        steady words end like a sentence.
        """
        steady = source.steady if by_word else int(self.ends_like_a_sentence)
        before, steady_before = self._translated
        if source.text == before and steady <= steady_before:
            return False
        self._translated = source.text, steady
        return True

    @property
    def ends_like_a_sentence(self) -> bool:
        """Whether all words are steady and followed by a final mark, which is shown in pauses only."""
        text = self.source
        if text is None:
            return False
        return not any(map(str.isalnum, text.draft)) and any(mark in MARKS for mark in final_marks(text.text))
