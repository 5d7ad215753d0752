"""A speaker corrects finished text: all readers get it, late ones too, and the record has it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import srt

from pipeline.core.captions.masking import Masking
from pipeline.events import Correction, EndOfInput, PipelineEvent, Translation
from pipeline.media.sinks.jsonl import read_event
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.server.corrections import Corrections
from pipeline.server.history import History
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import Mask, ProtocolError
from pipeline.server.service import Service
from pipeline.server.session_record import Record
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import ask, finish, heard, rest, running, say, speak
from tests.streams import spoken, translated

SPEECH = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)]


async def answered(socket, **message):
    """Send a correction; the event or the refusal that follows."""
    await say(socket, type="correct", **message)
    while (record := await heard(socket))["type"] not in ("correction", "not_corrected"):
        pass
    return record


async def test_readers_and_the_record_get_a_correction(demo_config, demo_models, tmp_path):
    service = Service(demo_config, demo_models, record=tmp_path)
    zh = {"sentence": 0, "language": "zh", "text": "更正\u2028后的 第一句。"}
    told = {"type": "correction", **zh, "text": "更正 后的 第一句。"}
    async with running(service) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start")
        await ask(reader, type="watch", session=started["session"], language="zh")
        await speak(speaker, SPEECH)
        while (await heard(speaker))["type"] != "translation":
            pass
        assert await answered(speaker, **zh) == told
        said = {"type": "correction", "sentence": 0, "text": "What was said."}
        assert await answered(speaker, sentence=0, text="What was said.") == said
        async with server.connect() as late:
            await ask(late, type="watch", session=started["session"], language="zh")
            snapshot = await heard(late)
        assert [event for event in snapshot["events"] if event["type"] == "correction"] == [said, told]
        await finish(speaker)
        assert [event for event in await rest(reader) if event["type"] == "correction"] == [told, said]
    records = [json.loads(line) for line in next(tmp_path.glob("*.jsonl")).read_text("utf-8").splitlines()]
    assert told in records
    assert records[-1]["type"] == "end"
    assert isinstance(read_event(told), Correction)
    cues = list(srt.parse(next(tmp_path.glob("*.zh.srt")).read_text("utf-8")))
    assert cues[0].content == told["text"]
    assert len(cues) > 1
    assert told["text"] in next(tmp_path.glob("*.zh.vtt")).read_text("utf-8")
    assert len(list(tmp_path.iterdir())) == 3


async def test_what_cannot_be_corrected_is_said_and_the_session_goes_on(new_service):
    async with running(new_service(corrections_a_minute=2)) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        await speak(speaker, SPEECH)
        while (await heard(speaker))["type"] != "translation":
            pass
        for message, code, words in [
            ({"sentence": 99, "text": "No."}, "no-line", "sentence 99 has no finished text"),
            ({"sentence": 0, "text": "Nein.", "language": "de\ud800"}, "no-line", 'finished text in "de'),
            ({"sentence": 0, "text": " \n"}, "bad-correction", "0 characters; it must have 1 to 1000"),
            ({"sentence": 0, "text": "a" * 1001}, "bad-correction", "1001 characters"),
        ]:
            refused = await answered(speaker, **message)
            assert (refused["type"], refused["sentence"], refused["code"]) == (
                "not_corrected",
                message["sentence"],
                code,
            )
            assert words in refused["message"]
        assert (await answered(speaker, sentence=0, text="Yes."))["type"] == "correction"
        assert (await answered(speaker, sentence=0, text="Yes!"))["type"] == "correction"
        assert (await answered(speaker, sentence=0, text="Yes?"))["code"] == "too-many"
        async with server.connect() as reader:
            await ask(reader, type="watch", session=started["session"])
            await say(reader, type="correct", sentence=0, text="By a reader.")
            records = await rest(reader)
            assert records[-1]["code"] == "bad-message"
        ended = await finish(speaker)
        assert ended[-1]["type"] == "end"
        assert not [record for record in ended if record["type"] == "correction"]


def test_only_finished_text_that_is_kept_can_be_corrected():
    history = History(2)
    for number in range(3):
        for event in [*spoken(number, "Yes."), *translated(number, ["是", "。"])[: 3 - number]]:
            history.push(event)
    assert [history.finished(number, "") is not None for number in range(4)] == [False, True, True, False]
    assert not [number for number in range(4) if history.finished(number, "zh")]
    end = Translation(1, "zh", "是。")
    history.push(end)
    assert history.finished(1, "zh") == (end, None)
    history.push(Correction(1, "zh", "对。"))
    assert history.finished(1, "zh") == (end, Correction(1, "zh", "对。"))
    history.push(EndOfInput(1.0))
    assert not history.finished(1, "zh")


def stream(*corrected: int) -> list[PipelineEvent]:
    """A talk; the named sentences are as somebody corrects them later."""
    events: list[PipelineEvent] = []
    for number in range(8):
        text = "我们明天早上在老车站的大厅里见面，然后一起坐火车去北京看望朋友和家人，" * 2 + f"第{number}次。"
        text = f"第{number}句。" if number in corrected else text
        times = number * 9.0, number * 9.0 + 8.0
        events += [*spoken(number, "We meet tomorrow.", *times), *translated(number, text)]
    return [*events, EndOfInput(80.0)]


def files(folder: Path, events: Sequence[PipelineEvent], **rules: bool) -> dict[str, str]:
    """The files of a session with these events."""
    folder.mkdir()
    asyncio.run(write(folder, events, SubtitleRules(**rules)))
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


async def write(folder: Path, events: Sequence[PipelineEvent], rules: SubtitleRules) -> None:
    record = Record(folder, "x", rules, ["zh"])
    for event in events:
        await record.write(event)
    await record.close()
    assert not record.failed


@pytest.mark.slow
def test_subtitles_are_those_of_the_corrected_text(tmp_path):
    *events, end = stream()
    corrections = [Correction(2, "zh", "错。"), Correction(5, "zh", "第5句。"), Correction(2, "zh", "第2句。")]
    found = files(tmp_path / "corrected", [*events, *corrections, Correction(3, "", "We met."), end])
    wanted = files(tmp_path / "wanted", stream(2, 5))
    before = files(tmp_path / "before", stream())
    assert sorted(found) == ["x.jsonl", "x.zh.srt", "x.zh.vtt"]
    for name in ("x.zh.srt", "x.zh.vtt"):
        assert found[name] == wanted[name] != before[name]


def test_bilingual_subtitles_have_the_corrected_source(tmp_path):
    events = [*spoken(0, "Weak meat."), *translated(0, "见面。"), Correction(0, "", "We meet."), EndOfInput(2.0)]
    srt_file = files(tmp_path / "bilingual", events, bilingual=True)["x.zh.srt"]
    assert "We meet." in srt_file
    assert "Weak meat." not in srt_file


def test_a_session_has_a_limit_of_masked_words(monkeypatch):
    monkeypatch.setattr("pipeline.server.corrections._MOST_MASKS", 2)
    history, masking = History(10), Masking()
    for event in spoken(0, "Anna met Berta and Clara."):
        history.push(event)
    corrections = Corrections(ServerLimits(), history, masking, lambda: 0.0)
    assert [corrections.checked(Mask(0, name)).text for name in ("Anna", "Berta")] == [
        "A*** met Berta and Clara.",
        "A*** met B**** and Clara.",
    ]
    with pytest.raises(ProtocolError, match="2 words of this session are masked"):
        corrections.checked(Mask(0, "Clara"))
    assert masking.text("Clara", "en") == "Clara"
