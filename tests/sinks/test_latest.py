"""A slow sink: its writer does not wait, no text is lost, and its failure reaches the writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SinkError
from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.sinks.latest import LatestSink
from tests.conftest import HANG_S, Panic


class Slow:
    """A sink that delivers only while it is open."""

    def __init__(self) -> None:
        self.events: list[PipelineEvent] = []
        self.open, self.called = threading.Event(), threading.Event()

    def write(self, event: PipelineEvent) -> None:
        self.called.set()
        assert self.open.wait(HANG_S)
        self.events.append(event)


def delta(text: str, sentence: int = 0, withdrawn: int = 0, end: bool = False, segment: int = 0) -> Delta:
    return Delta(segment, sentence, 0.0, 1.0, text, -0.1, 5, "source", withdrawn=withdrawn, end_of_sentence=end)


@pytest.fixture
def opened() -> Iterator[Callable[..., tuple[Slow, LatestSink]]]:
    made: list[tuple[Slow, LatestSink]] = []

    def make(capacity: int = 100) -> tuple[Slow, LatestSink]:
        slow = Slow()
        made.append((slow, LatestSink(slow.write, capacity)))
        return made[-1]

    yield make
    for slow, sink in made:
        slow.open.set()
        sink.close()


def test_writing_does_not_wait_and_what_waits_becomes_one_change(
    opened: Callable[..., tuple[Slow, LatestSink]],
) -> None:
    slow, sink = opened()
    first = Transcript(0, 0.0, 1.0, "source", "en")
    sink.write(first)
    assert slow.called.wait(HANG_S)
    for event in (delta("你"), delta("好"), delta("早上", withdrawn=1), delta("", end=True), EndOfInput(1.0)):
        sink.write(event)
    assert slow.events == []
    slow.open.set()
    sink.drain()
    assert slow.events == [first, delta("你早上", end=True), EndOfInput(1.0)]


def test_too_many_waiting_events_are_dropped_from_the_oldest_and_counted(
    opened: Callable[..., tuple[Slow, LatestSink]],
) -> None:
    slow, sink = opened(3)
    sink.write(EndOfInput(0.0))
    assert slow.called.wait(HANG_S)
    for number in range(1, 6):
        sink.write(EndOfInput(float(number)))
    assert sink.dropped == 2
    slow.open.set()
    sink.drain()
    assert slow.events == [EndOfInput(float(number)) for number in (0, 3, 4, 5)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.booleans(), st.integers(0, 3)), max_size=30))
def test_any_changes_delivered_late_give_the_same_text(changes: list[tuple[str, int, bool, int]]) -> None:
    """As many are delivered at once as the last number says."""
    slow = Slow()
    seen: list[PipelineEvent] = []
    gate = threading.Semaphore(0)

    def deliver(event: PipelineEvent) -> None:
        assert gate.acquire(timeout=HANG_S)
        seen.append(event)

    sink = LatestSink(deliver)
    texts: dict[int, str] = {}
    sentence = 0
    for text, withdrawn, end, ready in changes:
        event = delta(text, sentence, min(withdrawn, len(texts.get(sentence, ""))), end)
        texts[sentence] = event.applied_to(texts.get(sentence, ""))
        sink.write(event)
        sentence += end
        for _ in range(ready):
            gate.release()
    for _ in changes:
        gate.release()
    sink.close()
    found: dict[int, str] = {}
    for event in seen:
        assert isinstance(event, Delta)
        assert event.withdrawn <= len(found.get(event.sentence, ""))
        found[event.sentence] = event.applied_to(found.get(event.sentence, ""))
    assert found == texts
    assert slow.events == []


@pytest.mark.parametrize(
    "error", [SinkError("gone"), BrokenPipeError(), Panic("odd")], ids=lambda error: type(error).__name__
)
def test_a_failure_reaches_the_writer_and_nothing_waits_for_the_sink(error: BaseException) -> None:
    def fail(event: PipelineEvent) -> None:
        raise error

    sink = LatestSink(fail)
    sink.write(EndOfInput())
    with pytest.raises((SinkError, BrokenPipeError)):
        sink.drain()
    with pytest.raises((SinkError, BrokenPipeError)):
        sink.write(EndOfInput())
    sink.close()


def test_the_newest_task_runs_after_the_events(opened: Callable[..., tuple[Slow, LatestSink]]) -> None:
    slow, sink = opened()
    ran: list[str] = []
    sink.write(EndOfInput())
    assert slow.called.wait(HANG_S)
    sink.call(lambda: ran.append("old"))
    sink.call(lambda: ran.append(f"new, after {len(slow.events)}"))
    slow.open.set()
    sink.close()
    assert ran == ["new, after 1"]
