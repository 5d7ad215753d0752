"""One live run: a source into sinks, and its ends: end of input, interrupts, a closed terminal, a sink that fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from functools import partial

from pipeline.apps.cli import settle
from pipeline.apps.controls import NoticeSink, controls, status_line, tell
from pipeline.audio.microphone import Microphone
from pipeline.audio.source import AudioSource
from pipeline.config import PipelineConfig
from pipeline.events import EndOfInput, PipelineEvent
from pipeline.loading import Models
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.sinks.sink import SINK_FAILURES, FanOut, Sink
from pipeline.sinks.terminal import TerminalClosedError, TerminalSink
from pipeline.translator import SpeechTranslator

# How often the terminal's status line is drawn.
_STATUS_S = 0.25


class LiveRun:
    """Translates one source into sinks.

    The first interrupt ends the input and drains what was said; the second cancels. When the terminal is closed, what
    was said is drained into the other sinks. A sink that fails ends the run, after what was translated until then has
    been handed to the others.
    """

    def __init__(
        self,
        source: AudioSource,
        config: PipelineConfig,
        sinks: Sequence[Sink],
        *,
        paced: bool = False,
        live: bool = False,
        models: Models | None = None,
        microphone: Microphone | None = None,
        terminal: TerminalSink | None = None,
    ) -> None:
        """Set up; ``run`` runs.

        Args:
            paced: hold a recording back to its own pace.
            live: the source does not wait: show the lag, and act on it. A microphone, and what is paced, always is.
            microphone: ``source``, where it is one; can be paused, and its level is shown.
            terminal: the one of ``sinks`` that shows the run's status.
        """
        self._source, self._paced, self._microphone, self._terminal = source, paced, microphone, terminal
        self._translator = SpeechTranslator(config, models, live=live or paced or microphone is not None)
        self._outputs = FanOut([*sinks, NoticeSink()])
        self._interrupts = 0
        self._began = False  # from here on what was said is delivered, whatever ends the run
        self._task: asyncio.Task[object] | None = None

    @property
    def stats(self) -> PipelineStats:
        return self._translator.stats

    async def run(self) -> None:
        """Run to one of the ends.

        Raises:
            CancelledError: interrupted twice, or before the models were loaded.
            PipelineError, BrokenPipeError: what failed; everything translated before has reached the sinks.
        """
        self._task = asyncio.current_task()
        writer = Worker("subtitles")
        with controls(interrupted=self._interrupted, hung_up=self._hung_up, microphone=self._microphone):
            try:
                async with (
                    self._translator,
                    aclosing(self._translator.run(self._source, paced=self._paced)) as events,
                ):
                    self._began = True
                    await self._begin(writer)
                    await self._deliver(events, writer)
            finally:
                writer.close()
                writer.join(0.5)  # no sink is closed while it is written to

    async def _begin(self, writer: Worker) -> None:
        await writer.run(settle)
        if self._microphone is not None:
            await writer.run(self._microphone.start)
            keys = ", the space bar pauses" if sys.stdin is not None and sys.stdin.isatty() else ""
            tell(f"listening to {self._microphone.name}; Ctrl-C ends{keys}")

    async def _deliver(self, events: AsyncIterator[PipelineEvent], writer: Worker) -> None:
        status = asyncio.create_task(self._show_status(writer))
        try:
            async for event in events:
                if isinstance(event, EndOfInput) and not event.duration_s:
                    continue  # nothing was heard: what was in the files stays
                try:
                    await writer.run(partial(self._outputs.write, event))
                except TerminalClosedError:  # before SIGHUP, which may not come at all
                    self._source.close()
        except SINK_FAILURES:
            for event in self._translator.take_ready():
                with suppress(*SINK_FAILURES):  # the first failure is the one to tell
                    await writer.run(partial(self._outputs.write, event))
            raise
        finally:
            status.cancel()

    async def _show_status(self, writer: Worker) -> None:
        terminal = self._terminal if self._translator.live else None
        while terminal is not None and self._outputs.has(terminal):
            await asyncio.sleep(_STATUS_S)
            await writer.run(partial(terminal.show_status, status_line(self.stats.lag_s, self._microphone)))

    def _interrupted(self) -> None:
        self._interrupts += 1
        if self._interrupts == 1 and self._began:
            tell("\nfinishing what was said; interrupt again to stop at once")
        self._end(at_once=self._interrupts > 1)

    def _hung_up(self) -> None:
        if self._terminal is not None and self._terminal.is_terminal:  # a file or a pipe is still there
            self._outputs.drop(self._terminal)
        self._end(at_once=False)

    def _end(self, at_once: bool) -> None:
        assert self._task is not None
        if at_once or not self._began:
            self._task.cancel()
        else:
            self._source.close()
