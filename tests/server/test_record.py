"""Records of sessions: complete, private, and no reason for a session to end."""

import asyncio
import json
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import srt
import webvtt
from websockets.asyncio.client import ClientConnection

from pipeline import Models, PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import Correction, EndOfInput, SourceSentence, Translation, Word
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from pipeline.server.session_record import Record, check_folder
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.core.asr.scripted import Scripted
from tests.server.running import Texts, ask, final, finish, running, speak
from tests.streams import spoken as spoken_stream

SPEECH = read_wav(PHRASES)[:112_000]
EVENT = SourceSentence(0, "en", "Hello.", end_s=1.0, heard_s=1.0)


def spoken(config: PipelineConfig, models: Models, folder: Path | None) -> Texts:
    """The texts of a session that is recorded into a folder."""

    async def work() -> Texts:
        async with running(Service(config, models, record=folder)) as server, server.connect() as speaker:
            await ask(speaker, type="start")
            await speak(speaker, SPEECH)
            records = await finish(speaker)
            assert records[-1]["type"] == "end"
            return final(records)

    return asyncio.run(work())


@pytest.mark.slow
def test_the_record_has_all_texts(demo_config, demo_models, tmp_path):
    threads = set(threading.enumerate())
    said = spoken(demo_config, demo_models, tmp_path)
    assert len(said) >= 2
    for thread in set(threading.enumerate()) - threads:
        thread.join(HANG_S)
        assert not thread.is_alive()
    jsonl, subtitles, captions = sorted(tmp_path.iterdir())
    assert [path.name.split(".", 1)[1] for path in (jsonl, subtitles, captions)] == ["jsonl", "zh.srt", "zh.vtt"]
    records = [json.loads(line) for line in jsonl.read_text("utf-8").splitlines()]
    assert final(records) == said
    assert records[-1]["type"] == "end"
    translation = "".join(text for (_, language), text in sorted(said.items()) if language == "zh")
    for shown in (
        [cue.content for cue in srt.parse(subtitles.read_text("utf-8"))],
        [cue.text for cue in webvtt.read(str(captions)).captions],
    ):
        assert "".join("".join(shown).split()) == "".join(translation.split())


def test_a_full_disk_ends_the_record_and_not_the_session(demo_config, demo_models, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("pipeline.server.session.new_name", lambda: "x")
    (tmp_path / "x.jsonl").symlink_to("/dev/full")
    assert len(spoken(demo_config, demo_models, tmp_path)) >= 2
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]
    assert "the session goes on" in warnings[0]


async def test_all_are_told_when_the_record_has_ended(demo_config, demo_models, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.server.session.new_name", lambda: "x")
    monkeypatch.setattr("pipeline.server.websocket._STATUS_S", 0.01)
    (tmp_path / "x.jsonl").symlink_to("/dev/full")
    service = Service(demo_config, replace(demo_models, recognizer=Scripted()), record=tmp_path)
    async with running(service) as server, server.connect() as speaker, server.connect() as reader:
        session = (await ask(speaker, type="start"))["session"]
        assert (await ask(reader, type="watch", session=session))["recorded"]

        async def told(socket: ClientConnection, recorded: bool) -> None:
            """Read until a status says so."""
            while json.loads(await socket.recv()).get("recorded") is not recorded:
                pass

        for socket in (speaker, reader):
            await told(socket, True)
        await speak(speaker, SPEECH)
        for socket in (speaker, reader):
            await told(socket, False)


async def test_a_disk_that_does_not_answer_ends_the_record(tmp_path, caplog):
    os.mkfifo(tmp_path / "x.jsonl")  # opening it waits for a reader
    record = Record(tmp_path, "x", SubtitleRules(), ["zh"], limit_s=0.0)
    await record.write(EVENT)
    assert record.failed
    await record.write(EVENT)
    await record.close()
    os.close(os.open(tmp_path / "x.jsonl", os.O_RDONLY | os.O_NONBLOCK))  # lets the thread go on
    assert [record.getMessage() for record in caplog.records] == [
        "the record of session x ends here: the disk took longer than 0 s; the session goes on"
    ]


async def test_an_event_is_in_the_file_when_write_returns(tmp_path):
    record = Record(tmp_path, "x", SubtitleRules(), ["zh"])
    for events, event in enumerate([EVENT, EndOfInput(1.0)], 1):
        await record.write(event)
        assert len((tmp_path / "x.jsonl").read_text("utf-8").splitlines()) == 1 + events
    await record.close()


def test_the_folder_is_made_for_its_owner_alone(tmp_path):
    check_folder(tmp_path / "a" / "records")
    assert (tmp_path / "a" / "records").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write records into"):
        check_folder(tmp_path / "file")


async def test_sessions_of_one_second_have_different_names(demo_config, demo_models):
    limits = replace(ServerLimits(), max_sessions=20)
    async with running(Service(demo_config, demo_models, limits)) as server:
        sockets = [await server.connect() for _ in range(5)]
        for socket in sockets:
            await ask(socket, type="start")
        names = {session.name for session in server.service.sessions.values()}
        for socket in sockets:
            await socket.close()
    assert len(names) == 5


async def test_the_subtitles_of_an_added_language_are_in_order(tmp_path):
    record = Record(tmp_path, "x", SubtitleRules(), ["zh"])
    for number in range(3):
        for event in spoken_stream(number, "We meet.", number * 9.0, number * 9.0 + 3.0):
            await record.write(event)
    record.add("de")
    for number in (2, 0, 1):  # what was said last comes first
        await record.write(Translation(number, "de", f"Wort {number}."))
    await record.write(EndOfInput(30.0))
    await record.close()
    assert not record.failed
    cues = list(srt.parse((tmp_path / "x.de.srt").read_text("utf-8")))
    assert [(cue.content, cue.start.total_seconds()) for cue in cues] == [
        ("Wort 0.", 0.0),
        ("Wort 1.", 9.0),
        ("Wort 2.", 18.0),
    ]
    assert len(list(webvtt.read(str(tmp_path / "x.de.vtt")).captions)) == 3


async def test_a_record_of_nothing_has_no_subtitles(tmp_path):
    record = Record(tmp_path, "x", SubtitleRules(), ["zh"])
    record.add("de")
    await record.close()
    assert (record.failed, list(tmp_path.iterdir())) == (False, [])


@pytest.mark.parametrize(
    ("correction", "text", "timed", "speaker"),
    [
        (None, "Yes.", True, "Ann"),
        (Correction(0, "", "No."), "No.", False, "Ann"),
        (Correction(0, "", "Yes.", "Bob"), "Yes.", True, "Bob"),
        (Correction(0, "", "Yes.", ""), "Yes.", True, None),
        (Correction(0, "zh", "不。"), "Yes.", True, "Ann"),
    ],
)
async def test_a_corrected_sentence_keeps_what_was_not_corrected(correction, text, timed, speaker, tmp_path):
    record = Record(tmp_path, "x", SubtitleRules(), ["zh"])
    said = [replace(event, speaker="Ann") for event in spoken_stream(0, "Yes.", words=(Word(" Yes.", 0.1, 0.9),))]
    for event in [*said, Translation(0, "zh", "是。"), *([correction] if correction is not None else [])]:
        await record.write(event)
    sentence, translation = [event for event in record._corrected() if isinstance(event, SourceSentence | Translation)]
    await record.close()
    assert (sentence.text, bool(sentence.words), sentence.speaker) == (text, timed, speaker)
    assert translation.text == ("不。" if correction is not None and correction.language else "是。")
