"""Rules of one session, without a server: who is connected, for how long it waits, and when it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline import Models, PipelineConfig
from pipeline.core.nmt.same_language import SameLanguageText
from pipeline.errors import UsageError
from pipeline.events import PipelineEvent, SourceSentence, SourceText, Translation
from pipeline.server.chains import Chain
from pipeline.server.feed import News, Snapshot, Targets
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
    found = Session(Chain(demo_config, demo_models), LIMITS, 16_000, clock=clock)
    found.stats.clock = clock
    return found


def test_its_speaker_is_no_reader_and_readers_are_limited(session):
    feeds = [session.attach(), session.attach("zh")]
    assert (session.viewers, session.has_speaker) == (2, False)
    speaker = object()
    session.connect(speaker)
    assert (session.viewers, session.has_speaker) == (2, True)
    with pytest.raises(ProtocolError, match="2 readers, which is the limit"):
        session.attach()
    session.detach(feeds[0])
    session.detach(feeds[0])
    assert session.viewers == 1
    session.attach()


async def test_an_address_does_not_keep_all_places_from_others(session):
    old, new = session.attach(address="a"), session.attach(address="a")
    await new.take()
    other = session.attach(address="b")
    assert (await new.take(), session.viewers) == (None, 2)
    assert new.failure is not None
    assert new.failure.code == "busy"
    assert old.failure is other.failure is None
    with pytest.raises(ProtocolError, match="2 readers, which is the limit"):
        session.attach(address="c")
    session.detach(new)
    assert session.viewers == 2


@pytest.mark.parametrize(
    ("happens", "has_speaker"),
    [
        (lambda session, speaker, feed: session.disconnect(speaker, feed), False),
        (lambda session, speaker, feed: session.disconnect(object(), feed), True),
        (lambda session, speaker, feed: session.end(), False),
        (lambda session, speaker, feed: session.stop(), False),
        (lambda session, speaker, feed: session.connect(object()), True),
    ],
    ids=["gone", "an earlier connection is gone", "said everything", "stopped", "connected again"],
)
def test_a_session_has_a_speaker_who_is_connected_and_has_not_finished(happens, has_speaker, session):
    speaker = object()
    happens(session, speaker, session.connect(speaker))
    assert session.has_speaker is has_speaker


def test_an_earlier_connection_that_is_lost_late_does_not_count_as_the_speakers(session, clock):
    first, second = object(), object()
    feed = session.connect(first)
    session.disconnect(first, feed)
    session.connect(second)
    assert (session.is_connected(first), session.is_connected(second)) == (False, True)
    session.disconnect(first, feed)
    clock.now_s += LIMITS.resume_s + 1
    session._look(clock.now_s)
    assert not session.intake.ended
    assert session.is_connected(second)


@pytest.mark.parametrize(("away_s", "ended"), [(30.0, False), (30.5, True)])
def test_a_speaker_whose_connection_is_lost_may_come_back_for_some_time(away_s, ended, session, clock):
    speaker = object()
    session.disconnect(speaker, session.connect(speaker))
    assert session._lost_s is not None
    session._look(clock.now_s + away_s)
    assert (session.intake.ended, session.failure) == (ended, None)


async def test_half_a_sample_of_a_lost_connection_is_not_put_before_what_follows(session):
    session.connect(object())
    await session.hear(b"\1\2\3")
    session.connect(object())
    await session.hear(b"\4\4")
    heard = await session.intake.take()
    assert heard is not None
    assert heard.tolist() == [0x0201, 0x0404]


@pytest.mark.parametrize(
    ("idle_s", "lasted_s", "code"),
    [(300.0, 0.0, None), (300.5, 0.0, "idle"), (0.0, 3_600.0, None), (0.0, 3_600.5, "too-long"), (301, 3_601, "idle")],
)
async def test_a_session_ends_when_no_audio_comes_or_it_lasts_too_long(idle_s, lasted_s, code, session, clock):
    clock.now_s += lasted_s - idle_s
    await session.hear(SECOND)
    clock.now_s += idle_s
    await session.hear(b"")  # no audio
    session._look(clock.now_s)
    assert (session.failure and session.failure.code) == code
    assert session.intake.ended is (code is not None)


@pytest.mark.parametrize("waits", [True, False], ids=["has to wait", "pauses"])
async def test_a_speaker_who_pauses_or_has_to_wait_is_not_idle(waits, session, clock):
    for on, later_s, code in ((True, 1_000.0, None), (False, 300.0, None), (False, 0.5, "idle")):
        if waits:
            session.intake.holding = on
        else:
            await session.operator.pause(on)
        clock.now_s += later_s
        session._look(clock.now_s)
        assert (session.failure and session.failure.code) == code


def test_the_first_reason_for_its_end_is_told(session, clock):
    session._look(clock.now_s + 301)
    session.intake.holding = True
    session._look(clock.now_s + 4_000)  # too long
    assert session.failure is not None
    assert session.failure.code == "idle"


async def test_audio_after_the_end_is_left_out(session):
    await session.hear(SECOND)
    session.stop()
    await session.hear(SECOND)
    assert session.intake.arrived_s == 1.0


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


@pytest.mark.parametrize(
    ("before", "silence_s"),
    [
        (lambda session, speaker: session.hear(SECOND), 10.0),
        (lambda session, speaker: asyncio.sleep(0), 0.0),
        (lambda session, speaker: lost(session, speaker), 0.0),
        (lambda session, speaker: much(session), 0.0),
    ],
    ids=["sends nothing more", "has sent nothing yet", "is away", "has to wait"],
)
async def test_silence_stands_for_what_a_connected_speaker_does_not_send(
    before: Callable, silence_s, session, clock, monkeypatch
):
    speaker = object()
    session.connect(speaker)
    await before(session, speaker)
    arrived_s = session.intake.arrived_s
    session.stats.received(round(arrived_s * 16_000))
    clock.now_s += 10.0
    session._look(clock.now_s)
    assert session.intake.arrived_s - arrived_s == pytest.approx(silence_s, abs=1.5)


async def much(session: Session) -> None:
    session.intake.push(61 * SECOND)


async def lost(session: Session, speaker: object) -> None:
    await session.hear(SECOND)
    session.disconnect(speaker, object())


async def test_silence_is_counted_anew_when_audio_has_come_again(session, clock):
    session.connect(object())
    for _ in range(2):
        await session.hear(SECOND)
        session.stats.received(16_000)
        clock.now_s += 1.0
        session._look(clock.now_s)
        arrived_s = session.intake.arrived_s
        clock.now_s += 10.0
        session._look(clock.now_s)
        assert session.intake.arrived_s > arrived_s + 5
    await session.hear(SECOND)
    arrived_s = session.intake.arrived_s
    clock.now_s += 1.0
    session._look(clock.now_s)
    assert session.intake.arrived_s == arrived_s


def test_nothing_is_behind_when_more_was_fed_than_has_arrived(session):
    session.stats.received(16_000)
    assert session.stats.backlog_s() == 0.0


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
    assert (session.sentences, session.failure, session.has_speaker) == (2, None, False)


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("no model"), "failed"), (KeyError("x"), "failed"), (asyncio.CancelledError(), "stopping")],
)
async def test_why_a_session_ended_early_is_told(error, code, session, caplog):
    session._translator = Translator(session, [], error)
    with pytest.raises(asyncio.CancelledError) if code == "stopping" else nullcontext():
        await session.run()
    assert session.failure is not None
    assert session.failure.code == code
    assert [bool(record.exc_info) for record in caplog.records] == (
        [] if code == "stopping" else [isinstance(error, KeyError)]
    )


def test_who_missed_the_last_text_may_come_again_for_some_time(session, clock):
    assert session.grace_s < 0
    feed = session.attach()
    clock.now_s += 1_000
    assert session.grace_s == LIMITS.resume_s
    session.detach(feed, served=True)
    assert session.grace_s < 0
    session.detach(session.attach(), served=False)
    clock.now_s += 10
    session.detach(session.attach(), served=True)
    assert session.grace_s == LIMITS.resume_s - 10


@pytest.mark.parametrize("has_all", [True, False, None])
async def test_who_does_not_confirm_the_last_text_may_come_again(has_all, session, clock):
    answer = asyncio.get_running_loop().create_future()
    confirming = asyncio.create_task(session.confirm(answer))
    await asyncio.sleep(0)
    clock.now_s += 1_000
    assert session.grace_s == LIMITS.resume_s
    if has_all is None:
        answer.set_exception(ConnectionError())
        with pytest.raises(ConnectionError):
            await confirming
    else:
        answer.set_result(has_all)
        await confirming
    assert session.grace_s == LIMITS.resume_s or has_all
    clock.now_s += LIMITS.resume_s
    assert session.grace_s <= 0


def test_readers_who_were_too_slow_count_when_they_have_gone(session):
    feed = session.attach()
    feed.resets = 2
    session.attach().resets = 1
    assert session.resets == 3
    session.detach(feed)
    session.detach(feed)
    assert session.resets == 3


async def test_a_session_waits_for_its_last_reader(session):
    first, second = session.attach(), session.attach()
    waiting = asyncio.create_task(session.delivered(60.0))
    await asyncio.sleep(0)
    for feed, done in ((first, False), (second, True)):
        session.detach(feed)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting.done() is done
    await waiting
    await session.delivered(60.0)


async def test_who_comes_when_a_session_is_over_is_told_its_end(session):
    early = session.attach()
    session.end()
    await session.run()
    for feed in (early, session.attach()):
        await feed.take()
        assert feed.waiting
        assert await feed.take() is None


def test_a_reader_that_takes_nothing_back_is_not_told_again_what_was_final_before_a_snapshot():
    news = News()
    first, second = SourceSentence(0, "en", "One."), SourceSentence(1, "en", "Two.")
    both = Translation(0, "pt", "Um."), Translation(0, "de", "Eins.")
    before = [*news.of(SourceText(0, "en", "On")), *news.of(first), *news.of(both[0])]
    assert before == [SourceText(0, "en", "On"), first, both[0]]
    assert list(news.of(Snapshot((first, *both, second)))) == [both[1], second]
    assert list(news.of(Targets(("pt", "de")))) == []
    assert list(news.of(Translation(1, "pt", "Dois."))) == [Translation(1, "pt", "Dois.")]
