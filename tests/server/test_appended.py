"""Committed text as it is appended, from any valid stream of events and for a reader of any pace."""

import asyncio
import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.captions.states import State
from pipeline.events import PipelineEvent, SourceSentence, SourceText, TargetText, Translation
from pipeline.languages.chinese import conversion
from pipeline.server.feed import AppendOnlyText, Feed, Snapshot
from pipeline.server.history import History
from tests.streams import spoken, streams
from tests.subtitles.strategies import CHINESE, ENGLISH


def pieces(text: AppendOnlyText, events: Iterable[PipelineEvent], language: str = "") -> list[str]:
    """What is appended to the source, or to one translation."""
    found = []
    for event in events:
        if isinstance(event, TargetText | Translation if language else SourceText | SourceSentence):
            assert isinstance(event, State)
            if not language or event.language == language:
                found.append(text.push(event))
    return found


@given(streams(st.one_of(ENGLISH, CHINESE)))
def test_the_pieces_add_up_to_the_final_text(stream):
    assert "".join(pieces(AppendOnlyText(), stream.events)) == " ".join(
        text for text in stream.sources.values() if text
    )
    zh = [text for (_, language), text in stream.translations.items() if language == "zh"]
    assert "".join(pieces(AppendOnlyText(), stream.events, "zh")) == "".join(zh)


@pytest.mark.parametrize(
    "text", ["她的头发很长。", "我们理发以后再去后面。", "皇后面条", "干燥的饼干", "请给我一个复制的答复", "一只面包"]
)
def test_text_is_converted_as_a_whole_wherever_it_is_committed(text):
    convert = conversion("Hant", "TW")
    for cut in range(1, len(text)):
        states = (
            TargetText(0, "zh", text[:cut], cut),
            TargetText(0, "zh", text, len(text)),
            Translation(0, "zh", text),
        )
        appended = AppendOnlyText()
        assert "".join(appended.push(state, convert) for state in states) == convert(text)


@given(streams(ENGLISH), st.data())
def test_a_reader_that_is_slow_gets_each_text_once(stream, data):
    async def work() -> str:
        history = History(100)
        feed, text = Feed(history, None, data.draw(st.integers(1, 4))), AppendOnlyText()
        found = []

        async def read() -> None:
            item = await feed.take()
            assert item is not None
            found.extend(pieces(text, item.events if isinstance(item, Snapshot) else [item]))

        for event in stream.events:
            history.push(event)
            feed.push(event)
            while feed.waiting and data.draw(st.booleans()):
                await read()
        while feed.waiting:
            await read()
        return "".join(found)

    assert asyncio.run(work()) == " ".join(text for text in stream.sources.values() if text)


def test_text_comes_when_it_is_committed_and_sentences_are_set_apart():
    text = AppendOnlyText()
    assert text.push(SourceText(0, "en", "Thank you fo", committed=5)) == "Thank"
    assert text.push(SourceText(0, "en", "Thank you all.", committed=14)) == " you all."
    assert text.push(SourceSentence(0, "en", "Thank you all.", 0.0, 1.0)) == ""
    assert pieces(text, spoken(1, "Bye.")) == [" Bye.", ""]
    assert pieces(text, spoken(2, "再见。", language="zh")) == ["再见。", ""]


def test_what_is_kept_does_not_grow_with_the_session():
    text = AppendOnlyText()
    text.push(Translation(1_000, "pt", "Um."))
    before = len(pickle.dumps(text))
    for number in range(1_001, 2_000):
        text.push(Translation(number, "pt", "Um."))
    assert len(pickle.dumps(text)) == before
    assert text.push(Translation(1_500, "pt", "Um.")) == ""
