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
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from .audio.recording import read_audio
from .config import PipelineConfig, load_config
from .events import SAMPLE_RATE, PipelineEvent, Samples, SourceText, TargetText, Translation
from .loading import Models, load_models
from .resources import DEMO_SPEECH
from .subtitles.cues import Cue, CueBuilder
from .translator import SpeechTranslator

E = TypeVar("E", bound=PipelineEvent)


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

    Leaving the ``async with`` cancels the translator. If a stage fails, the next wait raises its error.
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
        self._cues_taken = self._translations_taken = self._events_seen = 0
        self._committed: dict[tuple[int, str | None], int] = {}
        self._texts: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        self._texts_taken: Counter[tuple[str, str | None]] = Counter()
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
        """Wait for the next subtitle, in stream order.

        Raises:
            EndedError: the stream ended without another subtitle.
            StageError: a stage failed.
        """
        await self._wait_until(lambda: len(self._cues) > self._cues_taken, "another cue")
        self._cues_taken += 1
        return self._cues[self._cues_taken - 1]

    async def translation(self) -> Translation:
        """Wait for the next finished translation of a sentence, in stream order.

        Raises:
            EndedError, StageError: as for ``cue``.
        """
        await self._wait_until(lambda: len(self._translations) > self._translations_taken, "another translation")
        self._translations_taken += 1
        return self._translations[self._translations_taken - 1]

    async def draft(self, language: str | None = None) -> str:
        """Wait until the text of a sentence in progress has a part that may still change; return the whole text.

        Args:
            language: the one translated into; None waits for source text.

        Raises:
            EndedError, StageError: as for ``cue``.
        """
        return await self._next_text("draft", language)

    async def committed(self, language: str | None = None) -> str:
        """Wait until more text of a sentence is committed; return all of it that is. Otherwise like ``draft``."""
        return await self._next_text("committed text", language)

    async def _next_text(self, kind: str, language: str | None) -> str:
        found = self._texts[kind, language]
        await self._wait_until(lambda: len(found) > self._texts_taken[kind, language], f"another {kind}")
        self._texts_taken[kind, language] += 1
        return found[self._texts_taken[kind, language] - 1]

    async def event(self, kind: type[E]) -> E:
        """Wait for the next event of ``kind`` and skip those before it (``events`` keeps them).

        Raises:
            EndedError, StageError: as for ``cue``.
        """
        while True:
            await self._wait_until(lambda: len(self.events) > self._events_seen, kind.__name__)
            self._events_seen += 1
            if isinstance(event := self.events[self._events_seen - 1], kind):
                return event

    async def rest(self) -> list[Cue]:
        """After ``end``: wait for the end of the stream, and return the subtitles not yet returned.

        Raises:
            StageError: a stage failed.
        """
        assert self._reader is not None, "the harness is not running; use it as an async context manager"
        await asyncio.shield(self._reader)
        rest = self._cues[self._cues_taken :]
        self._cues_taken = len(self._cues)
        return rest

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
        before = self._committed.get((event.sentence, language), 0)
        self._committed[event.sentence, language] = event.committed
        if event.draft:
            self._texts["draft", language].append(event.text)
        if event.committed > before:
            self._texts["committed text", language].append(event.committed_text)

    async def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        reader = self._reader
        assert reader is not None, "the harness is not running; use it as an async context manager"
        async with self._changed:
            await self._changed.wait_for(lambda: condition() or self._ended)
        if condition():
            return
        await asyncio.gather(reader)  # raises the reader's exception, if it failed
        raise EndedError(f"the stream ended before {what} came; {len(self.events)} events had come")
