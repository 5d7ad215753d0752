"""The NMT stage: takes the text of sentences, puts out the text after each target token, and each finished translation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from ..captions.changes import States
from ..captions.policy import Steady, at_once, masked, updates
from ..captions.states import TextChangeError, replacing
from ..errors import PipelineError
from ..events import Delta, EndOfInput, SourceSentence, SourceText, TargetText, Translation
from ..glossary.current import CurrentGlossary
from ..glossary.terms import Glossary
from ..languages import same_language
from ..languages.marks import MARKS, final_marks
from ..run.options import DraftOptions
from ..run.overload import LoadControl
from ..run.stats import PipelineStats
from ..run.worker import FailedCalls, Worker
from .commitment import Commitment, appends
from .decoder import DecoderState
from .generation import OnStart
from .translator import TermTranslator, TextTranslator

log = logging.getLogger(__name__)


Text = SourceText | SourceSentence


class Outbox(Protocol):
    """Where the stage puts its events: an ``asyncio.Queue``, or something like it."""

    async def put(self, event: TargetText | Translation | EndOfInput, /) -> None: ...


@dataclass(frozen=True)
class NmtContext:
    """What the translations of one run share."""

    live: Callable[[], bool] = lambda: False
    """Whether sentences in progress are translated too."""
    drafts: DraftOptions = field(default_factory=DraftOptions)
    stats: PipelineStats = field(default_factory=PipelineStats)
    load: LoadControl | None = None
    glossary: CurrentGlossary | None = None
    """Returns the terms to translate as given from now on."""


class NmtStage:
    """Translates sentences in order into ``target``, by default the language that the model's files name.

    Takes ``SourceText`` and ``SourceSentence`` from ``inbox``. For each finished sentence it puts ``TargetText``s and one
    ``Translation`` on ``outbox``, and finally the end of input. In a ``live`` run, a sentence in progress is translated too
    whenever its text has changed or more of it is certain, and so is the next one if a draft reaches into it; of several
    texts of a sentence that wait, only the newest is translated. The last words of a draft are not shown, unless all words
    so far are committed and end like a sentence, and what is shown is only withdrawn if later drafts agree that it must change
    (``drafts``). If words are committed one by one (``drafts.commit``, and a model that ``appends``), ``Commitment`` decides what is
    shown and committed instead, and the final translation begins with the committed words.
    Sentences spoken in the target language are left out.

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
        self._by_word = self._options.commit == "word" and appends(model)
        self._glossary = DirectedGlossary(glossary, target) if glossary is not None else None
        if glossary is not None and not isinstance(model, TermTranslator):
            log.warning("%s does not translate the terms of a glossary", type(model).__name__)
            self._glossary = None
        self._calls = FailedCalls()
        self._open: dict[int, _Open] = {}
        """The sentence in progress, and the next one if a draft reaches into it."""

    async def run(self) -> None:
        """Run until the end of input has been passed on.

        Raises:
            TextChangeError: a ``SourceText`` does not begin with what was committed before, or a translator's text does not.
        """
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
        if source.committed:  # the sentences before may have been dropped by a stage of the app's
            self._forget_until(source.sentence)
        sentence = self._opened(source.sentence)
        before = sentence.source
        replacing(before, source)
        sentence.source, sentence.waits = source, True
        if not source.text or (before is not None and before.language != source.language):
            await self._withdraw(source.sentence, source.heard_s)

    async def _withdraw(self, number: int, heard_s: float) -> None:
        """Withdraw what is shown of a sentence's translation, but not what is committed; without that, translate it anew."""
        sentence = self._opened(number)
        if (shown := sentence.shown) is None:
            sentence.restart(self._options)
            return
        kept = replace(shown, text=shown.committed_text, tokens=(), heard_s=heard_s, complete=True)
        if shown.committed:
            sentence.shown = kept
        else:
            sentence.restart(self._options)
        if shown.draft:
            await self.outbox.put(kept)

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
            if sentence.gained(source, by_word=self._by_word):
                return SourceSentence(
                    *(source.sentence, source.language, source.text, source.start_s, source.end_s, source.heard_s)
                )
            self.stats.translated(self.target or "", source.heard_s)
        return None

    async def translate(self, sentence: SourceSentence, worker: Worker, *, final: bool = True) -> None:
        """Translate one sentence, or its beginning as a draft, and put the events on ``outbox``."""
        if self.target is not None and same_language(sentence.language, self.target):
            await self._leave_out(sentence, self.target, final=final)
            return
        opened = self._opened(sentence.sentence)
        load = self._context.load
        beams = load.measures.beam_size if load is not None else None
        opened.commitment.source = opened.source.committed_text if opened.source else ""
        running: list[DecoderState] = []
        stopped = False

        def started(state: DecoderState) -> None:
            running[:] = [state]
            if stopped:  # cancelled between two searches, or before the first
                state.terminate()

        events = self._stream(sentence, opened, started, beams, final=final)

        def step() -> TargetText | Translation | Exception | None:
            with self.stats.busy("nmt"):
                try:
                    return next(events, None)
                except (PipelineError, TextChangeError):
                    raise
                except Exception as error:
                    return error

        completed = False
        try:
            while (event := await worker.run(step)) is not None:
                if isinstance(event, Exception):
                    completed = await self._lose(sentence, opened, event, final=final)
                    break
                if isinstance(event, TargetText):
                    replacing(opened.shown, event)
                    opened.shown = event
                    self.stats.token(event.heard_s)
                    completed |= event.complete
                else:
                    completed = True
                    self.stats.translated_terms += len(event.terms)
                    self.stats.missed_terms.update(event.missed_terms)
                    self.stats.doubtful += event.doubtful
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
        kept, heard_s = shown.committed_text if shown else "", sentence.heard_s
        await self._withdraw(sentence.sentence, heard_s)
        await self.outbox.put(Translation(sentence.sentence, language, kept, heard_s=heard_s, error=reason))
        return True

    def _stream(
        self, sentence: SourceSentence, opened: _Open, on_start: OnStart, beams: int | None, *, final: bool
    ) -> Iterator[TargetText | Translation]:
        """The events of a translation. A generator, so that the model is first called on the worker."""
        shown, committed = (opened.shown.text, opened.shown.committed) if opened.shown else ("", 0)
        named: dict[str, Any] = self._glossary.argument(sentence.language) if self._glossary is not None else {}
        by_word = self._by_word and bool(committed or not final)
        if by_word:
            named["commitment"] = opened.commitment
        drafted = () if final else (True,)  # a translator need not know the others
        found = _states(self.model.stream(sentence, self.target, on_start, beams, *drafted, **named))
        if by_word:
            yield from updates(shown, at_once(found), final=final, kept=committed)
            return
        if not final:
            if not opened.ends_like_a_sentence:
                found = masked(found, shown, self._options)
            found = opened.steady.events(found, shown)
        yield from updates(shown, found, final=final)

    async def _leave_out(self, sentence: SourceSentence, language: str, *, final: bool) -> None:
        """Do not translate a sentence that is spoken in the target language; keep what is committed of it."""
        await self._withdraw(sentence.sentence, sentence.heard_s)  # a draft may have been in another language
        self.stats.translated(language, sentence.heard_s)
        if not final:
            return
        if (kept := self._opened(sentence.sentence).shown) is not None and kept.committed:
            text = kept.committed_text
            await self.outbox.put(Translation(sentence.sentence, kept.language, text, heard_s=sentence.heard_s))
        self._forget_until(sentence.sentence + 1)


class DirectedGlossary:
    """A glossary as it is now, for translating into one language."""

    def __init__(self, current: CurrentGlossary, target: str | None) -> None:
        self._current, self._target = current, target
        self._known: tuple[Glossary, str, Glossary] | None = None

    def argument(self, language: str) -> dict[str, Any]:
        """The argument ``glossary`` of a translator for a text in ``language``; none if there are no terms."""
        whole = self._current()
        if self._known is None or self._known[0] is not whole or self._known[1] != language:
            target = self._target
            found = whole.spoken(language) if target is None else whole.between(language, target)
            self._known = whole, language, found
        return {"glossary": found} if (found := self._known[2]).terms else {}


class _Open:
    """A sentence in progress and its translation."""

    def __init__(self, options: DraftOptions) -> None:
        self.source: SourceText | None = None
        """The newest text."""
        self.waits = False
        """Whether it is not translated yet."""
        self.restart(options)

    def restart(self, options: DraftOptions) -> None:
        """Begin the translation."""
        self._translated = ("", 0)
        """The text that was translated last, and how much of it was certain; see ``gained``."""
        self.shown: TargetText | None = None
        """The translation, as put on ``outbox``."""
        self.steady, self.commitment = Steady(options.agreeing), Commitment()

    def gained(self, source: SourceText, *, by_word: bool) -> bool:
        """Whether the text is new, or more of it is certain than when it was translated last; then it is remembered.

        More of the same translation may be shown when more is certain: ``by_word`` when more words are committed, otherwise
        when the committed words end like a sentence.
        """
        certain = source.committed if by_word else int(self.ends_like_a_sentence)
        before, known = self._translated
        if source.text == before and certain <= known:
            return False
        self._translated = source.text, certain
        return True

    @property
    def ends_like_a_sentence(self) -> bool:
        """Whether all words are committed and followed by a final mark, which is shown in pauses only."""
        text = self.source
        if text is None:
            return False
        return not any(map(str.isalnum, text.draft)) and any(mark in MARKS for mark in final_marks(text.text))


def _states(events: Iterable[TargetText | Delta | Translation]) -> Iterator[TargetText | Translation]:
    """The events of a translator, which may be changes of a text."""
    return cast("Iterator[TargetText | Translation]", map(States().push, events))
