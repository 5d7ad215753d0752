"""One live run from a source to sinks, until the end of input, an interrupt, a closed terminal or a failed sink."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from ..config import PipelineConfig
from ..console import is_told, settle, tell
from ..core import AudioSource, EndOfInput, Models, PipelineEvent, PipelineStats, SpeechTranslator, Translation, Worker
from ..errors import PipelineError
from ..media import SINK_FAILURES, Delivery, FanOut, QueuedSink, Sink, TerminalClosedError, TerminalSink
from .controls import NoticeSink, controls, status_line

if TYPE_CHECKING:
    from ..media import Microphone

# Time to finish writing when the run is cancelled.
_CLOSE_S = 0.5
# How long a finished translation may wait to be in the files before it is shown. A disk takes milliseconds, and a reader
# of a pipe that takes longer than this must not keep the display from following the speaker.
_FILE_WAIT_S = 0.5
# Redraw interval of the terminal's status line.
_STATUS_S = 0.25


class LiveRun:
    """Translates one source into sinks.

    The first interrupt ends the input and drains what was heard; the second cancels. If the terminal is closed, what
    was heard is drained into the other sinks. A sink that fails ends the run, after the other sinks have received
    everything translated until then.
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
        """Prepare a run; ``run`` starts it.

        Args:
            paced: play a recording at its own pace.
            live: the source does not wait, so show the lag and reduce it. Always on for a microphone or ``paced``.
            microphone: ``source`` if it is a microphone, to pause it and show its level.
            terminal: the sink in ``sinks`` that shows the run's status.
        """
        self._source, self._paced, self._microphone, self._terminal = source, paced, microphone, terminal
        self._translator = SpeechTranslator(config, models, live=live or paced or microphone is not None)
        # Files and pipes hold back the stages instead of losing text. A terminal may be stopped (Ctrl-S) or slow.
        self._files = {sink: QueuedSink(sink.write, Delivery.LOSSLESS) for sink in sinks if sink is not terminal}
        self._shown = FanOut([*([terminal] if terminal is not None else []), NoticeSink(drafts=config.has_drafts)])
        self._delivery = Delivery.LATEST if terminal is None or terminal.is_terminal else Delivery.LOSSLESS
        self._display = QueuedSink(self._show, self._delivery)
        self._queued = [*self._files.values(), self._display]
        self._outputs = FanOut(self._queued)
        self._interrupts = 0
        self._began = False  # once True, everything heard is delivered, however the run ends
        self._task: asyncio.Task[object] | None = None

    @property
    def stats(self) -> PipelineStats:
        return self._translator.stats

    def is_writing(self, file: Sink) -> bool:
        """Whether a file is still being written after ``run``, because it was cancelled while the file was stalled."""
        return file in self._files and self._files[file].is_busy

    async def run(self) -> None:
        """Run to the end.

        Raises:
            CancelledError: interrupted twice, or before the models were loaded.
            PipelineError, BrokenPipeError: a failure; everything translated before it has reached the sinks.
        """
        self._task = asyncio.current_task()
        writer = Worker("subtitles")
        with controls(interrupted=self._interrupted, hung_up=self._hung_up, microphone=self._microphone):
            try:
                async with self._translator, aclosing(self._translator.run(self._source, paced=self._paced)) as events:
                    self._began = True
                    await self._begin(writer)
                    await self._deliver(events, writer)
            finally:
                writer.close()
                writer.join(_CLOSE_S)  # finish writing before the sinks are closed
                for sink in self._queued:
                    sink.close(_CLOSE_S)
                if (count := self._display.dropped) and self._terminal is not None:
                    sentences = "1 sentence was" if count == 1 else f"{count} sentences were"
                    tell(f"{sentences} not shown: the terminal was stopped or too slow")

    async def _begin(self, writer: Worker) -> None:
        await writer.run(settle)
        if self._microphone is not None:
            await writer.run(self._microphone.start)
            keys = ", the space bar pauses" if sys.stdin is not None and sys.stdin.isatty() else ""
            tell(f"listening to {self._microphone.name}; Ctrl-C ends{keys}")

    async def _deliver(self, events: AsyncIterator[PipelineEvent], writer: Worker) -> None:
        status = asyncio.create_task(self._show_status())
        try:
            async for event in events:
                if isinstance(event, EndOfInput) and not event.duration_s:
                    continue  # nothing was heard: keep existing files
                try:
                    await writer.run(partial(self._outputs.write, event))
                except TerminalClosedError:  # comes before SIGHUP, which may never come
                    self._source.close()
            for sink in self._queued:
                if self._outputs.has(sink):
                    with suppress(TerminalClosedError):
                        await writer.run(sink.drain)
        except (PipelineError, BrokenPipeError):
            for event in self._translator.take_ready():
                with suppress(*SINK_FAILURES):  # report only the first failure
                    await writer.run(partial(self._outputs.write, event))
            for sink in self._queued:
                with suppress(*SINK_FAILURES):
                    await writer.run(sink.drain)
            raise
        finally:
            status.cancel()

    def _show(self, event: PipelineEvent) -> None:
        """Show an event. A finished translation is in the files first: a killed run loses nothing that was shown.

        A file that is stalled is not waited for: a pipe that nobody reads, for example.
        """
        if isinstance(event, Translation) and self._terminal is not None:
            for file in self._files.values():
                with suppress(*SINK_FAILURES):  # ``_deliver`` reports them
                    file.drain(_FILE_WAIT_S)
        self._shown.write(event)

    async def _show_status(self) -> None:
        display, terminal = self._display, self._terminal
        if terminal is None or not terminal.is_terminal or not self._translator.live or not is_told():
            return
        while self._outputs.has(display):
            await asyncio.sleep(_STATUS_S)
            display.call(partial(terminal.show_status, status_line(self.stats.lag_s, self._microphone)))

    def _interrupted(self) -> None:
        self._interrupts += 1
        if self._interrupts == 1 and self._began:
            tell("\nfinishing what was said; interrupt again to stop at once")
        self._end(at_once=self._interrupts > 1)

    def _hung_up(self) -> None:
        if self._delivery is Delivery.LATEST:  # files and pipes still work
            self._outputs.drop(self._display)
        self._end(at_once=False)

    def _end(self, at_once: bool) -> None:
        assert self._task is not None
        if at_once or not self._began:
            self._task.cancel()
        else:
            self._source.close()
