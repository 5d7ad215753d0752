"""What a late or slow reader is told adds up to what every reader has."""

import asyncio
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.captions.states import OpenTexts, State, key
from pipeline.core.notices import Paused, Resumed, TranslationLost
from pipeline.events import (
    Correction,
    EndOfInput,
    MissingSpeech,
    PipelineEvent,
    SourceSentence,
    SourceText,
    TargetText,
    Transcript,
    Translation,
)
from pipeline.media.sinks.jsonl import read_event
from pipeline.server.feed import Feed, Snapshot, Targets
from pipeline.server.history import History, concerns
from pipeline.server.protocol import snapshot_text
from tests.media.subtitles.strategies import CHINESE, ENGLISH
from tests.streams import changes, spoken, streams, translated

Texts = dict[tuple[int, str], tuple[str, int, bool]]
"""(sentence, language or "" for the source) → text, length of its steady part, whether it has ended."""


def texts(events: Iterable[PipelineEvent], found: Texts | None = None) -> Texts:
    """The newest states among the events, with those of a snapshot in the place of earlier ones."""
    found, open_texts = {} if found is None else found, OpenTexts()
    for event in events:
        if isinstance(event, State):
            before = open_texts.push(event)
            ended = isinstance(event, SourceSentence | Translation)
            assert not ended or event.text == (before.text if before is not None else "")
            found[key(event)] = event.text, event.steady, ended
    return {which: text for which, text in found.items() if text[0] or text[2]}


@given(streams(st.one_of(ENGLISH, CHINESE)), st.data())
def test_a_snapshot_and_what_follows_add_up_to_the_whole(stream, data):
    history = History(100)
    at = data.draw(st.integers(0, len(stream.events)))
    for event in stream.events[:at]:
        history.push(event)
    snapshot = history.events()
    assert texts(snapshot) == texts(stream.events[:at])
    assert texts([*snapshot, *stream.events[at:]]) == texts(stream.events)


@given(streams(st.one_of(ENGLISH, CHINESE)))
def test_a_reader_of_one_language_gets_that_and_the_source(stream):
    history = History(100)
    for event in stream.events:
        history.push(event)
    wanted = {which: text for which, text in texts(stream.events).items() if which[1] != "de"}
    assert texts(history.events("zh")) == wanted
    assert texts(event for event in stream.events if concerns(event, "zh")) == wanted


def test_only_the_newest_sentences_are_kept():
    history = History(2)
    for number in range(5):
        for event in [*spoken(number, "Yes."), *translated(number, ["是", "。"])]:
            history.push(event)
    assert {number for number, _ in texts(history.events())} == {3, 4}
    for event in translated(1, ["ja"], language="de"):  # of a slow translator
        history.push(event)
    assert {number for number, _ in texts(history.events())} == {3, 4}


def test_the_loss_of_a_language_and_the_end_are_told_to_late_readers():
    history = History(2)
    for event in (TranslationLost("de", "full"), EndOfInput(3.0)):
        history.push(event)
    assert history.events("zh") == [EndOfInput(3.0)]
    assert history.events() == [TranslationLost("de", "full"), EndOfInput(3.0)]


def test_a_pause_is_told_to_late_readers_until_it_ends():
    history = History(2)
    for event, told in ((Paused(3.0), [Paused(3.0)]), (Resumed(5.0), []), (Paused(7.0), [Paused(7.0)])):
        history.push(event)
        assert history.events("zh") == told


def test_finished_text_alone_is_corrected_and_only_before_the_end():
    history = History(1)
    old, new = Correction(0, "", "No."), Correction(1, "zh", "不。")
    for event in [
        *spoken(0, "Yes."),
        old,
        *spoken(1, "Yes."),
        TargetText(1, "zh", "是"),
        new,
        Correction(1, "de", "Nein."),
        old,
    ]:
        history.push(event)
    assert history.finished(0, "") is None
    assert history.finished(1, "zh") is None
    assert not any(isinstance(event, Correction) for event in history.events())
    history.push(end := Translation(1, "zh", "是。"))
    assert history.finished(1, "zh") == (end, None)
    for correction in (new, Correction(1, "zh", "对。")):
        history.push(correction)
        assert history.finished(1, "zh") == (end, correction)
        assert [event for event in history.events("zh") if isinstance(event, Correction)] == [correction]
    history.push(EndOfInput(9.0))
    assert history.finished(1, "zh") is None


@pytest.mark.parametrize(
    ("event", "language", "told"),
    [
        (Correction(0, "", "No."), "zh", True),
        (Correction(0, "zh", "不。"), "zh", True),
        (Correction(0, "zh", "不。"), "de", False),
        (Correction(0, "zh", "不。"), None, True),
        (TranslationLost("zh", "full"), "de", False),
        (Transcript(0, 0.0, 1.0, "Yes.", "en"), None, False),
        (Paused(1.0), "zh", True),
    ],
)
def test_readers_of_a_language_are_told_what_concerns_it(event, language, told):
    assert concerns(event, language) is told


def test_a_draft_that_was_withdrawn_is_not_told_to_late_readers():
    history = History(2)
    for event in (SourceText(0, "en", "Hm"), SourceText(0, "en", ""), SourceText(1, "en", "Yes")):
        history.push(event)
    assert history.events() == [SourceText(1, "en", "Yes")]


async def test_a_slow_reader_gets_all_anew_when_one_event_too_many_waits():
    history = History(9)
    feed = Feed(history, None, 2)
    told = [SourceText(number, "en", "Yes") for number in range(4)]
    feed.push(told[0])  # before the first snapshot, which would have it
    assert isinstance(await feed.take(), Snapshot)
    for event, resets in zip(told, (0, 0, 1, 1), strict=True):
        history.push(event)
        feed.push(event)
        assert feed.resets == resets
    assert await feed.take() == Snapshot(tuple(told))
    assert not feed.waiting
    feed.retarget(("zh", "de"))
    assert feed.waiting
    feed.push(told[0])
    assert [await feed.take() for _ in range(2)] == [Targets(("zh", "de")), told[0]]


def test_late_readers_are_told_of_speech_that_is_in_no_sentence():
    history = History(2)
    silence = Transcript(0, 0.0, 1.0, "", "en", rejected="silence")
    rejected = [Transcript(number, number, number + 1, "Mm.", "en", rejected="uncertain") for number in (1, 2, 3)]
    partly = Transcript(4, 5.0, 9.0, "Yes.", "en", missing=(MissingSpeech(6.0, 8.0, "empty"),))
    for event in (*rejected, silence, partly, Transcript(5, 9.0, 10.0, "No.", "en")):
        history.push(event)
    assert history.events("zh") == [rejected[-1], partly]


def test_a_snapshot_can_be_read_back_from_its_message():
    events = changes([*spoken(0, "Yes."), *translated(0, ["是", "。"])[-1:]])
    record = json.loads(snapshot_text(events))
    assert record["type"] == "snapshot"
    assert [read_event(one) for one in record["events"]] == events


@given(streams(st.one_of(ENGLISH, CHINESE)), st.integers(1, 6), st.data())
def test_a_slow_reader_ends_up_with_the_same_texts(stream, capacity, data):
    async def work() -> Texts:
        history = History(100)
        feed = Feed(history, None, capacity)
        found: Texts = {}
        told: list[PipelineEvent] = []

        def take(item: PipelineEvent | Snapshot | None) -> None:
            if isinstance(item, Snapshot):
                found.update(texts(told, found))
                told[:] = item.events
            elif item is not None:
                told.append(item)

        for event in stream.events:
            history.push(event)
            feed.push(event)
            for _ in range(data.draw(st.integers(0, 2))):
                if feed.waiting:
                    take(await feed.take())
        feed.end()
        while (item := await feed.take()) is not None:
            take(item)
        return texts(told, found)

    assert asyncio.run(work()) == texts(stream.events)


async def test_a_reader_whose_place_is_given_away_is_told_nothing_more():
    feed = Feed(History(9), None, 9)
    await feed.take()
    feed.push(SourceText(0, "en", "Yes"))
    feed.retarget(("zh", "de"))
    feed.displace()
    assert await feed.take() is None
    assert feed.failure is not None


async def test_of_a_text_that_waits_only_the_newest_is_taken():
    feed = Feed(History(9), "zh", 10)
    first = await feed.take()
    for event in (
        SourceText(0, "en", "Where"),
        TargetText(0, "zh", "哪"),
        TargetText(0, "de", "Wo"),
        SourceText(0, "en", "Where is", steady=5),
        TargetText(0, "zh", "哪里"),
    ):
        feed.push(event)
    feed.end()
    found = [first, *[await feed.take() for _ in range(3)]]
    assert found == [Snapshot(()), SourceText(0, "en", "Where is", steady=5), TargetText(0, "zh", "哪里"), None]
