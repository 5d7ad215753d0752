"""The ASR stage: which audio is recognised together, and pauses between transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline import Models
from pipeline.asr.context import Context, Heard
from pipeline.asr.options import AsrConfig
from pipeline.asr.stage import AsrStage, Recognizer
from pipeline.events import EndOfInput, Pause, SegmentSoFar, SpeechSegment, Transcript
from pipeline.run.overload import LoadControl, OverloadOptions
from tests.conftest import PHRASES, read_wav
from tests.vad.test_stage import cut

PAUSE, LONGER = Pause(5.0, 1.0), Pause(5.0, 2.0)


class Watched:
    """A recogniser that notes which segments are recognised together: (those before, the segments)."""

    def __init__(self, recognizer: Recognizer) -> None:
        self._recognizer = recognizer
        self.calls: list[tuple[list[int], list[int]]] = []

    @property
    def config(self) -> AsrConfig:
        return self._recognizer.config

    def transcribe(self, segment: SpeechSegment, *more: Any, **options: Any) -> Transcript:
        self.calls.append(([], [segment.id]))
        return self._recognizer.transcribe(segment, *more, **options)

    def transcribe_packed(self, segments: Sequence[SpeechSegment], *more: Any, **options: Any) -> list[Transcript]:
        self.calls.append(([], [segment.id for segment in segments]))
        return self._recognizer.transcribe_packed(segments, *more, **options)

    def transcribe_after(
        self, context: Sequence[Heard], segment: SpeechSegment, *more: Any, **options: Any
    ) -> Transcript:
        self.calls.append(([each.segment.id for each in context], [segment.id]))
        return self._recognizer.transcribe_after(context, segment, *more, **options)


@pytest.fixture
def recognizer(demo_models: Models) -> Watched:
    return Watched(demo_models.recognizer)


@pytest.fixture(scope="module")
def segments() -> list[SpeechSegment]:
    return cut(read_wav(PHRASES), 1600)[:3]


def run(
    recognizer: Recognizer, items: Sequence[SpeechSegment | SegmentSoFar | Pause], **options: Any
) -> list[Transcript | Pause | EndOfInput]:
    async def work() -> list[Transcript | Pause | EndOfInput]:
        inbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[Transcript | Pause | EndOfInput] = asyncio.Queue()
        for item in (*items, EndOfInput(20.0)):
            inbox.put_nowait(item)
        await AsrStage(recognizer, inbox, outbox, **options).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work())


def order(items: Sequence[Transcript | Pause | EndOfInput]) -> list[object]:
    return [item.segment_id if isinstance(item, Transcript) else item for item in items]


def test_a_segment_is_recognised_after_those_before_it(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    found = run(recognizer, segments, context=Context(8_000, 2_000))
    assert recognizer.calls == [([], [0]), ([0], [1]), ([0, 1], [2])]
    assert order(found) == [0, 1, 2, EndOfInput(20.0)]
    assert [item.previous_end for item in found if isinstance(item, Transcript)] == [None, ".", "?"]


def test_without_context_a_segment_is_recognised_alone(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    run(recognizer, segments[:2])
    run(recognizer, segments[:2], context=Context(0, 2_000))
    assert recognizer.calls == [([], [0]), ([], [1])] * 2


def test_a_stage_that_is_behind_does_without_context(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    load = LoadControl(OverloadOptions(join_ms=0))
    load.observe(1e9)
    assert load.level > 0
    run(recognizer, segments[:2], context=Context(8_000, 2_000), load=load)
    assert recognizer.calls == [([], [0]), ([], [1])]


def test_joined_segments_need_no_context(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    run(recognizer, segments, context=Context(8_000, 2_000), join_ms=lambda: 7_000)
    assert recognizer.calls == [([], [0, 1]), ([], [2])]


def test_pauses_keep_their_place(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    first, second, _ = segments
    found = run(recognizer, [first, PAUSE, LONGER, second, PAUSE], context=Context(8_000, 2_000))
    assert order(found) == [0, PAUSE, LONGER, 1, PAUSE, EndOfInput(20.0)]


def test_a_pause_does_not_keep_segments_from_being_joined(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    """Their times show the pause."""
    first, second, _ = segments
    found = run(recognizer, [first, PAUSE, second], join_ms=lambda: 9_000)
    assert recognizer.calls == [([], [0, 1])]
    assert order(found) == [0, 1, EndOfInput(20.0)]


def test_a_pause_after_waiting_segments_is_passed_on(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    """Behind, segments that wait are joined; the sentence after the last of them can still end with the pause."""
    load = LoadControl(OverloadOptions(join_ms=9_000))
    while load.level < 2:
        load.observe(1e9)

    async def work() -> list[object]:
        inbox: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[Transcript | Pause | EndOfInput] = asyncio.Queue()
        for item in (*segments[:2], PAUSE, LONGER):
            inbox.put_nowait(item)
        stage = asyncio.create_task(AsrStage(recognizer, inbox, outbox, load=load).run())
        found = [await outbox.get() for _ in range(3)]
        inbox.put_nowait(EndOfInput(20.0))
        await stage
        return order([*found, *(outbox.get_nowait() for _ in range(outbox.qsize()))])

    assert asyncio.run(work()) == [0, 1, LONGER, EndOfInput(20.0)]
    assert recognizer.calls == [([], [0, 1])]


def test_a_segment_that_ends_as_announced_is_recognised_once(
    recognizer: Watched, segments: list[SpeechSegment]
) -> None:
    first, second = segments[:2]
    early = replace(first, heard_sample=first.heard_sample - 4_000 if first.heard_sample else None)
    found = run(recognizer, [SegmentSoFar(early), first, second])
    assert recognizer.calls == [([], [0]), ([], [1])]
    assert found == run(recognizer, [first, second])
    assert isinstance(found[0], Transcript)
    assert found[0].heard_s == first.heard_s


def test_a_segment_that_goes_on_is_recognised_again(recognizer: Watched, segments: list[SpeechSegment]) -> None:
    first, second = segments[:2]
    early = replace(first, samples=first.samples[:-1_600])
    found = run(recognizer, [SegmentSoFar(early), first, SegmentSoFar(early), second])
    assert recognizer.calls == [([], [0]), ([], [1])]  # the segment itself was there already
    assert found == run(recognizer, [first, second])


def test_segments_that_are_joined_do_not_wait_for_announcements(
    recognizer: Watched, segments: list[SpeechSegment]
) -> None:
    items = [segments[0], SegmentSoFar(segments[1]), segments[1], segments[2]]
    run(recognizer, items, join_ms=lambda: 28_000)
    assert recognizer.calls == [([], [0, 1, 2])]
