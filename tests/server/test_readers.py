"""Readers of a session, and its speaker: who has a place, and who may come again for the last text; without a session."""

import asyncio

import pytest

from pipeline.events import SourceSentence, SourceText, Translation
from pipeline.server.feed import Readers
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError
from tests.server.test_session_rules import Clock

LIMITS = ServerLimits(max_viewers=2, resume_s=30.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def readers(clock: Clock) -> Readers:
    return Readers(LIMITS, clock)


def test_the_speaker_is_no_reader_and_readers_are_limited(readers):
    feeds = [readers.attach(None), readers.attach("zh")]
    readers.attach_speaker()
    assert readers.count == 2
    with pytest.raises(ProtocolError, match="2 readers, which is the limit"):
        readers.attach(None)
    readers.detach(feeds[0])
    readers.detach(feeds[0])
    assert readers.count == 1
    readers.attach(None)


def test_the_speaker_alone_is_told_why_the_session_ends(readers):
    feeds = [readers.attach(None, "a"), readers.attach(None, "a"), readers.attach_speaker()]
    readers.attach(None, "b")  # has the place of the second
    reason = ProtocolError("room-busy", "elsewhere")
    readers.fail_speaker(reason)
    assert [feed.failure and feed.failure.code for feed in feeds] == [None, "busy", "room-busy"]
    assert readers.attach_speaker(reason).failure is reason


async def test_an_address_does_not_keep_all_places_from_others(readers):
    old, new = readers.attach(None, "a"), readers.attach(None, "a")
    await new.take()
    other = readers.attach(None, "b")
    assert (await new.take(), readers.count) == (None, 2)
    assert new.failure is not None
    assert new.failure.code == "busy"
    assert old.failure is other.failure is None
    with pytest.raises(ProtocolError, match="2 readers, which is the limit"):
        readers.attach(None, "c")
    readers.detach(new)
    assert readers.count == 2


def test_who_missed_the_last_text_may_come_again_for_some_time(readers, clock):
    assert readers.grace_s < 0
    feed = readers.attach(None)
    clock.now_s += 1_000
    assert readers.grace_s == LIMITS.resume_s
    readers.detach(feed, served=True)
    assert readers.grace_s < 0
    readers.detach(readers.attach(None), served=False)
    clock.now_s += 10
    readers.detach(readers.attach(None), served=True)
    assert readers.grace_s == LIMITS.resume_s - 10


@pytest.mark.parametrize("has_all", [True, False, None])
async def test_who_does_not_confirm_the_last_text_may_come_again(has_all, readers, clock):
    answer = asyncio.get_running_loop().create_future()
    confirming = asyncio.create_task(readers.confirm(answer))
    await asyncio.sleep(0)
    clock.now_s += 1_000
    assert readers.grace_s == LIMITS.resume_s
    if has_all is None:
        answer.set_exception(ConnectionError())
        with pytest.raises(ConnectionError):
            await confirming
    else:
        answer.set_result(has_all)
        await confirming
    assert readers.grace_s == LIMITS.resume_s or has_all
    clock.now_s += LIMITS.resume_s
    assert readers.grace_s <= 0


def test_readers_who_were_too_slow_count_when_they_have_gone(readers):
    feed = readers.attach(None)
    feed.resets = 2
    readers.attach(None).resets = 1
    assert readers.resets == 3
    readers.detach(feed)
    readers.detach(feed)
    assert readers.resets == 3


async def test_a_session_waits_for_its_last_reader(readers):
    first, second = readers.attach(None), readers.attach(None)
    waiting = asyncio.create_task(readers.delivered(60.0))
    await asyncio.sleep(0)
    for feed, done in ((first, False), (second, True)):
        readers.detach(feed)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting.done() is done
    await waiting
    await readers.delivered(60.0)


async def test_a_reader_that_takes_nothing_back_is_not_told_again_what_was_final_before_a_snapshot(readers):
    feed = readers.attach(None)
    news = feed.news()
    first, second = SourceSentence(0, "en", "One."), SourceSentence(1, "en", "Two.")
    both = Translation(0, "pt", "Um."), Translation(0, "de", "Eins.")
    for event in (SourceText(0, "en", "On"), first, both[0]):
        readers.push(event)
        assert await anext(news) == event
    readers.retarget(("pt", "de"))
    for event in (both[1], second):
        readers.push(event)
    feed.begin_anew()
    assert [await anext(news), await anext(news)] == [both[1], second]
    readers.push(third := Translation(1, "pt", "Dois."))
    readers.end()
    assert [event async for event in news] == [third]
