"""The whole chain: start, feed, drain, cancel, failure. See ``pipeline.stages`` for what is in it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from pipeline.audio.source import CHUNK_SAMPLES, AudioSource, LiveSource, as_samples
from pipeline.config import PipelineConfig
from pipeline.errors import PipelineError, StageError
from pipeline.events import (
    SAMPLE_RATE,
    AudioLost,
    DeviceBack,
    EndOfInput,
    LoadChanged,
    Notice,
    PipelineEvent,
    Samples,
    SourceNotice,
)
from pipeline.loading import Models, load_models
from pipeline.run.overload import LoadControl
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.stages import Stage, StageContext, StageSpec, chained, standard_stages

log = logging.getLogger(__name__)

# Notices that wait for a reader who has stopped reading; the newest are kept, and the counters have them all.
_NOTICES = 256
_NOT_RUNNING = "the translator is not running; use it as an async context manager"
_ONE_STREAM = "a translator serves one stream; make another one, which may share its models"


@dataclass(frozen=True)
class _Stopped:
    """The last thing in the outbox when the stages ended early."""

    error: PipelineError | None


class SpeechTranslator:
    """Speech in, transcripts and translation deltas out.

        async with SpeechTranslator(load_config("demo")) as translator:
            await translator.feed(pcm)        # from one task, as audio arrives
            await translator.end()
            async for event in translator.events():   # in another
                ...

    Every queue is bounded: ``feed`` waits while the stages are behind, and the stages wait while nobody reads
    ``events``, so read and feed from different tasks. One translator serves one stream.

    ``end`` drains, ``cancel`` (and leaving the ``async with``) stops at once and waits for no model call. A failure
    reaches the reader, and a waiting ``feed``, as a StageError with its cause; no task is left behind. Nothing blocks
    the event loop: models run on threads of their own.
    """

    def __init__(
        self,
        config: PipelineConfig,
        models: Models | None = None,
        *,
        live: bool = False,
        stages: Sequence[StageSpec] | None = None,
    ) -> None:
        """``models`` given are used instead of loading those that ``config`` names.

        ``stages`` are those of ``standard_stages()``, and others that an app adds to them or puts in their place.

        ``live`` says that the audio is fed as it is spoken: where the stages fall behind it, they do what
        ``config.overload`` says to catch up (``pipeline.run.overload``).
        """
        self.config, self.live = config, live
        self.stats = PipelineStats()
        """Counters and timings, readable at any time."""
        self._models = models
        self._specs = standard_stages() if stages is None else list(stages)
        self._inbox: asyncio.Queue[Samples | EndOfInput] = asyncio.Queue(config.queues.audio_chunks)
        self._outbox: asyncio.Queue[PipelineEvent | _Stopped] = asyncio.Queue(config.queues.events)
        self._stages: asyncio.Task[PipelineError | None] | None = None
        self._reporter: asyncio.Task[None] | None = None
        self._load = LoadControl(config.overload)
        self._notices: deque[Notice] = deque(maxlen=_NOTICES)
        self._reader_waits = False
        self._ended = False
        self._served = False  # its one stream
        self._broken: PipelineError | None = None  # what its source failed of
        self._feeding = asyncio.Lock()

    async def __aenter__(self) -> SpeechTranslator:
        """Load the models (off the event loop) and start the stages.

        Raises:
            ValueError: it has run already.
            PipelineError: see ``load_models``.
        """
        if self._stages is not None:
            raise ValueError(_ONE_STREAM)
        began = time.perf_counter()
        if self._models is None:
            worker = Worker("model loading")
            try:
                self._models = await worker.run(lambda: load_models(self.config))
            finally:
                worker.close()
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
        """Take the next audio: int16 samples [n], or bytes of the same (little-endian), 16 kHz mono, any length.

        Waits while the stages are behind; the array may be used anew afterwards. Audio fed after ``end`` is an error of
        the caller's.

        Raises:
            StageError: a stage has failed.
            ValueError: after ``end`` or ``cancel``, outside ``async with``, or not int16 mono.
        """
        samples = as_samples(audio)
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        if self._ended or not await self._take(samples):
            raise ValueError("audio was fed after end() or cancel()")

    async def _take(self, samples: Samples) -> bool:
        """Feed in chunks; False where the input was ended or cancelled before the last of them."""
        async with self._feeding:
            for start in range(0, len(samples), CHUNK_SAMPLES):
                if self._ended:
                    return False
                await self._put(samples[start : start + CHUNK_SAMPLES].copy())
                await asyncio.sleep(0)  # a long recording fed at once must not keep the loop
        return True

    async def end(self) -> None:
        """The input is over: everything fed is still translated, then ``events`` ends. Idempotent.

        Raises:
            StageError: a stage has failed.
            ValueError: outside ``async with``.
        """
        async with self._feeding:  # after what is being fed, not in the middle of it
            if not self._ended:
                await self._put(EndOfInput())  # one that is cancelled while it waits may be called again
                self._ended = self._served = True

    async def events(self) -> AsyncGenerator[PipelineEvent, None]:
        """Everything the chain produces, in order; ends with ``EndOfInput``, or at once when cancelled or at its end before.

        Raises:
            StageError: a stage failed; what was produced before it has been yielded.
            ValueError: outside ``async with``.
        """
        if self._stages is None and not self._ended:
            raise ValueError(_NOT_RUNNING)
        while True:
            while self._notices:
                yield self._notices.popleft()
            item = await self._next()
            if isinstance(item, _Stopped | EndOfInput):
                # Whoever reads on, or again, finds this. What has just been taken left room for it.
                self._outbox.put_nowait(item if isinstance(item, _Stopped) else _Stopped(None))
            if isinstance(item, _Stopped):
                if item.error is not None:
                    raise item.error
                return
            while self._notices and isinstance(item, EndOfInput):  # which stays last
                yield self._notices.popleft()
            yield item
            self.stats.delivered(item)
            self._observe()
            if isinstance(item, EndOfInput):
                return

    async def _next(self) -> PipelineEvent | _Stopped:
        self._reader_waits = True
        try:
            return await self._outbox.get()
        finally:
            self._reader_waits = False

    def take_ready(self) -> list[PipelineEvent]:
        """What is ready to be read, without waiting for more: for a reader that ends early and loses nothing."""
        ready = [*self._notices, *(self._outbox.get_nowait() for _ in range(self._outbox.qsize()))]
        self._notices.clear()
        return [item for item in ready if not isinstance(item, _Stopped)]

    async def run(self, source: AudioSource, *, paced: bool = False) -> AsyncGenerator[PipelineEvent, None]:
        """Translate a whole source; ``paced`` holds a recording back to the speed at which it was spoken.

        Raises:
            StageError: a stage failed.
            AudioError, DeviceError: the source broke; what came before has been translated and yielded.
            ValueError: outside ``async with``, or after another ``run`` or ``end``.
        """
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        if self._served:
            raise ValueError(_ONE_STREAM)
        if self._ended:  # cancelled
            raise ValueError(_NOT_RUNNING)
        self._served = True
        self.live = self.live or paced or isinstance(source, LiveSource)
        if isinstance(source, LiveSource):
            loop = asyncio.get_running_loop()
            source.listen(lambda notice: _call_soon(loop, self._source_noticed, notice))
            self.stats.backlog_s = lambda: source.backlog_s
        pump = asyncio.create_task(self._pump(source, paced))
        try:
            try:
                async for event in self.events():
                    yield event
            except StageError as error:
                # A stage may have failed of what a broken source left: the cause is what helps.
                if self._broken is not None and self._broken is not error:
                    raise self._broken from (self._broken.__cause__ or error)
                raise
            if self._broken is not None:
                raise self._broken
        except BaseException:
            if (unclosed := await _stopped(pump, source)) is not None:
                log.warning("closing the source failed as well: %s", unclosed)
            raise
        if (unclosed := await _stopped(pump, source)) is not None:
            raise unclosed

    async def cancel(self) -> None:
        """Stop at once: work in flight is abandoned, a waiting ``events`` ends. Idempotent."""
        tasks = [task for task in (self._stages, self._reporter) if task is not None]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:  # one that is cancelled itself stops all the same
            self._ended = True
            while not self._outbox.empty():
                self._outbox.get_nowait()
            self._notices.clear()
            self._outbox.put_nowait(_Stopped(None))

    async def _pump(self, source: AudioSource, paced: bool) -> None:
        worker: Worker | None = None
        began, consumed = time.monotonic(), 0

        def read() -> tuple[Samples | None, int]:
            return source.read(), source.overflows

        try:
            worker = Worker("audio")
            while not self._ended:
                chunk, self.stats.overflows = await worker.run(read)
                if chunk is None:
                    break
                consumed += len(chunk)
                if paced:
                    await asyncio.sleep(began + consumed / SAMPLE_RATE - time.monotonic())
                await self._take(chunk)
            await self.end()
        except Exception as error:  # the worker raises what is none as a StageError
            # What was heard before the source broke is still worth reading; run() raises the error after it.
            self._broken = error if isinstance(error, PipelineError) else StageError("audio", error)
            await self.end()
        finally:
            if worker is not None:
                worker.close()

    def _observe(self) -> None:
        """Look at the lag, and in a live run act on it."""
        stats = self.stats
        lag_s = stats.lag_s
        stats.longest_lag_s = max(stats.longest_lag_s, lag_s)
        if self.live and self._load.observe(lag_s):
            stats.load_level = self._load.level
            self._notify(LoadChanged(self._load.level, lag_s))

    def _source_noticed(self, notice: SourceNotice) -> None:
        if isinstance(notice, AudioLost):
            self.stats.lost_s += notice.lost_s
        self.stats.reconnections += isinstance(notice, DeviceBack)
        self._notify(notice)

    def _notify(self, notice: Notice) -> None:
        """Hand a notice to the reader: at once to one that waits, else before the next event."""
        if self._reader_waits and self._outbox.empty():
            self._outbox.put_nowait(notice)
        else:
            self._notices.append(notice)

    async def _put(self, item: Samples | EndOfInput) -> None:
        if self._stages is None:
            raise ValueError(_NOT_RUNNING)
        if self._stages.done() and (error := _outcome(self._stages)) is not None:
            raise error
        count = 0 if isinstance(item, EndOfInput) else len(item)
        if count:  # what waits here is behind, too
            self.stats.received(count)
            self._observe()
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
        if self._stages.done() and (error := _outcome(self._stages)) is not None:
            raise error

    async def _run_stages(self, models: Models) -> PipelineError | None:
        """Run all stages to their ends; returns the failure that ended them early, if one did."""
        context = StageContext(self.config, models, self.stats, self._load, lambda: self.live)
        try:
            async with asyncio.TaskGroup() as group:
                for stage in chained(self._specs, self._inbox, self._outbox, context):
                    group.create_task(_guarded(stage))
        except BaseExceptionGroup as failures:
            first = failures.exceptions[0]
            return first if isinstance(first, StageError) else StageError("pipeline", first)
        except Exception as error:  # a configuration made in code is not checked before it gets here
            return StageError("pipeline", error)
        return None

    async def _report_failure(self, stages: asyncio.Task[PipelineError | None]) -> None:
        if (error := await stages) is not None:
            await self._outbox.put(_Stopped(error))


async def _guarded(stage: Stage) -> None:
    try:
        await stage.run()
    except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit, StageError):
        raise  # on this thread the first four come from outside; the worker's thread hands on a StageError instead
    except BaseException as error:
        raise StageError(stage.name, error) from error


async def _stopped(pump: asyncio.Task[None], source: AudioSource) -> StageError | None:
    """Close the source and end the task that reads it; the failure to close, if there was one."""
    failure: StageError | None = None
    try:
        source.close()
    except (KeyboardInterrupt, SystemExit):
        raise  # a signal's
    except BaseException as error:
        failure = StageError("audio", error)
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
    return failure


def _outcome(stages: asyncio.Task[PipelineError | None]) -> PipelineError | None:
    return None if stages.cancelled() else stages.result()


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[SourceNotice], None], notice: SourceNotice) -> None:
    """Call on the loop, from any thread; not at all once the loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, notice)
