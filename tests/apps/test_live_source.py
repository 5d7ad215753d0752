"""A live source through the whole chain: its notices are printed, counted and written."""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Callable

import pytest

from pipeline import (
    AudioLost,
    DeviceBack,
    DeviceLost,
    EndOfInput,
    LoadChanged,
    PipelineConfig,
    PipelineEvent,
    SpeechTranslator,
    Translation,
)
from pipeline.apps import live, live_run
from pipeline.apps.live_run import LiveRun
from pipeline.config.resources import CONFIGS
from pipeline.core.notices import SourceNotice
from pipeline.core.source import AudioSource
from pipeline.errors import UsageError
from pipeline.events import Samples
from pipeline.media.audio.microphone import Microphone
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.jsonl import JsonlSink
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.media.audio.portaudio import FakePortAudio

NOTICES: list[SourceNotice] = [
    DeviceLost(1.0, "Mic", "it stopped"),
    DeviceBack(3.0, "Mic", 2.0),
    AudioLost(4.0, 0.0, "full"),
    AudioLost(6.5, 2.5, "there is room again"),
]


class Device:
    """Simulates a microphone that says the phrases as fast as it is read, with a notice before each second of them."""

    duration_s = None
    overflows = 0
    backlog_s = 3.5

    def __init__(self) -> None:
        self.chunks = [*read_wav(PHRASES)[: 16_000 * 9].reshape(-1, 1_600)]
        self.notices = list(NOTICES)
        self.notify: Callable[[SourceNotice], None] | None = None

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        self.notify = notify

    def read(self) -> Samples | None:
        if len(self.chunks) % 10 == 0 and self.notices and self.notify:
            self.notify(self.notices.pop(0))
        return self.chunks.pop(0) if self.chunks else None

    def close(self) -> None:
        self.chunks = []


@pytest.mark.slow
@pytest.mark.parametrize("room", [1, 256])
async def test_notices_of_a_live_source_reach_the_reader_and_the_counters(room, demo_config, demo_models):
    """Even if the queue is full, because the reader takes nothing until all notices have happened."""
    queues = dataclasses.replace(demo_config.queues, events=room)
    events: list[PipelineEvent] = []
    async with SpeechTranslator(dataclasses.replace(demo_config, queues=queues), demo_models) as translator:
        reading = translator.run(Device())
        events.append(await anext(reading))
        async with asyncio.timeout(HANG_S):
            while translator.stats.lost_s < 2.5:
                await asyncio.sleep(0)
        events.extend([event async for event in reading])
    stats = translator.stats
    # Ahead of everything still being translated.
    assert [event for event in events if not isinstance(event, LoadChanged)][:4] == NOTICES
    assert sum(isinstance(event, SourceNotice) for event in events) == 4
    assert isinstance(events[-1], EndOfInput)
    assert (stats.lost_s, stats.reconnections) == (2.5, 1)
    assert any(isinstance(event, Translation) for event in events)


@pytest.mark.parametrize(
    ("source", "paced", "is_live", "backlog_s"),
    [
        (Device, False, True, 3.5),
        (lambda: Recording(PHRASES), True, True, 0.0),
        (lambda: Recording(PHRASES), False, False, 0.0),
    ],
    ids=["device", "recording at its own pace", "recording"],
)
async def test_a_source_that_does_not_wait_is_live_and_its_backlog_is_lag(
    source, paced, is_live, backlog_s, demo_config, demo_models
):
    async with SpeechTranslator(demo_config, demo_models) as translator:
        reading = translator.run(source(), paced=paced)
        await anext(reading)
        assert translator.live == is_live
        assert translator.stats.backlog_s() == backlog_s
        await reading.aclose()


@pytest.mark.slow
def test_notices_are_in_the_event_file_and_printed(demo_config, demo_models, tmp_path, capsys):
    sink = JsonlSink(tmp_path / "out.jsonl", demo_config.subtitles)
    asyncio.run(LiveRun(Device(), demo_config, [sink], models=demo_models, live=True).run())
    sink.close()
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    found = [record for record in records if record["type"] in ("device_lost", "device_back", "audio_lost")]
    assert found == [
        {"type": kind, **dataclasses.asdict(notice)}
        for kind, notice in zip(["device_lost", "device_back", "audio_lost", "audio_lost"], NOTICES, strict=True)
    ]
    said = capsys.readouterr().err
    assert "[0:00:01] the input 'Mic' is gone: it stopped" in said
    assert "[0:00:06] 2.5 s of audio were lost: there is room again" in said


def test_microphone_audio_is_kept_while_the_stages_are_behind(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Mic", 1, 16_000)))

    def started(source: AudioSource, config: PipelineConfig, *_: object, **named: object) -> None:
        assert isinstance(source, Microphone)
        assert source is named["microphone"]
        raise UsageError(f"{source.limit_s:.0f} s are kept of {config.overload.backlog_s:.0f}")

    monkeypatch.setattr(live_run, "LiveRun", started)
    config = tmp_path / "short.toml"
    config.write_text((CONFIGS / "demo.toml").read_text() + "\n[overload]\nbacklog_s = 900.0\n")
    with pytest.raises(UsageError, match="900 s are kept of 900"):
        live.run(["--mic", "--config", str(config)])


@pytest.mark.parametrize(
    ("arguments", "drafter"),
    [
        ([str(PHRASES)], "tiny.en"),
        ([str(PHRASES), "--fast"], None),
        (["-", "--fast"], None),
        (["--mic", "--fast"], "tiny.en"),  # a microphone is live in any case
    ],
)
def test_a_run_that_is_not_live_loads_no_draft_model(arguments, drafter, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Mic", 1, 16_000)))
    found: list[str | None] = []

    def started(source: AudioSource, config: PipelineConfig, *_: object, **__: object) -> None:
        found.append(config.draft_model.model if config.draft_model is not None else None)
        raise UsageError("enough")

    monkeypatch.setattr(live_run, "LiveRun", started)
    config = tmp_path / "draft.toml"
    config.write_text((CONFIGS / "demo.toml").read_text() + '\n[asr.draft]\nmodel = "tiny.en"\n')
    with open(os.devnull, "rb") as nothing, pytest.raises(UsageError, match="enough"):
        monkeypatch.setattr(live, "standard_input", lambda: nothing)
        live.run([*arguments, "--config", str(config)])
    assert found == [drafter]
