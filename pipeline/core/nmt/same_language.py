"""Captions in the language that is spoken: the transcript in the place of a translation, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import accumulate

from ...languages import check_script, needed_conversion
from ..captions.policy import updates
from ..captions.states import OpenTexts
from ..events import EndOfInput, SourceSentence, SourceText, TargetText, TargetToken, Translation
from ..run.stats import PipelineStats
from ..run.worker import Worker
from .stage import Outbox, Text
from .translator import TranslationRequest


class SameLanguageText:
    """Stands for the translator into the language spoken. Chinese is written in the script that the target names."""

    def __init__(self, target: str) -> None:
        """Raises UsageError: the target names a script into which the language cannot be converted."""
        check_script(target, None)
        self.convert = needed_conversion(target, None)

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """The source text as the translation of the sentence."""
        sentence = request.sentence
        number, language, text = sentence.sentence, request.target or sentence.language, self.written(sentence.text)
        words = [word.text for word in sentence.words]
        pieces = [words[0].lstrip(), *words[1:-1], words[-1].rstrip()] if len(words) > 1 else [text]
        if "".join(pieces) != text:
            pieces = [text]
        tokens: tuple[TargetToken, ...] = ()
        for end in accumulate(map(len, pieces)):
            tokens += (TargetToken(None, 0.0, end),)
            last = len(tokens) == len(pieces)
            yield TargetText(number, language, text[:end], last * end, tokens, sentence.heard_s, last)
        yield Translation(number, language, text, heard_s=sentence.heard_s)

    def written(self, text: str) -> str:
        """``text`` in the script of the target."""
        return text if self.convert is None else self.convert(text)


class SameLanguageStage:
    """Passes on the source text as its translation, at once: a draft is as new as the transcript.

    What is converted into another script is steady with its sentence, because later words may change the conversion.
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
        self._sources, self._shown = OpenTexts(), OpenTexts()

    async def run(self) -> None:
        """Run until the end of input has been passed on."""
        while not isinstance(item := await self.inbox.get(), EndOfInput):
            if isinstance(item, SourceText):
                await self._change(item)
            else:
                await self.translate(item)
        await self.outbox.put(item)

    async def _change(self, source: SourceText) -> None:
        self._sources.push(source)
        text, steady = self.model.written(source.text), source.steady if self.model.convert is None else 0
        shown = self._shown.get(source.sentence, self.target)
        if (text, steady) == ((shown.text, shown.steady) if shown is not None else ("", 0)):
            self.stats.translated(self.target, source.heard_s)
            return
        newest = TargetText(source.sentence, self.target, text, steady, heard_s=source.heard_s, complete=True)
        self._shown.push(newest)
        await self.outbox.put(newest)

    async def translate(self, sentence: SourceSentence, worker: Worker | None = None) -> None:
        """Put out what is not shown yet of a sentence, and its end. ``worker`` is not used: no model is called."""
        shown = self._shown.get(sentence.sentence, self.target)
        assert not isinstance(shown, SourceText)
        for event in updates(shown, self.model.stream(TranslationRequest(sentence, self.target)), final=True):
            await self.outbox.put(event)
        self._sources.forget_until(sentence.sentence + 1)
        self._shown.forget_until(sentence.sentence + 1)
