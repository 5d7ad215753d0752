"""docs/events.md: its example lines are what the JSONL sink writes, its code runs, and it names every event and field."""

import asyncio
import dataclasses
import json
import re
import typing

import pytest

import pipeline
from pipeline import SpeechTranslator
from pipeline.core.captions.changes import ChangeEvent
from pipeline.events import EndOfInput
from pipeline.media.sinks.jsonl import VERSION, line, read_event
from pipeline.media.subtitles.cues import Cue
from tests.conftest import EXAMPLES, ROOT, read_wav, spoken_texts

PAGE = (ROOT / "docs" / "events.md").read_text("utf-8")
LINES = [text for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) for text in block.splitlines()]
HEADER = {"type": "events", "version": VERSION}


def class_of(kind):
    """The class of a line's ``type``."""
    others = {"end": EndOfInput, "cue": Cue}
    return others.get(kind) or getattr(pipeline, kind.title().replace("_", ""))


def value_of(record):
    """The event or cue of a line."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items() if key != "type"}
    return read_event(record) or class_of(record["type"])(**values)


@pytest.mark.parametrize("text", LINES)
def test_an_example_line_is_what_the_sink_writes(text):
    record = json.loads(text)
    if record["type"] == "events":
        assert record == HEADER
    else:
        assert line(value_of(record)) == text + "\n"


def test_every_event_has_an_example_and_a_description_of_its_fields():
    shown = {json.loads(text)["type"] for text in LINES} - {"events"}
    assert {class_of(kind) for kind in shown} == {*typing.get_args(ChangeEvent), Cue}
    sections = {part.split("\n")[0]: part for part in PAGE.split("\n### ")}
    for kind in shown:
        described = sections.get(kind) or sections["Notices"]
        named = set(re.findall(r"`(\w+)`", described))
        fields = {field.name for field in dataclasses.fields(class_of(kind))}
        if kind == "transcript":
            fields -= {"words", "turns"}  # in its sentences' lines
        assert fields <= named, kind


@pytest.mark.slow
async def test_the_code_of_the_page_shows_every_text(demo_config, demo_models):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    drawn = {}
    kept = {}
    names = {
        "draw": lambda sentence, language, steady, draft: drawn.update({(sentence, language): steady + draft}),
        "keep": lambda sentence, language, text: kept.update({(sentence, language): text}),
    }
    exec(compile(code, "docs/events.md", "exec"), names)

    async def feed(translator):
        await translator.feed(read_wav(EXAMPLES / "meeting.wav"))
        await translator.end()

    async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.TaskGroup() as group:
        group.create_task(feed(translator))
        await names["show"](translator)
    assert drawn == kept
    assert set(kept) == {
        (sentence, language) for sentence in range(len(spoken_texts()["meeting"])) for language in ("en", "zh")
    }
