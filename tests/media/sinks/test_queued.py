"""Queued sinks: a lossless one holds its writer back, one of the latest text drops whole sentences; failures are reported."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.notices import TranslationLost
from pipeline.errors import SinkError
from pipeline.events import EndOfInput, PipelineEvent, SourceText, TargetText, Transcript
from pipeline.media.sinks.queued import Delivery, QueuedSink
from tests.conftest import HANG_S, Panic
from tests.streams import spoken, streams, translated


class Slow:
    """A sink that delivers as many events as it is allowed to."""

    def __init__(self, write: Callable[[PipelineEvent], None] = lambda event: None) -> None:
        self.events: list[PipelineEvent] = []
        self.called = threading.Event()
        self._write, self._allowed = write, threading.Semaphore(0)

    def write(self, event: PipelineEvent) -> None:
        self.called.set()
        assert self._allowed.acquire(timeout=HANG_S)
        self.events.append(event)
        self._write(event)

    def allow(self, count: int = 1_000) -> None:
        for _ in range(count):
            self._allowed.release()


class Call(threading.Thread):
    """A call on a thread of its own, and its result."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._result: object = None
        self.start()

    def run(self) -> None:
        self._result = self._function()

    def waits_for(self, sink: QueuedSink) -> bool:
        """Whether the call waits for ``sink``, which is busy; False once the call has returned."""
        while self.is_alive() and not sink._changed._waiters:  # of its condition
            time.sleep(0)
        return self.is_alive()

    def result(self) -> object:
        self.join(HANG_S)
        assert not self.is_alive(), "the call does not return"
        return self._result


Opened = Callable[..., tuple[Slow, QueuedSink]]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes queued sinks that are busy with their first event, the end of the input."""
    made: list[tuple[Slow, QueuedSink]] = []

    def make(
        delivery: Delivery, capacity: int = 100, write: Callable[[PipelineEvent], None] = lambda event: None
    ) -> tuple[Slow, QueuedSink]:
        slow = Slow(write)
        sink = QueuedSink(slow.write, delivery, capacity)
        made.append((slow, sink))
        sink.write(EndOfInput())
        assert slow.called.wait(HANG_S)
        return slow, sink

    yield make
    for slow, sink in made:
        slow.allow()
        sink.close()


def test_of_a_text_only_the_latest_is_delivered_and_writing_does_not_wait(opened):
    slow, sink = opened(Delivery.LATEST)
    source = spoken(0, "Good morning.")
    *_, last, end = translated(0, "你早上")
    for event in (*source, *(TargetText(0, "zh", text) for text in ("你", "你好", "你早上")), last, end):
        sink.write(event)
    assert slow.events == []
    slow.allow()
    sink.drain()
    assert slow.events[1:] == [*source, last, end]


def test_a_full_lossless_queue_holds_the_writer_back_and_loses_nothing(opened):
    slow, sink = opened(Delivery.LOSSLESS, capacity=3)
    events = [*spoken(0, "Good morning."), *translated(0, "早上好。"), EndOfInput(2.0)]
    written: list[PipelineEvent] = []

    def write() -> None:
        for event in events:
            sink.write(event)
            written.append(event)

    writer = Call(write)
    assert writer.waits_for(sink)
    assert written == events[:3], "one is with the sink, three wait, and the writer waits to hand over the next one"
    slow.allow()
    writer.result()
    sink.drain()
    assert slow.events[1:] == written == events
    assert sink.dropped == 0


def test_draining_waits_only_for_what_was_handed_over_before(opened):
    slow, sink = opened(Delivery.LOSSLESS)
    before, later = spoken(0, "Good morning.")
    sink.write(before)
    draining = Call(sink.drain)
    assert draining.waits_for(sink)
    sink.write(later)
    slow.allow(2)
    assert draining.result() is True
    assert slow.events == [EndOfInput(), before]


def test_a_stalled_sink_is_waited_for_once_until_it_delivers_again(opened):
    slow, sink = opened(Delivery.LOSSLESS)
    first, second = spoken(0, "Good morning.")
    sink.write(first)
    assert not sink.drain(timeout_s=0.01)
    assert Call(lambda: sink.drain(threading.TIMEOUT_MAX)).result() is False
    unlimited = Call(sink.drain)
    assert unlimited.waits_for(sink)
    slow.allow(2)
    assert unlimited.result() is True
    sink.write(second)
    limited = Call(lambda: sink.drain(threading.TIMEOUT_MAX))
    assert limited.waits_for(sink)
    slow.allow(1)
    assert limited.result() is True
    assert slow.events == [EndOfInput(), first, second]


def test_draining_does_not_wait_for_what_is_dropped(opened):
    slow, sink = opened(Delivery.LATEST, capacity=2)
    source, *more = spoken(0, "One."), *translated(0, ["一。"])
    for event in (*source, *more):  # all of one sentence, so that the newest event is dropped as well
        sink.write(event)
    assert sink.dropped == 1
    draining = Call(sink.drain)
    assert draining.waits_for(sink)
    slow.allow()
    assert draining.result() is True
    assert slow.events == [EndOfInput()]


def test_the_latest_text_replaces_whole_sentences_which_are_counted(opened):
    slow, sink = opened(Delivery.LATEST, capacity=8)
    events = [[*spoken(number, f"{number}."), *translated(number, f"第{number}。")] for number in range(5)]
    for event in (event for sentence in events for event in sentence):
        sink.write(event)
    assert sink.dropped == 3
    slow.allow()
    sink.drain()
    assert texts(slow.events[1:]) == {(3, "en"): "3.", (3, "zh"): "第3。", (4, "en"): "4.", (4, "zh"): "第4。"}


def test_a_sentence_of_which_a_part_was_delivered_is_dropped_to_its_end(opened):
    slow, sink = opened(Delivery.LATEST, capacity=3)
    source, last = spoken(0, "One."), translated(0, ["一。"])
    sink.write(source[0])
    slow.allow(2)
    sink.drain()
    sink.write(source[1])
    for event in (*spoken(1, "Two."), *spoken(2, "Three."), *last):
        sink.write(event)
    assert sink.dropped == 2
    slow.allow()
    sink.drain()
    assert slow.events[1:] == [source[0], *spoken(2, "Three.")]


def test_a_slow_language_loses_only_what_is_dropped(opened):
    """The German translation of the first sentence comes after the source of the third."""
    slow, sink = opened(Delivery.LATEST, capacity=4)
    for event in [*spoken(0, "One."), *translated(0, ["一。"])]:
        sink.write(event)
    slow.allow(5)
    sink.drain()
    german = translated(0, ["Eins."], language="de")
    for event in [*spoken(1, "Two."), *spoken(2, "Three."), *german]:
        sink.write(event)
    assert sink.dropped == 1
    slow.allow()
    sink.drain()
    assert slow.events[5:] == [*spoken(2, "Three."), *german]


def test_neither_the_loss_of_a_language_nor_the_end_is_dropped(opened):
    """A terminal that missed the loss would wait for that language with every sentence."""
    slow, sink = opened(Delivery.LATEST, capacity=3)
    lost = TranslationLost("de", "broken")
    rejected = [Transcript(number, 0.0, 1.0, "", "en", rejected="silence") for number in range(4)]
    for event in (rejected[0], lost, *spoken(0, "One."), *rejected[1:], EndOfInput(9.0)):
        sink.write(event)
    slow.allow()
    sink.drain()
    assert slow.events[1:] == [lost, rejected[3], EndOfInput(9.0)]
    assert sink.dropped == 1


def texts(events: Sequence[PipelineEvent]) -> dict[tuple[int, str], str]:
    """The newest states among ``events``: (sentence, language) → text."""
    return {
        (event.sentence, event.language): event.text for event in events if isinstance(event, SourceText | TargetText)
    }


@given(streams(st.text(max_size=12)), st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_any_states_delivered_late_end_with_the_same_texts(stream, allowances):
    """After each event as many are delivered as the next allowance says, so that any of those that wait are replaced."""
    slow = Slow()
    sink = QueuedSink(slow.write, Delivery.LATEST)
    for at, event in enumerate(stream.events):
        sink.write(event)
        slow.allow(allowances[at % len(allowances)])
    slow.allow(len(stream.events))
    sink.close()
    expected = {(number, "en"): text for number, text in stream.sources.items()} | stream.translations
    assert texts(stream.events) == expected
    assert texts(slow.events) == expected
    ends = [
        [event for event in events if not isinstance(event, SourceText | TargetText)]
        for events in (stream.events, slow.events)
    ]
    assert ends[0] == ends[1], "only states are left out"


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize(
    "error", [SinkError("gone"), BrokenPipeError(), Panic("odd")], ids=lambda error: type(error).__name__
)
def test_a_failure_reaches_the_writer_and_nothing_waits_for_the_sink(error, delivery):
    def fail(event: PipelineEvent) -> None:
        raise error

    sink = QueuedSink(fail, delivery, capacity=1)
    sink.write(EndOfInput())
    with pytest.raises((SinkError, BrokenPipeError)):
        sink.drain()
    with pytest.raises((SinkError, BrokenPipeError)):
        sink.write(EndOfInput())
    sink.close()


def test_what_waits_for_a_sink_that_failed_is_given_up(opened):
    def fail(event: PipelineEvent) -> None:
        raise SinkError("gone")

    slow, sink = opened(Delivery.LATEST, 5, fail)
    for event in spoken(0, "Good morning."):
        sink.write(event)
    assert sink.is_busy
    slow.allow(1)
    with pytest.raises(SinkError):
        sink.drain()
    assert not sink.is_busy


def test_a_writer_that_waits_gets_the_failure(opened):
    def fail(event: PipelineEvent) -> None:
        raise SinkError("gone")

    slow, sink = opened(Delivery.LOSSLESS, 1, fail)
    sink.write(EndOfInput())

    def write() -> str:
        with pytest.raises(SinkError) as failure:
            sink.write(EndOfInput())
        return str(failure.value)

    writer = Call(write)
    assert writer.waits_for(sink)
    slow.allow(1)
    assert writer.result() == "gone"


def test_the_newest_task_runs_after_the_events(opened):
    slow, sink = opened(Delivery.LATEST)
    ran: list[str] = []
    sink.call(lambda: ran.append("old"))
    sink.call(lambda: ran.append(f"new, after {len(slow.events)}"))
    slow.allow()
    sink.close()
    assert ran == ["new, after 1"]


@pytest.mark.parametrize("delivery", Delivery)
def test_closing_delivers_what_waits(opened, delivery):
    slow, sink = opened(delivery)
    events = [*spoken(0, "One."), *translated(0, ["一。"])]
    for event in events:
        sink.write(event)
    slow.allow()
    sink.close()
    assert slow.events[1:] == events


@pytest.mark.parametrize("delivery", Delivery)
def test_closing_does_not_wait_for_a_stuck_sink(opened, delivery):
    slow, sink = opened(delivery, capacity=1)
    sink.write(EndOfInput())
    Call(lambda: sink.close(timeout_s=0.01)).result()
    assert slow.events == []
    sink.write(EndOfInput())  # does not wait for room either
