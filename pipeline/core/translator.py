"""The whole chain: start, feed, drain, cancel and failure. Its stages are in ``pipeline.core.stages``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..errors import InputEndedError, PipelineError, StageError, UsageError
from ..glossary import CurrentGlossary, GlossaryFile, load_masked
from .captions.masking import Masking
from .events import SAMPLE_RATE, EndOfInput, PipelineEvent, Samples
from .models import Models, RunConfig
from .nmt.targets import LateTargets
from .nmt.translator import warn_unspellable
from .notices import AudioLost, DeviceBack, LoadChanged, Notice, SourceNotice
from .reading import CHUNKS_AT_ONCE, chunks_of, is_local, stop_reading
from .run.overload import LoadControl
from .run.stats import PipelineStats
from .run.worker import Worker
from .source import CHUNK_SAMPLES, AudioSource, LiveSource, as_samples
from .stages import StageContext, StageSpec, run_stages, standard_stages

log = logging.getLogger(__name__)

# Notices kept for a reader that has stopped reading. The oldest are dropped; the counters still include them.
_MAX_NOTICES = 256
_NOT_RUNNING = "the translator is not running; use it as an async context manager"
_ONE_STREAM = "a translator serves one stream; make another one, which may share its models"


@dataclass(frozen=True)
class _StreamEnd:
    """The last item of the outbox: no further event follows. ``error`` is the failure of a stage, or None."""

    error: PipelineError | None


class SpeechTranslator:
    """Speech in, transcripts and translations out, as they grow.

        async with SpeechTranslator(load_config("demo")) as translator:
            await translator.feed(pcm)        # from one task, as audio arrives
            await translator.end()
            async for event in translator.events():   # in another
                ...

    All queues are bounded: ``feed`` waits while the stages are behind, and the stages wait while nobody reads
    ``events``. Therefore, feed and read from different tasks. One translator serves one stream.

    ``end`` drains. ``cancel``, or leaving the ``async with``, stops at once and does not wait for model calls. The
    failure of a stage is raised from ``events`` and from a waiting ``feed`` as a StageError with its cause; no task is
    left behind. Nothing blocks the event loop: models run in their own threads.
    """

    def __init__(
        self,
        config: RunConfig,
        models: Models | None = None,
        *,
        live: bool = False,
        stages: Sequence[StageSpec] | None = None,
        glossary: CurrentGlossary | None = None,
        masking: Masking | None = None,
        late: LateTargets | None = None,
    ) -> None:
        """``models`` replace those that ``config`` names.

        ``stages`` replace ``standard_stages()``; an app may add stages to these or replace some of them.

        ``live``: the audio is fed as it is spoken. If the stages fall behind, they take the measures of
        ``config.overload`` to catch up (see ``pipeline.core.run.overload``).

        ``glossary`` and ``masking`` replace the files that ``config`` names. ``late`` adds target languages while a live run
        goes on; it is the server's, and may change without notice.
        """
        self.config, self.live = config, live
        self.stats = PipelineStats()
        """Counters and timings, readable at any time."""
        self._models = models
        self._glossary, self._late = glossary, late
        self._masking = masking
        self._reader: Worker | None = None
        self._specs = standard_stages() if stages is None else list(stages)
        self._inbox: asyncio.Queue[Samples | EndOfInput] = asyncio.Queue(config.queues.audio_chunks)
        self._outbox: asyncio.Queue[PipelineEvent | _StreamEnd] = asyncio.Queue(config.queues.events)
        self._stages: asyncio.Task[PipelineError | None] | None = None
        self._reporter: asyncio.Task[None] | None = None
        self._load = LoadControl(config.overload)
        self._notices: deque[Notice] = deque(maxlen=_MAX_NOTICES)
        self._reader_waiting = False
        self._ended = False
        self._used = False  # True once its one stream has ended or was passed to run()
        self._source_error: PipelineError | None = None  # the failure of the source that run() reads
        self._feed_lock = asyncio.Lock()

    async def __aenter__(self) -> SpeechTranslator:
        """Load the models (off the event loop) and start the stages.

        Raises:
            ValueError: the translator has run before.
            PipelineError: see ``load_models`` of the package.
            UsageError: the given models have no translator into a target.
            ConfigError: the glossary or the list of masked words has mistakes.
        """
        if self._stages is not None:
            raise ValueError(_ONE_STREAM)
        began = time.perf_counter()
        file = self.config.glossary.file if self._glossary is None else None
        read = GlossaryFile(Path(file)) if file is not None else None
        self._glossary = self._glossary or read
        self._masking = self._masking or Masking(load_masked(self.config.captions.masked))
        if self._models is None:
            with contextlib.closing(Worker("model loading")) as worker:
                self._models = await worker.run(self.config.load_models)
        if read is not None:
            translations = self._models.translations
            await asyncio.to_thread(
                read.check_with, lambda terms: warn_unspellable(terms, self.config.languages, translations)
            )
        missing = [target for target in self.config.languages.targets if target not in self._models.translations]
        if missing and any(spec.name == "NMT" for spec in self._specs):
            raise UsageError(
                f"the models have no translator into {' and '.join(missing)}; give one for each of the configuration's "
                f"targets, {', '.join(self.config.languages.targets)}"
            )
        if self._ended:
            raise ValueError("the translator was cancelled before it ran")
        self.stats.load_s = time.perf_counter() - began
        self.stats.started = time.perf_counter()
        self._stages = asyncio.create_task(self._run_stages(self._models))
        self._reporter = asyncio.create_task(self._report_failure(self._stages))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cancel()

    @property
    def running(self) -> bool:
        """True from when the models are loaded until the stages have ended."""
        return self._stages is not None and not self._stages.done()

    async def feed(self, audio: bytes | bytearray | memoryview | Samples) -> None:
        """Feed audio: int16 samples [n] or their little-endian bytes, 16 kHz mono, any length.

        Waits while the stages are behind. The array is copied and may be reused afterwards.

        Raises:
            StageError: a stage has failed.
            InputEndedError: after ``end`` or ``cancel``.
            ValueError: outside ``async with``, or not int16 mono.
        """
        samples = as_samples(audio)
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        if self._ended or not await self._feed_chunks(samples):
            raise InputEndedError("audio was fed after end() or cancel()")

    async def _feed_chunks(self, samples: Samples) -> bool:
        """Feed in chunks; False if the input was ended or cancelled before the last chunk."""
        async with self._feed_lock:
            for start in range(0, len(samples), CHUNK_SAMPLES):
                if self._ended:
                    return False
                await self._put(samples[start : start + CHUNK_SAMPLES].copy())
                await asyncio.sleep(0)  # a long recording fed in one call must not block the loop
        return True

    async def end(self) -> None:
        """End the input. Everything fed before is still translated, then ``events`` ends. Idempotent.

        Raises:
            StageError: a stage has failed.
            ValueError: outside ``async with``.
        """
        async with self._feed_lock:  # wait for a feed() in progress
            if not self._ended:
                await self._put(EndOfInput())  # if cancelled here, end() may be called again
                self._ended = self._used = True

    async def events(self) -> AsyncGenerator[PipelineEvent, None]:
        """Yield all events of the chain, in order, up to ``EndOfInput``.

        Ends without one if the translator is cancelled, or if the end has been read before.

        Raises:
            StageError: a stage failed. Events produced before the failure are yielded first.
            ValueError: outside ``async with``.
        """
        if self._stages is None and not self._ended:
            raise ValueError(_NOT_RUNNING)
        while True:
            while self._notices:
                yield self._notices.popleft()
            item = await self._next()
            self._leave_end(item)
            if isinstance(item, _StreamEnd):
                if item.error is not None:
                    raise item.error
                return
            while self._notices and isinstance(item, EndOfInput):  # EndOfInput stays last
                yield self._notices.popleft()
            yield self._masked(item)
            self.stats.delivered(item)
            self._observe_lag()
            if isinstance(item, EndOfInput):
                return

    async def _next(self) -> PipelineEvent | _StreamEnd:
        self._reader_waiting = True
        try:
            return await self._outbox.get()
        finally:
            self._reader_waiting = False

    def take_ready(self) -> list[PipelineEvent]:
        """Return the events that are ready, without waiting, so that a reader that stops early loses none."""
        ready: list[PipelineEvent] = [*self._notices]
        self._notices.clear()
        for _ in range(self._outbox.qsize()):
            item = self._outbox.get_nowait()
            self._leave_end(item)
            if not isinstance(item, _StreamEnd):
                ready.append(self._masked(item))
        return ready

    def _masked(self, event: PipelineEvent) -> PipelineEvent:
        return self._masking.push(event) if self._masking is not None else event

    def _leave_end(self, taken: PipelineEvent | _StreamEnd) -> None:
        """Leave a sentinel if the end was taken, so that later readers stop too. There is room in place of the item."""
        if isinstance(taken, _StreamEnd | EndOfInput):
            self._outbox.put_nowait(taken if isinstance(taken, _StreamEnd) else _StreamEnd(None))

    async def run(self, source: AudioSource, *, paced: bool = False) -> AsyncGenerator[PipelineEvent, None]:
        """Translate a whole source. ``paced`` feeds a recording in real time.

        Raises:
            StageError: a stage failed.
            AudioError, DeviceError: the source failed. Audio read before the failure is translated and yielded first.
            ValueError: outside ``async with``, or after another ``run`` or ``end``.
        """
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        if self._used:
            raise ValueError(_ONE_STREAM)
        if self._ended:  # cancelled
            raise ValueError(_NOT_RUNNING)
        self._used = True
        self.live = self.live or paced or isinstance(source, LiveSource)
        if isinstance(source, LiveSource):
            loop = asyncio.get_running_loop()
            source.listen(lambda notice: _call_soon(loop, self._on_source_notice, notice))
            self.stats.backlog_s = lambda: source.backlog_s
        pump = asyncio.create_task(self._pump(source, paced))
        try:
            try:
                async for event in self.events():
                    yield event
            except StageError as error:
                # The failed source may have caused the failure of the stage: raise the cause.
                if self._source_error is not None and self._source_error is not error:
                    raise self._source_error from (self._source_error.__cause__ or error)
                raise
            if self._source_error is not None:
                raise self._source_error
        except BaseException:
            if (close_error := await stop_reading(pump, source)) is not None:
                log.warning("closing the source failed as well: %s", close_error)
            raise
        if (close_error := await stop_reading(pump, source)) is not None:
            raise close_error

    async def cancel(self) -> None:
        """Stop at once: abandon work in flight and end a waiting ``events``. Idempotent."""
        tasks = [task for task in (self._stages, self._reporter) if task is not None]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:  # also if this task is cancelled while it waits
            self._ended = True
            while not self._outbox.empty():
                self._outbox.get_nowait()
            self._notices.clear()
            self._outbox.put_nowait(_StreamEnd(None))

    async def _pump(self, source: AudioSource, paced: bool) -> None:
        worker: Worker | None = None
        began, consumed = time.monotonic(), 0
        try:
            worker = Worker("audio")
            local = is_local(source) and not self.live
            self._reader = worker if local else None
            at_once = CHUNKS_AT_ONCE if local else 1
            async with contextlib.aclosing(chunks_of(source, worker, at_once, self._set_overflows)) as chunks:
                async for chunk in chunks:
                    consumed += len(chunk)
                    if paced:
                        await asyncio.sleep(began + consumed / SAMPLE_RATE - time.monotonic())
                    await self._feed_chunks(chunk)
                    if self._ended:
                        break
            await self.end()
        except Exception as error:  # the worker turns any other BaseException into a StageError
            # Translate the audio read before the failure first; run() raises the error afterwards.
            self._source_error = error if isinstance(error, PipelineError) else StageError("audio", error)
            await self.end()
        finally:
            self._reader = None
            if worker is not None:
                worker.close()

    def _set_overflows(self, overflows: int) -> None:
        self.stats.overflows = overflows

    def _observe_lag(self) -> None:
        """Update the longest lag and, in a live run, the load level."""
        stats = self.stats
        lag_s = stats.lag_s
        stats.longest_lag_s = max(stats.longest_lag_s, lag_s)
        if self.live and self._load.observe(lag_s):
            stats.load_level = self._load.level
            self._notify(LoadChanged(self._load.level, lag_s))

    def _on_source_notice(self, notice: SourceNotice) -> None:
        if isinstance(notice, AudioLost):
            self.stats.lost_s += notice.lost_s
        self.stats.reconnections += isinstance(notice, DeviceBack)
        self._notify(notice)

    def _notify(self, notice: Notice) -> None:
        """Pass a notice to the reader: at once if it is waiting, otherwise before the next event."""
        if self._reader_waiting and self._outbox.empty():
            self._outbox.put_nowait(notice)
        else:
            self._notices.append(notice)

    async def _put(self, item: Samples | EndOfInput) -> None:
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        _raise_failure(self._stages)
        count = 0 if isinstance(item, EndOfInput) else len(item)
        if count:  # audio waiting for the inbox counts towards the lag
            self.stats.received(count)
            self._observe_lag()
        if not self._inbox.full():
            self._inbox.put_nowait(item)
            return
        putting = asyncio.ensure_future(self._inbox.put(item))
        try:
            await asyncio.wait({putting, self._stages}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not putting.done():
                putting.cancel()
                self.stats.received(-count)
        _raise_failure(self._stages)

    async def _run_stages(self, models: Models) -> PipelineError | None:
        """Run all stages to their ends; return the failure that ended them early, or None."""
        context = StageContext(
            config=self.config,
            models=models,
            stats=self.stats,
            load=self._load,
            live=lambda: self.live,
            glossary=self._glossary,
            reader=lambda: self._reader,
            late=self._late,
        )
        specs, voices = self._specs, models.voices
        if voices is not None and self.config.speakers.auto:
            specs = voices(specs, self.config.speakers)
        return await run_stages(specs, self._inbox, self._outbox, context)

    async def _report_failure(self, stages: asyncio.Task[PipelineError | None]) -> None:
        if (error := await stages) is not None:
            await self._outbox.put(_StreamEnd(error))


def _raise_failure(stages: asyncio.Task[PipelineError | None]) -> None:
    if stages.done() and not stages.cancelled() and (error := stages.result()) is not None:
        raise error


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[SourceNotice], None], notice: SourceNotice) -> None:
    """Call ``function`` on the loop, from any thread. Do nothing if the loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, notice)
