"""Calls of one recogniser for several sessions: one at a time, what was spoken first before the rest; drafts give way."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.asr.final import FinalRecognition
from pipeline.core.asr.live.drafting import Drafting
from pipeline.core.asr.recognizer import DEFAULT, DraftRecognizer, DraftRefusedError, RecognitionOptions
from pipeline.core.run.options import DraftOptions
from pipeline.errors import PipelineError
from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript
from pipeline.server import scheduling
from pipeline.server.chains import Chain
from pipeline.server.limits import ServerLimits
from pipeline.server.scheduling import Call, CallQueue, DraftBudget, Priority, ScheduledRecognizer, Scheduler, scheduled
from pipeline.server.session import Session
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.core.vad.test_stage import cut

SAVED_S = 60.0
"""By then, the time that was saved up for drafts before is used."""


def test_the_time_of_recordings_is_not_taken_from_drafts():
    for priority, allowed in ((Priority.RECORDING, True), (Priority.FINAL, False)):
        queue = CallQueue(0.0)
        long, draft = Call(priority, 0.0), Call(Priority.DRAFT, 0.0)
        queue.ask(long, 0.0)
        assert queue.begin(0.0) is long
        queue.end(long, 60.0)
        assert (queue.ask(draft, 60.0) == []) == allowed


@pytest.mark.parametrize("priority", Priority)
def test_a_draft_that_waits_gives_way_to_finals_and_older_drafts_only(priority):
    queue, draft = CallQueue(0.0), Call(Priority.DRAFT, 5.0)
    assert queue.ask(draft, 6.0) == []
    call = Call(priority, 4.0)
    refused = queue.ask(call, 6.0)
    assert refused == ([] if priority == Priority.RECORDING else [draft])
    assert queue.waiting == ([draft, call] if priority == Priority.RECORDING else [call])


def order(calls: list[tuple[Priority, float]], at_once: int = 1) -> list[int]:
    """The order in which threads get their turns that ask one after the other: their indices, of refused ones less 100."""
    scheduler, found = Scheduler(at_once), list[int]()
    hold, held = threading.Event(), threading.Event()

    def first() -> None:
        with scheduler.slot(Priority.FINAL):
            held.set()
            assert hold.wait(HANG_S)

    def work(index: int, priority: Priority, age_s: float) -> None:
        try:
            with scheduler.slot(priority, age_s):
                found.append(index)
        except DraftRefusedError:
            found.append(index - 100)

    threads = [threading.Thread(target=first, daemon=True)]
    threads[0].start()
    assert held.wait(HANG_S)
    for index, call in enumerate(calls):
        before, threads_before = scheduler.waiting, len(found)
        thread = threading.Thread(target=work, args=(index, *call), daemon=True)
        thread.start()
        threads.append(thread)
        while scheduler.waiting == before and len(found) == threads_before:
            pass
    hold.set()
    for thread in threads:
        thread.join(HANG_S)
    return found


def test_finals_come_before_recordings_and_what_was_spoken_first_before_the_rest():
    assert order(
        [
            (Priority.RECORDING, 0),
            (Priority.FINAL, 1),
            (Priority.RECORDING, 0),
            (Priority.FINAL, 3),
            (Priority.FINAL, 2),
            (Priority.FINAL, 2.5),
        ]
    ) == [3, 5, 4, 1, 0, 2]


def test_a_final_overtakes_a_draft_which_gives_way():
    assert order([(Priority.RECORDING, 0), (Priority.DRAFT, 9), (Priority.FINAL, 0), (Priority.DRAFT, 9)]) == [
        -99,
        -97,
        2,
        0,
    ]


def test_a_draft_comes_before_a_recording_and_the_session_that_has_waited_longest_before_others():
    assert order([(Priority.RECORDING, 0), (Priority.DRAFT, 6), (Priority.DRAFT, 7), (Priority.DRAFT, 5)]) == [
        -99,
        -97,
        2,
        0,
    ]


def test_a_failed_call_gives_its_turn_back():
    scheduler = Scheduler()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), scheduler.slot(Priority.FINAL):
            raise ZeroDivisionError


@dataclass(eq=False)
class Speaker:
    """A session: some seconds of speech, then their end, again and again; drafts meanwhile."""

    speech_s: float
    begins_s: float
    drafts: int = 0
    drafted_s: float = -100.0
    late_s: list[float] = field(default_factory=list)
    """For each end of speech, the time until it was recognised."""


def played(
    speakers: int, at_once: int = 1, final_s: float = 0.4, draft_s: float = 0.25, length_s: float = 180.0
) -> list[Speaker]:
    """Simulate sessions that share a recogniser, in steps of 10 ms. Drafts count from ``SAVED_S`` on."""
    everyone = [Speaker(4.0, 4.0 * number / speakers) for number in range(speakers)]
    schedule, asked = CallQueue(0.0, at_once), dict[Call, Speaker]()
    works: list[tuple[Call, float]] = []
    for step in range(round(length_s * 100)):
        now_s = step / 100
        for call, _ in [each for each in works if now_s >= each[1]]:
            works = [each for each in works if each[0] is not call]
            speaker = asked.pop(call)
            schedule.end(call, now_s)
            if call.priority == Priority.FINAL:
                speaker.late_s.append(now_s - call.since_s)
            else:
                speaker.drafts += now_s > SAVED_S
                speaker.drafted_s = now_s
        for speaker in everyone:
            if round((now_s - speaker.begins_s) * 100) % round(speaker.speech_s * 100) == 0:
                call = Call(Priority.FINAL, now_s)
            elif speaker in asked.values() or now_s - speaker.drafted_s < 0.5:
                continue
            else:
                call = Call(Priority.DRAFT, speaker.drafted_s)
            asked[call] = speaker
            for refused in schedule.ask(call, now_s):
                del asked[refused]
        while (begun := schedule.begin(now_s)) is not None:
            works.append((begun, now_s + (final_s if begun.priority == Priority.FINAL else draft_s)))
        assert len(works) <= at_once
    return everyone


@pytest.mark.slow
def test_drafts_become_rarer_for_all_alike_before_anybody_lags():
    drafts, late_s = list[float](), list[float]()
    for count in (1, 2, 4, 6, 8, 9):
        speakers = played(count)
        made = [speaker.drafts for speaker in speakers]
        assert max(made) <= 1.2 * min(made) + 1, f"{count} sessions had {made}"
        drafts.append(sum(made) / count)
        late_s.append(max(late for speaker in speakers for late in speaker.late_s))
    assert drafts == sorted(drafts, reverse=True)
    assert drafts[0] > 120, "alone, a draft comes every half second and more"
    assert drafts[-1] < 3, "finals take all the time that drafts may use"
    assert max(late_s) <= 0.4 + 0.4 + 0.25, "a final waits for one that is being recognised, and a draft at most"


@pytest.mark.slow
def test_two_calls_at_once_serve_twice_as_many_sessions():
    single, double = ([speaker.drafts for speaker in played(4 * at_once, at_once)] for at_once in (1, 2))
    assert sum(double) / 8 >= sum(single) / 4 > 40
    late_s = max(late for speaker in played(8, 2) for late in speaker.late_s)
    assert late_s <= 0.4 + 0.4 + 0.25


@given(
    st.lists(
        st.tuples(st.sampled_from([Priority.FINAL, Priority.DRAFT, Priority.RECORDING, None]), st.floats(0, 9)),
        max_size=60,
    )
)
def test_no_draft_waits_beside_a_final_and_turns_go_to_what_was_spoken_first(steps):
    schedule, works, expected = CallQueue(0.0), None, list[Call]()
    for number, (priority, age_s) in enumerate(steps):
        now_s = number / 10
        if priority is None:
            if works is not None:
                schedule.end(works, now_s)
            if (works := schedule.begin(now_s)) is not None:
                expected.remove(works)
                assert all((works.priority, works.since_s) <= (one.priority, one.since_s) for one in expected)
        else:
            call = Call(priority, now_s - age_s)
            expected.append(call)
            for refused in schedule.ask(call, now_s):
                assert refused.priority == Priority.DRAFT
                expected.remove(refused)
        assert schedule.waiting == expected
        waiting = [one.priority for one in schedule.waiting]
        assert waiting.count(Priority.DRAFT) <= (Priority.FINAL not in waiting)


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1), st.booleans()), max_size=100))
def test_drafts_and_finals_use_no_more_than_their_share(steps):
    budget, now_s, drafted_s, longest_s = DraftBudget(0.0, share=0.8), 0.0, 0.0, 0.0
    for rest_s, work_s, final in steps:
        now_s += rest_s
        if not final:
            if not budget.allows(now_s, 100.0):
                continue
            drafted_s, longest_s = drafted_s + work_s, max(longest_s, work_s)
        now_s += work_s
        budget.spend(now_s, work_s)
        assert drafted_s <= 0.8 * now_s + 10.0 + longest_s


def test_a_shared_recogniser_drafts_if_its_own_does(demo_models):
    recognizer = demo_models.recognizer
    found = scheduled(demo_models, Scheduler()).recognizer
    assert isinstance(found, DraftRecognizer) == isinstance(recognizer, DraftRecognizer)


@pytest.mark.slow
def test_every_call_of_a_shared_recogniser_is_one_turn(demo_models):
    class Counted(Scheduler):
        taken: list[tuple[Priority, float]]

        @contextmanager
        def slot(self, priority: Priority, age_s: float = 0.0, left: Callable[[], bool] = bool) -> Iterator[None]:
            with super().slot(priority, age_s, left):
                self.taken.append((priority, age_s))
                yield

    own, scheduler = demo_models.recognizer, Counted()
    scheduler.taken = []
    both = scheduled(demo_models, scheduler, lambda spoken_s: 100.0 - spoken_s).recognizer
    first, second = cut(read_wav(PHRASES), 1600)[:2]
    assert both.transcribe([first], DEFAULT) == own.transcribe([first], DEFAULT)
    assert both.transcribe_batch([[first, second]], DEFAULT) == own.transcribe_batch([[first, second]])
    assert both.transcribe([first, second], DEFAULT) == own.transcribe([first, second], DEFAULT)
    assert both.transcribe([second], DEFAULT) == own.transcribe([second], DEFAULT)
    assert scheduler.taken == [(Priority.FINAL, 100.0 - one.speech_end_s) for one in (first, first, first, second)]
    scheduled(demo_models, scheduler).recognizer.transcribe([first], DEFAULT)
    assert scheduler.taken[4:] == [(Priority.RECORDING, 0.0)]
    assert not FinalRecognition(both).at_once, "a live session would wait for several windows"


def test_speech_that_waited_longer_is_recognised_first(demo_models):
    """Two sessions wait; the second one to ask is behind with older speech."""
    scheduler, found = Scheduler(), list[str]()
    segment = SpeechSegment(0, 0, np.zeros(8_000, np.int16))

    def recognise(name: str, received_s: float) -> None:
        recognizer = scheduled(demo_models, scheduler, lambda spoken_s: received_s - spoken_s).recognizer
        recognizer.transcribe([segment], DEFAULT)
        found.append(name)

    threads = []
    with scheduler.slot(Priority.FINAL):
        for name, received_s in (("in time", 1.0), ("behind", 5.0)):
            threads.append(threading.Thread(target=recognise, args=(name, received_s), daemon=True))
            threads[-1].start()
            while scheduler.waiting < len(threads):
                pass
    for thread in threads:
        thread.join(HANG_S)
    assert found == ["behind", "in time"]


def test_a_refused_draft_leaves_the_recogniser_alone(demo_models):
    scheduler = Scheduler()
    recognizer = scheduled(demo_models, scheduler, lambda spoken_s: 0.0).recognizer
    assert isinstance(recognizer, ScheduledRecognizer)
    segment = SpeechSegment(0, 0, np.zeros(16_000, np.int16))
    refused = threading.Event()

    def draft() -> None:
        with pytest.raises(DraftRefusedError):
            recognizer.draft(segment, DEFAULT)
        refused.set()

    with scheduler.slot(Priority.FINAL):
        drafting = threading.Thread(target=draft, daemon=True)
        drafting.start()
        while not scheduler.waiting:
            pass
        final = threading.Thread(target=recognizer.transcribe, args=([segment], DEFAULT), daemon=True)
        final.start()
        assert refused.wait(HANG_S)
    final.join(HANG_S)
    assert not scheduler.waiting


def test_a_session_waits_after_a_draft_while_little_time_is_left(demo_models):
    times_s = [0.0]
    scheduler = Scheduler(clock=lambda: times_s[0])
    first, second = (scheduled(demo_models, scheduler, lambda spoken_s: 0.0).recognizer for _ in range(2))
    segment = SpeechSegment(0, 0, np.zeros(16_000, np.int16))
    assert isinstance(first, ScheduledRecognizer)
    assert isinstance(second, ScheduledRecognizer)
    with scheduler.slot(Priority.FINAL):
        times_s[0] += 12.0
    times_s[0] += 5.0
    first.draft(segment, DEFAULT)
    with pytest.raises(DraftRefusedError):
        first.draft(segment, DEFAULT)
    assert scheduler.refused_drafts == 1
    second.draft(segment, DEFAULT)


def test_a_session_that_is_sent_faster_than_it_plays_takes_turns_as_a_recording(demo_models):
    scheduler, found = Scheduler(), list[str]()
    segment = SpeechSegment(0, 0, np.zeros(8_000, np.int16))

    def recognise(name: str, age_s: float | None) -> None:
        scheduled(demo_models, scheduler, lambda _: age_s).recognizer.transcribe([segment], DEFAULT)
        found.append(name)

    threads = []
    with scheduler.slot(Priority.FINAL):
        for name, age_s in (("fast", None), ("live", 0.0)):
            threads.append(threading.Thread(target=recognise, args=(name, age_s), daemon=True))
            threads[-1].start()
            while scheduler.waiting < len(threads):
                pass
    for thread in threads:
        thread.join(HANG_S)
    assert found == ["live", "fast"]


def test_a_session_that_is_sent_faster_than_it_plays_has_no_drafts(demo_models):
    ahead = True
    recognizer = scheduled(demo_models, Scheduler(), lambda _: None if ahead else 0.0).recognizer
    assert isinstance(recognizer, ScheduledRecognizer)
    segment = SpeechSegment(0, 0, np.zeros(16_000, np.int16))
    with pytest.raises(DraftRefusedError):
        recognizer.draft(segment, DEFAULT)
    ahead = False
    recognizer.draft(segment, DEFAULT)


@pytest.mark.parametrize("ahead_s", [29.0, 31.0])
def test_a_stream_far_ahead_of_real_time_is_a_recording(ahead_s, demo_config, demo_models):
    session = Session(Chain(demo_config, demo_models), ServerLimits(), SAMPLE_RATE, scheduler=Scheduler())
    session.stats.clock = lambda: 100.0
    session.stats.received(SAMPLE_RATE)
    session.stats.clock = lambda: 110.0
    session.intake.push(bytes(2 * round((10 + 1 + ahead_s) * SAMPLE_RATE)))
    assert session.stats.ahead_s == pytest.approx(ahead_s)
    assert session._translator._models is not None
    recognizer = session._translator._models.recognizer
    assert isinstance(recognizer, ScheduledRecognizer)
    assert recognizer._age_s is not None
    assert recognizer._age_s(4.0) == (None if ahead_s > 30 else pytest.approx(7.0))


def test_an_interrupted_wait_does_not_lose_the_turn(monkeypatch):
    scheduler = Scheduler()

    def interrupt(event: threading.Event, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    def interrupted() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Event, "wait", interrupt)
            with pytest.raises(KeyboardInterrupt), scheduler.slot(Priority.FINAL):
                pass

    interrupted()  # its turn had begun
    assert is_free(scheduler)
    with scheduler.slot(Priority.FINAL):
        interrupted()  # it waited
        assert not scheduler.waiting
    assert is_free(scheduler)


def is_free(scheduler: Scheduler) -> bool:
    """Whether a turn begins now."""
    call = Call(Priority.FINAL, 0.0)
    scheduler._queue.ask(call, scheduler.clock())
    free = scheduler._queue.begin(scheduler.clock()) is call
    if free:
        scheduler._queue.end(call, scheduler.clock())
    else:
        scheduler._queue.leave(call, scheduler.clock())
    return free


class Slow:
    """Drafts that take 2 s, and wait for 7 s before it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        raise AssertionError("only drafts are asked for")

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        self.now_s += 2.0
        return None


def test_who_waits_for_others_and_what_was_answered_are_known():
    scheduler, seen = Scheduler(), list[tuple[bool, int]]()

    class Looks(Slow):
        def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
            seen.append((recognizer.waits, scheduler.answered))
            return []

    recognizer = ScheduledRecognizer(Looks(), scheduler, lambda _: 0.0)
    segment = SpeechSegment(0, 0, np.zeros(1, np.int16), speech_end_sample=1, heard_sample=1)
    thread = threading.Thread(target=recognizer.transcribe, args=([segment], DEFAULT))
    with scheduler.slot(Priority.FINAL):
        thread.start()
        while not scheduler.waiting:
            threading.Event().wait(0.01)
        assert (recognizer.waits, scheduler.answered) == (True, 0)
    thread.join(HANG_S)
    assert seen == [(False, 1)]
    assert (recognizer.waits, scheduler.answered) == (False, 2)


def test_a_recording_does_not_wait_for_a_recogniser_that_answers_nothing(monkeypatch):
    monkeypatch.setattr(scheduling, "_LOOK_S", 0.01)
    scheduler = Scheduler()
    with scheduler.slot(Priority.FINAL):
        assert not scheduler.hung
        scheduler.give_up()
        assert scheduler.hung
        with pytest.raises(PipelineError, match="does not answer"), scheduler.slot(Priority.RECORDING):
            pass
        assert scheduler.waiting == 0
    assert not scheduler.hung
    with scheduler.slot(Priority.RECORDING):
        pass


def test_a_call_of_which_nobody_wants_the_result_takes_no_turn():
    scheduler = Scheduler()
    recognizer = ScheduledRecognizer(Slow(), scheduler, lambda _: 0.0)
    recognizer.left = True
    segment = SpeechSegment(0, 0, np.zeros(1, np.int16), speech_end_sample=1, heard_sample=1)
    with pytest.raises(PipelineError, match="has ended"):
        recognizer.transcribe([segment], DEFAULT)
    assert is_free(scheduler)


def test_the_time_that_a_draft_takes_is_without_its_wait():
    slow = Slow()

    class Waited(Scheduler):
        @contextmanager
        def slot(self, *asked: Any) -> Iterator[None]:
            slow.now_s += 7.0
            with super().slot(*asked):
                yield

    drafter = ScheduledRecognizer(slow, Waited(clock=lambda: slow.now_s), lambda _: 0.0)
    drafting = Drafting(drafter, DraftOptions(every_ms=300), lambda: slow.now_s)
    end = 4 * SAMPLE_RATE
    segment = SpeechSegment(0, 0, np.zeros(end, np.int16), speech_end_sample=end, heard_sample=end)
    assert drafting.draft(segment, DEFAULT) is None
    assert slow.now_s == 9.0
    due = [s for s in range(20) if drafting.due(replace(segment, speech_end_sample=end + s * SAMPLE_RATE))]
    assert due[0] == 3, "1.2 times 2 s"
