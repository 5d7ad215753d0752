"""Rules of one session, without a server: who is connected, for how long it waits, and when it ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline import Models, PipelineConfig
from pipeline.core.nmt.same_language import SameLanguageText
from pipeline.errors import UsageError
from pipeline.events import PipelineEvent
from pipeline.server.chains import Chain
from pipeline.server.feed import Targets
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError
from pipeline.server.session import Session
from tests.streams import spoken, translated

SECOND = bytes(2 * 16_000)
LIMITS = ServerLimits(max_viewers=2, resume_s=30.0, idle_s=300.0, session_s=3_600.0, backlog_s=60.0)


class Clock:
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def session(demo_config: PipelineConfig, demo_models: Models, clock: Clock) -> Session:
    """A session that has not begun to work."""
    new = Session(Chain(demo_config, demo_models), LIMITS, 16_000, clock=clock)
    new.stats.clock = clock
    return new


def test_a_session_whose_speaker_does_not_come_back_ends_as_if_everything_was_said(session, clock, caplog):
    caplog.set_level("INFO", "pipeline.server")
    speaker = object()
    session.disconnect(speaker, session.connect(speaker))
    for later_s, ended in ((30.0, False), (0.5, True)):
        clock.now_s += later_s
        session._look(clock.now_s)
        assert (session.intake.ended, session.state.failure) == (ended, None)
    assert caplog.messages == [f"session {session.name}: its speaker did not come back"]


async def test_a_session_that_has_reached_a_limit_ends(session, clock):
    await session.hear(SECOND)
    clock.now_s += 301.0
    await session.hear(b"")  # no audio
    session._look(clock.now_s)
    assert session.intake.ended
    assert session.state.failure is not None
    assert session.state.failure.code == "idle"


async def test_half_a_sample_of_a_lost_connection_is_not_put_before_what_follows(session):
    session.connect(object())
    await session.hear(b"\1\2\3")
    session.connect(object())
    await session.hear(b"\4\4")
    heard = await session.intake.take()
    assert heard is not None
    assert heard.tolist() == [0x0201, 0x0404]


@pytest.mark.parametrize("waits", [True, False], ids=["has to wait", "pauses"])
async def test_a_speaker_who_pauses_or_has_to_wait_is_not_idle(waits, session, clock):
    for on, later_s, code in ((True, 1_000.0, None), (False, 300.0, None), (False, 0.5, "idle")):
        if waits:
            session.intake.holding = on
        else:
            await session.operator.pause(on)
        clock.now_s += later_s
        session._look(clock.now_s)
        assert (session.state.failure and session.state.failure.code) == code


async def test_audio_after_the_end_is_left_out(session):
    await session.hear(SECOND)
    session.stop()
    await session.hear(SECOND)
    assert session.intake.arrived_s == 1.0


async def test_a_long_message_lets_others_have_their_turn_and_ends_where_its_connection_does(session):
    data = bytes(range(256)) * 4_096
    session.connect(first := object())
    hearing = asyncio.create_task(session.hear(data, first))
    turns = 0
    while not hearing.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 3
    heard = await session.intake.take()
    assert heard is not None
    assert heard.astype("<i2").tobytes() == data
    hearing = asyncio.create_task(session.hear(data, first))
    await asyncio.sleep(0)
    session.connect(object())
    received = session.intake.received
    await hearing
    assert session.intake.received == received < len(data)


async def test_what_is_said_after_the_speaker_has_finished_is_refused(session):
    session.end()
    session.end()
    with pytest.raises(ProtocolError, match="audio came after the end"):
        await session.hear(SECOND)


async def test_silence_is_heard_in_a_pause(session):
    await session.operator.pause(True)
    await session.hear(b"\1\1" * 100)
    await session.operator.pause(False)
    await session.hear(b"\1\1" * 100)
    heard = await session.intake.take()
    assert heard is not None
    assert heard.tolist() == [0] * 100 + [257] * 100


async def test_silence_stands_for_what_a_connected_speaker_does_not_send(session, clock):
    speaker = object()
    feed = session.connect(speaker)
    await session.hear(SECOND)
    session.stats.received(16_000)
    for filled in (False, True):
        arrived_s = session.intake.arrived_s
        if filled:
            session.connect(speaker)
        else:
            session.disconnect(speaker, feed)  # who is away may go on with what was said meanwhile
        clock.now_s += 10.0
        session._look(clock.now_s)
        assert (session.intake.arrived_s > arrived_s + 8) is filled


def test_a_session_is_recorded_until_its_record_fails(session):
    assert not session.recorded
    for failed in (False, True):
        session._record = SimpleNamespace(failed=failed)
        assert session.recorded is not failed


async def test_readers_are_told_of_a_language_that_is_added(session):
    session.targets.late.add = lambda *_: True
    feed = session.attach()
    await feed.take()
    translations = {"de": SameLanguageText("de")}
    chain = SimpleNamespace(narrowed=lambda _: SimpleNamespace(models=SimpleNamespace(translations=translations)))
    for told in ([Targets(("zh", "de"))], []):
        session.add_target("de", chain, by_reader=True)
        assert feed.waiting is bool(told)
        assert [await feed.take() for _ in told] == told
        assert feed.waiting is False
    assert session.config.languages.targets == ("zh", "de")
    assert session._models.translations["de"] is translations["de"]


class Translator:
    """Gives events as a translator that has nothing to do."""

    def __init__(self, session: Session, events: Sequence[PipelineEvent], error: BaseException | None = None) -> None:
        self.stats, self._events, self._error = session.stats, events, error

    async def __aenter__(self) -> "Translator":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def feed(self, samples: object) -> None: ...

    async def end(self) -> None: ...

    async def events(self) -> AsyncIterator[PipelineEvent]:
        for event in self._events:
            yield event
        if self._error is not None:
            raise self._error


class Told:
    """A record that remembers what it is told."""

    failed = False

    def __init__(self) -> None:
        self.events: list[PipelineEvent] = []

    async def write(self, event: PipelineEvent) -> None:
        self.events.append(event)

    async def close(self) -> None: ...


async def test_all_are_told_each_event_with_its_speaker_and_sentences_are_counted(session):
    session._record, pushed = (record := Told()), list[PipelineEvent]()
    session.pushed = SimpleNamespace(write=pushed.append)
    feed = session.attach()
    await feed.take()
    session.operator.name_speaker("Ann")
    events = [*spoken(0, "Yes."), *translated(0, ["是。"]), *spoken(1, "No.")]
    session._translator = Translator(session, events)
    session.connect(object())
    await session.run()
    named = [replace(event, speaker="Ann") if hasattr(event, "speaker") else event for event in events]
    assert record.events == pushed == named
    assert [await feed.take() for _ in named] == named
    assert await feed.take() is None
    assert (session.sentences, session.state.failure, session.state.has_speaker) == (2, None, False)


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("no model"), "failed"), (KeyError("x"), "failed"), (asyncio.CancelledError(), "stopping")],
)
async def test_why_a_session_ended_early_is_told(error, code, session, caplog):
    session._translator = Translator(session, [], error)
    with pytest.raises(asyncio.CancelledError) if code == "stopping" else nullcontext():
        await session.run()
    assert session.state.failure is not None
    assert session.state.failure.code == code
    assert [bool(record.exc_info) for record in caplog.records] == (
        [] if code == "stopping" else [isinstance(error, KeyError)]
    )


async def test_who_comes_when_a_session_is_over_is_told_its_end(session):
    early = session.attach()
    session.end()
    await session.run()
    for feed in (early, session.attach()):
        await feed.take()
        assert feed.waiting
        assert await feed.take() is None
