"""Captions in the language that is spoken: the transcript in the place of a translation, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pipeline.events import Delta, EndOfInput, SourceDelta, SourceSentence, Translation
from pipeline.nmt.generation import OnStart
from pipeline.nmt.scripts import check_script, needed_conversion
from pipeline.nmt.stage import Outbox, Text, updates
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.sentences.growing import GrowingText, edit


class SameLanguageText:
    """Stands for the translator into the language spoken. Chinese is written in the script that the target names."""

    def __init__(self, target: str) -> None:
        """Raises UsageError: the target names a script into which the language cannot be converted."""
        check_script(target, None)
        self.convert = needed_conversion(target, None)

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: bool = False,
    ) -> Iterator[Delta | Translation]:
        """What was said, in its words, as the translation of the sentence."""
        number, language, text = sentence.sentence, target or sentence.language, self.written(sentence.text)
        words = [word.text for word in sentence.words]
        pieces = [words[0].lstrip(), *words[1:-1], words[-1].rstrip()] if len(words) > 1 else [text]
        if "".join(pieces) != text:
            pieces = [text]
        for at, piece in enumerate(pieces, 1):
            last = at == len(pieces)
            yield Delta(number, language, piece, committed=last * len(text), heard_s=sentence.heard_s, complete=last)
        yield Translation(number, language, text, heard_s=sentence.heard_s)

    def written(self, text: str) -> str:
        """``text`` in the script of the target."""
        return text if self.convert is None else self.convert(text)


class SameLanguageStage:
    """Passes on changes of the source text as changes of its translation, at once: a draft is as new as the transcript.

    What is converted into another script is committed with its sentence, because later words may change the conversion.
    """

    def __init__(
        self,
        model: SameLanguageText,
        inbox: asyncio.Queue[Text | EndOfInput],
        outbox: Outbox,
        target: str,
        stats: PipelineStats,
    ) -> None:
        self.model, self.inbox, self.outbox, self.target, self.stats = model, inbox, outbox, target, stats
        self._open: dict[int, tuple[GrowingText, GrowingText]] = {}
        """Sentence → the source, and what is shown of it."""

    async def run(self) -> None:
        """Run until the end of input has been passed on.

        Raises:
            TextChangeError: a ``SourceDelta`` withdraws committed text.
        """
        while not isinstance(item := await self.inbox.get(), EndOfInput):
            if isinstance(item, SourceDelta):
                await self._change(item)
            else:
                await self.translate(item)
        await self.outbox.put(item)

    async def _change(self, change: SourceDelta) -> None:
        source, shown = self._open.setdefault(change.sentence, (GrowingText(), GrowingText()))
        source.apply(change)
        withdrawn, text = edit(shown.text, self.model.written(source.text))
        committed = source.committed if self.model.convert is None else 0
        if not (withdrawn or text) and committed == shown.committed:
            self.stats.translated(self.target, change.heard_s)
            return
        delta = Delta(change.sentence, self.target, text, withdrawn, committed, heard_s=change.heard_s, complete=True)
        shown.apply(delta)
        await self.outbox.put(delta)

    async def translate(self, sentence: SourceSentence, worker: Worker | None = None) -> None:
        """Put out what is not shown yet of a sentence, and its end. ``worker`` is not used: no model is called."""
        _, shown = self._open.get(sentence.sentence, (None, GrowingText()))
        self._open = {number: each for number, each in self._open.items() if number > sentence.sentence}
        for event in updates(shown.text, self.model.stream(sentence, self.target), final=True):
            await self.outbox.put(event)
