"""Live runs that make the same drafts on every machine: audio comes when all that came before is dealt with."""

import asyncio
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import pytest

from pipeline import EndOfInput, NmtStage, PipelineEvent
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.core.nmt.stage import NmtContext, Text
from pipeline.core.nmt.translator import TextTranslator
from pipeline.core.notices import SourceNotice
from pipeline.core.run.options import DraftOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.events import SAMPLE_RATE, Samples, SpeechSegment, Transcript


class Pace:
    """Knows whether a run has dealt with everything that it was given: all of its queues are empty and waited at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watches the asyncio queues that are made from now on."""
        self.changed = threading.Condition()
        self._queues: list[Any] = []
        self._idle = self._idle_but_one = True
        self._now_s, self._until_s = 0.0, 0.0
        self._over = False
        pace = self

        class Watched(asyncio.Queue[Any]):
            def __init__(self, maxsize: int = 0) -> None:
                super().__init__(maxsize)
                self.waits = True  # also if nobody has come yet: nobody does anything
                if maxsize:  # those of a run are bounded
                    pace._queues.append(self)

            async def get(self) -> Any:
                self.waits = True
                pace._look()
                item = await super().get()
                self.waits = False
                pace._look()
                return item

            def _put(self, item: Any) -> None:
                super()._put(item)
                pace._look()

        monkeypatch.setattr(asyncio, "Queue", Watched)

    def _look(self) -> None:
        with self.changed:
            waited_at = [queue for queue in self._queues if queue.waits]
            busy = len(self._queues) - len(waited_at)
            rest = all(queue.empty() for queue in waited_at)
            self._idle, self._idle_but_one = rest and busy == 0, rest and busy == 1
            self.changed.notify_all()

    def forget(self) -> None:
        """Another run begins."""
        self._queues.clear()
        self._now_s, self._until_s, self._over = 0.0, 0.0, False

    def advance(self, now_s: float | None) -> None:
        """Wait until nothing is to be done at the current time, and set the time; None: there is no more audio."""
        with self.changed:
            self.changed.wait_for(
                lambda: self._over or self._idle or (self._idle_but_one and self._until_s > self._now_s)
            )
            if now_s is None:
                self.end()
            else:
                self._now_s = now_s
                self.changed.notify_all()

    def end(self) -> None:
        """There is no more audio, so nothing waits for it."""
        with self.changed:
            self._over = True
            self.changed.notify_all()

    def take(self, seconds: float) -> None:
        """Simulates a model call that is so slow: wait until so much more audio has come. One call at a time."""
        with self.changed:
            self._until_s = until_s = self._now_s + seconds
            self.changed.notify_all()
            self.changed.wait_for(lambda: self._over or self._now_s >= until_s)


class Steady:
    """A live source that says ``chunks``, one whenever the run waits for more."""

    duration_s = None
    overflows = 0
    backlog_s = 0.0

    def __init__(self, chunks: Iterable[Samples], pace: Pace, before: Callable[[int], None] = lambda _: None) -> None:
        """``before`` is called before each chunk, on the thread that reads the source, with the number of samples so far."""
        self._chunks = list(chunks)
        self._pace, self._before = pace, before
        self.said = 0
        """Samples so far."""
        self._closed = False
        self.notify: Callable[[SourceNotice], None] = lambda _: None

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        self.notify = notify

    def read(self) -> Samples | None:
        if not self._chunks or self._closed:
            self._pace.advance(None)
            return None
        self._pace.advance((self.said + len(self._chunks[0])) / SAMPLE_RATE)
        if self._closed:
            return None
        self._before(self.said)
        chunk = self._chunks.pop(0)
        self.said += len(chunk)
        return chunk

    def close(self) -> None:
        self._closed = True
        self._pace.end()


def chunks(samples: Samples, size: int = 1_600) -> list[Samples]:
    """``samples``, [n], in chunks of ``size``."""
    return [samples[start : start + size] for start in range(0, len(samples), size)]


class Slow:
    """A recogniser that takes simulated time: for drafts, and for all else. Calls with the numbers ``slow`` do."""

    def __init__(self, recognizer: Any, pace: Pace, draft_s: float, final_s: float, slow: Container[int]) -> None:
        self._recognizer, self._pace, self._slow = recognizer, pace, slow
        self._draft_s, self._final_s = draft_s, final_s
        self._calls = 0
        self.drafting = False
        """Whether a draft is in progress."""
        self.levels: list[int] = []
        """The load level at each draft."""
        self.stats = PipelineStats()
        """Of the run."""

    def _taking(self, seconds: float, result: Any) -> Any:
        self._calls += 1
        if self._calls - 1 in self._slow:
            self._pace.take(seconds)
        return result

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        self.levels.append(self.stats.load_level)
        self.drafting = True
        try:
            found: Transcript | None = self._taking(self._draft_s, self._recognizer.draft(segment, options))
        finally:
            self.drafting = False
        return found

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        found: list[Transcript] = self._taking(self._final_s, self._recognizer.transcribe(segments, options))
        return found


def at_once(stats: PipelineStats) -> None:
    """Time goes by with the audio only, so that no work takes any."""
    stats.clock = lambda: stats.received_samples / SAMPLE_RATE


class WatchedQueue(asyncio.Queue[Text | EndOfInput]):
    """A queue that knows when its reader waits for the next item."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = asyncio.Event()

    async def get(self) -> Text | EndOfInput:
        if self.empty():
            self.idle.set()
        return await super().get()


def converse(
    model: TextTranslator,
    items: Sequence[Text],
    target: str = "zh",
    options: DraftOptions | None = None,
    stats: PipelineStats | None = None,
) -> list[list[PipelineEvent]]:
    """What a live translation stage puts out for each item, each given once the one before has been dealt with."""

    async def work() -> list[list[PipelineEvent]]:
        inbox, outbox = WatchedQueue(), asyncio.Queue[PipelineEvent]()
        context = NmtContext(lambda: True, options or DraftOptions(), stats or PipelineStats())
        stage = NmtStage(model, inbox, outbox, target=target, context=context)
        running = asyncio.create_task(stage.run())
        found = []
        for item in items:
            inbox.put_nowait(item)
            inbox.idle.clear()
            waiting = asyncio.create_task(inbox.idle.wait())
            await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            found.append([outbox.get_nowait() for _ in range(outbox.qsize())])
        inbox.put_nowait(EndOfInput())
        await running
        return found

    return asyncio.run(work())
