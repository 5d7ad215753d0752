"""A harness for the tests of a host app: it runs the chain with the demo models.

    async def test_my_app() -> None:
        async with Harness() as harness:
            await harness.feed(demo_speech())
            shown = await harness.draft("zh")       # with Harness(live=True), while somebody speaks
            translation = await harness.translation()
            cue = await harness.cue()
            await harness.silence(2.0)
            await harness.end()
            rest = await harness.rest()

It needs no network, no other model and no pytest. Use ``asyncio.timeout`` to limit a wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from .config import DEMO_SPEECH, PipelineConfig, load_config, load_models
from .core import SAMPLE_RATE, Models, PipelineEvent, Samples, SourceText, SpeechTranslator, TargetText, Translation
from .media import Cue, CueBuilder, read_audio

E = TypeVar("E", bound=PipelineEvent)
T = TypeVar("T")


@cache
def demo_models() -> Models:
    """The demo models, loaded once per process."""
    return load_models(load_config("demo"))


@cache
def demo_speech() -> Samples:
    """Sentences that the demo models can translate, [n] int16 at 16 kHz, with a pause after each."""
    speech = read_audio(DEMO_SPEECH)
    speech.flags.writeable = False  # the cached array is shared by all callers
    return speech


class EndedError(AssertionError):
    """The stream ended before the awaited cue, translation or event arrived."""


class Harness:
    """A running translator. A task reads its events, so ``feed`` never waits for the test to read them.

    Leaving the ``async with`` cancels the translator. A wait raises EndedError if the stream ends first, and StageError if a
    stage has failed.
    """

    def __init__(
        self, config: PipelineConfig | None = None, models: Models | None = None, *, live: bool = False
    ) -> None:
        """``config`` and ``models`` default to the demo's; ``live`` is as in ``SpeechTranslator``."""
        self.config = config or load_config("demo")
        self.translator = SpeechTranslator(self.config, models or demo_models(), live=live)
        self.events: list[PipelineEvent] = []
        """All events so far, in order."""
        targets = self.config.languages.targets
        self._builders = [CueBuilder(self.config.subtitles, target) for target in targets]
        self._cues: list[Cue] = []
        self._translations: list[Translation] = []
        self._steady: Counter[tuple[int, str | None]] = Counter()
        self._texts: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        self._taken: Counter[object] = Counter()
        """How many of each kind were returned."""
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None
        self._ended = False

    async def __aenter__(self) -> Harness:
        await self.translator.__aenter__()
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.translator.__aexit__(kind, error, trace)
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)

    async def feed(self, audio: Samples | bytes | Path) -> None:
        """Feed samples ([n] int16 at 16 kHz, mono), their bytes, or a whole recording."""
        await self.translator.feed(read_audio(audio) if isinstance(audio, Path) else audio)

    async def silence(self, seconds: float) -> None:
        """Feed silence; enough of it ends the current segment."""
        await self.translator.feed(np.zeros(round(seconds * SAMPLE_RATE), np.int16))

    async def end(self) -> None:
        """End the input."""
        await self.translator.end()

    async def cue(self) -> Cue:
        """Wait for the next subtitle, in stream order."""
        return await self._next("cue", self._cues, "another cue")

    async def translation(self) -> Translation:
        """Wait for the next finished translation of a sentence, in stream order."""
        return await self._next("translation", self._translations, "another translation")

    async def draft(self, language: str | None = None) -> str:
        """Wait until the text of a sentence in progress has a part that may still change; return the whole text.

        ``language``: the one translated into; None waits for source text.
        """
        return await self._next(("draft", language), self._texts["draft", language], "another draft")

    async def steady(self, language: str | None = None) -> str:
        """Wait until more text of a sentence is steady; return all of it that is. Otherwise like ``draft``."""
        key = "steady text", language
        return await self._next(key, self._texts[key], "another steady text")

    async def event(self, kind: type[E]) -> E:
        """Wait for the next event of ``kind`` and skip those before it (``events`` keeps them)."""
        while not isinstance(event := await self._next("event", self.events, kind.__name__), kind):
            pass
        return event

    async def rest(self) -> list[Cue]:
        """After ``end``: wait for the end of the stream, and return the subtitles not yet returned."""
        assert self._reader is not None, "the harness is not running; use it as an async context manager"
        await asyncio.shield(self._reader)
        cues = self._cues[self._taken["cue"] :]
        self._taken["cue"] = len(self._cues)
        return cues

    async def _read(self) -> None:
        try:
            async for event in self.translator.events():
                self.events.append(event)
                self._take_text(event)
                self._cues += [cue for builder in self._builders for cue in builder.push(event)]
                if isinstance(event, Translation):
                    self._translations.append(event)
                async with self._changed:
                    self._changed.notify_all()
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    def _take_text(self, event: PipelineEvent) -> None:
        if not isinstance(event, SourceText | TargetText):
            return
        language = event.language if isinstance(event, TargetText) else None
        if event.draft:
            self._texts["draft", language].append(event.text)
        if event.steady > self._steady[event.sentence, language]:
            self._texts["steady text", language].append(event.steady_text)
        self._steady[event.sentence, language] = event.steady

    async def _next(self, kind: object, items: Sequence[T], what: str) -> T:
        """The next item of ``items``, to which more are added, that was not returned yet."""
        reader, position = self._reader, self._taken[kind]
        assert reader is not None, "the harness is not running; use it as an async context manager"
        async with self._changed:
            await self._changed.wait_for(lambda: len(items) > position or self._ended)
        if len(items) <= position:
            await asyncio.gather(reader)  # raises the reader's exception, if it failed
            raise EndedError(f"the stream ended before {what} came; {len(self.events)} events had come")
        self._taken[kind] += 1
        return items[position]
