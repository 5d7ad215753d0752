"""The microphone: what is said when there is none, and, on a virtual one, the whole way to subtitles."""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import srt

from pipeline.audio import microphone
from pipeline.audio.devices import list_devices
from pipeline.audio.microphone import Converter, Microphone, level_dbfs
from pipeline.bench.errors import edits, units
from pipeline.errors import DeviceError, UsageError
from pipeline.events import AudioLost, DeviceBack, DeviceLost, Paused, Resumed, Samples
from tests.audio.portaudio import FakePortAudio
from tests.conftest import HANG_S, PHRASES, read_wav, spoken_texts


def test_without_portaudio_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_portaudio(name: str, *args: Any, **kwargs: Any) -> Any:
        """Stands for a machine without libportaudio2, where importing sounddevice raises OSError."""
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return real_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", no_portaudio)
    with pytest.raises(DeviceError, match="apt-get install libportaudio2"):
        list_devices()
    with pytest.raises(DeviceError, match="apt-get install libportaudio2"):
        Microphone()


needs_microphone = pytest.mark.skipif(
    "VIRTUAL_MICROPHONE" not in os.environ, reason="no virtual microphone; .ci/run sets one up"
)
LOUD = np.full(16_000, 8_000, np.int16)


def plug_in(monkeypatch: pytest.MonkeyPatch, *devices: tuple[str, int, int], default: int = 0) -> FakePortAudio:
    fake = FakePortAudio(*devices, default=default)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    # A device that is away is looked for at once, and nobody waits for a clock.
    monkeypatch.setattr(microphone, "backoff_s", lambda attempt: 0.0)
    monkeypatch.setattr(microphone, "_POLL_S", 0.005)
    return fake


def heard(source: Microphone, samples: int) -> Samples:
    """At least so many samples."""
    parts: list[Samples] = []
    while sum(map(len, parts)) < samples:
        part = source.read()
        assert part is not None
        parts.append(part)
    return np.concatenate(parts)


def away_and_back(fake: FakePortAudio, source: Microphone) -> None:
    plugged = fake.plugged
    fake.unplug()
    while source.connected:
        source.read()
    fake.plugged = plugged
    while not source.connected:
        source.read()


def test_without_an_input_device_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch)
    assert list_devices() == []
    with pytest.raises(DeviceError, match="no audio input device was found"):
        Microphone()


def test_a_device_is_chosen_by_number_by_name_or_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(
        monkeypatch, ("Speakers", 0, 0), ("USB Mic: Audio (hw:1,0)", 1, 0), ("USB Mic 2", 1, 0), ("Monitor", 2, 0), default=2
    )  # fmt: skip
    assert [line[:5] for line in list_devices()] == ["    1", "*   2", "    3"]
    assert Microphone().name == "USB Mic 2"
    assert Microphone("1").name == Microphone("audio").name == Microphone("usb mic: AUDIO").name
    assert Microphone("USB Mic 2").name == "USB Mic 2"
    assert Microphone("monitor").name == "Monitor"
    with pytest.raises(UsageError, match=r"several input devices fit 'usb'; .*USB Mic: Audio.*; .*USB Mic 2"):
        Microphone("usb")
    for wrong in ("0", "7", "kazoo"):
        with pytest.raises(UsageError, match=f"no input device fits '{wrong}'; --list-devices shows these"):
            Microphone(wrong)


def test_without_a_default_device_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, ("Mic", 1, 0), default=-1)
    with pytest.raises(UsageError, match="no input device is the default one; --list-devices shows these"):
        Microphone()


@pytest.mark.parametrize(("channels", "rate"), [(1, 16_000), (1, 8_000), (2, 48_000), (6, 44_100), (8, 96_000)])
def test_a_device_is_recorded_as_it_can_be_and_heard_at_16_khz_mono(
    monkeypatch: pytest.MonkeyPatch, channels: int, rate: int
) -> None:
    fake = plug_in(monkeypatch, ("Array", channels, rate))
    source = Microphone()
    source.start()
    (stream,) = fake.streams
    assert (stream.channels, stream.samplerate) == (channels, rate)
    tone = np.rint(8_000 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)).astype(np.int16)
    stream.hear(np.repeat(tone[:, None], channels, axis=1))
    source.close()
    samples = heard(source, 15_990)
    assert source.read() is None
    assert abs(len(samples) - 16_000) <= 16
    spectrum = np.abs(np.fft.rfft(samples[:15_984]))
    assert np.argmax(spectrum) * 16_000 / 15_984 == pytest.approx(440, abs=2)
    assert level_dbfs(samples) == pytest.approx(level_dbfs(tone), abs=0.5)


def test_several_channels_are_averaged() -> None:
    frames = np.stack([np.full(320, 100), np.full(320, 301), np.full(320, -1)], axis=1).astype(np.int16)
    assert (Converter(3, 16_000).push(frames.tobytes()) == 133).all()


def test_the_level_is_that_of_what_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    source.start()
    fake.streams[0].hear(np.full(320, 32_767, np.int16))
    heard(source, 320)
    assert source.level_dbfs == pytest.approx(0.0, abs=0.01)
    fake.streams[0].hear(np.zeros(320, np.int16))
    heard(source, 320)
    assert source.level_dbfs == microphone.SILENCE_DBFS


def test_paused_it_hears_silence_of_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source, notices = Microphone(), []
    source.listen(notices.append)
    source.start()
    fake.streams[0].hear(LOUD)
    assert (heard(source, 16_000) == LOUD).all()
    source.pause()
    source.pause()
    fake.streams[0].hear(LOUD)
    source.resume()
    fake.streams[0].hear(LOUD)
    assert (heard(source, 32_000) == np.concatenate([0 * LOUD, LOUD])).all()
    assert notices == [Paused(1.0), Resumed(1.0)]


def test_unplugged_it_is_said_and_plugged_in_again_it_is_heard_under_its_new_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = plug_in(monkeypatch, ("USB Mic (hw:1,0)", 1, 16_000), ("Other", 1, 16_000))
    source, notices = Microphone("0"), []
    source.listen(notices.append)
    source.start()
    fake.streams[0].hear(LOUD)
    fake.unplug()
    silence = heard(source, 16_000 + 1_000)[16_000:]
    assert not silence.any()
    assert not source.connected
    for thread in threading.enumerate():
        if thread.name == "microphone closing":
            thread.join(60)
    assert fake.streams[0].closed
    fake.plugged = [("Other", 1, 16_000), ("Third", 2, 48_000), ("USB Mic (hw:3,0)", 2, 48_000)]
    while not source.connected:
        assert not heard(source, 1).any()
    assert fake.streams[-1].device == 2
    fake.streams[-1].hear(np.repeat(LOUD[:, None], 2, axis=1))
    assert heard(source, 3_000)[-1_000:].min() > 7_000
    lost, back = notices
    assert isinstance(lost, DeviceLost)
    assert (lost.at_s, lost.device) == (1.0, "USB Mic (hw:1,0)")
    assert isinstance(back, DeviceBack)
    assert back.device == "USB Mic (hw:3,0)"
    # The clock went on while it was away.
    assert back.at_s - lost.at_s == pytest.approx(back.away_s, abs=0.02)


def test_the_time_that_opening_it_again_takes_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    later_s = [0.0]
    monkeypatch.setattr(microphone, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later_s[0]))
    initialize = fake._initialize
    monkeypatch.setattr(fake, "_initialize", lambda: (later_s.append(later_s.pop() + 5.0), initialize()))
    source, notices = Microphone(), []
    source.listen(notices.append)
    source.start()
    away_and_back(fake, source)
    lost, back = notices
    assert back.away_s > 5
    assert back.at_s - lost.at_s == pytest.approx(back.away_s, abs=0.5)


def test_a_device_that_is_gone_is_said_though_it_does_not_close(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    monkeypatch.setattr(fake, "_terminate", lambda: pytest.fail("PortAudio was shut down under it"))
    source, notices, released = Microphone(), [], threading.Event()
    source.listen(notices.append)
    source.start()
    close = fake.streams[0].close
    monkeypatch.setattr(fake.streams[0], "close", lambda ignore_errors: (released.wait(HANG_S), close(ignore_errors)))
    fake.unplug()
    fake.plugged = [("Mic", 1, 16_000)]
    assert not heard(source, 1_000).any()
    assert [type(notice) for notice in notices] == [DeviceLost]
    monkeypatch.setattr(fake, "_terminate", lambda: None)
    released.set()
    while not source.connected:
        source.read()
    assert fake.streams[-1].active


def test_a_device_that_goes_on_but_delivers_nothing_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    monkeypatch.setattr(microphone, "_STALLED_S", 0.01)
    source, notices = Microphone(), []
    source.listen(notices.append)
    while len(notices) < 2:
        source.read()
    assert isinstance(notices[0], DeviceLost)
    assert "delivered nothing" in notices[0].reason
    assert isinstance(notices[1], DeviceBack)
    assert len(fake.streams) >= 2


def test_after_a_restart_of_portaudio_that_failed_it_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    source.start()
    started, initialize, failures, refused = [True], fake._initialize, [True, True], [False]

    def terminate() -> None:
        if len(fake.streams) == 1 and not started.pop():
            started.append(False)
            refused.append(True)
            assert len(refused) < 9, "PortAudio was not started again"
            raise fake.PortAudioError("PortAudio not initialized")

    def start() -> None:
        if failures and failures.pop():
            started.append(False)
            raise fake.PortAudioError("Unanticipated host error")
        started.append(True)
        initialize()

    monkeypatch.setattr(fake, "_terminate", terminate)
    monkeypatch.setattr(fake, "_initialize", start)
    away_and_back(fake, source)
    assert not failures
    assert fake.streams[-1].active


def test_an_app_with_streams_of_its_own_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    monkeypatch.setattr(fake, "_terminate", lambda: pytest.fail("PortAudio was shut down"))
    source = Microphone(rescan=False)
    source.start()
    away_and_back(fake, source)
    assert fake.streams[-1].active


def test_closing_ends_the_waiting_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    source.start()
    fake.unplug()
    while source.connected:
        source.read()
    monkeypatch.setattr(microphone, "_POLL_S", 600.0)  # nothing but the closing ends it in time
    last: list[Samples | None] = []
    waiting = threading.Thread(target=lambda: last.append(source.read()), daemon=True)
    waiting.start()
    source.close()
    waiting.join(60)
    assert last == [None]
    assert source.read() is None
    assert all(stream.closed for stream in fake.streams)


def test_closed_between_reads_or_in_one_it_is_released_though_nobody_reads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    source.start()
    fake.streams[0].hear(LOUD[:320])
    assert len(heard(source, 320)) == 320
    source.close()
    assert fake.streams[0].closed
    source = Microphone()
    source.start()
    waiting = threading.Thread(target=source.read, daemon=True)  # for a device that delivers nothing
    waiting.start()
    source.close()
    waiting.join(60)
    assert fake.streams[1].closed


def test_audio_that_the_device_lost_is_counted_and_said_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source, notices = Microphone(), []
    source.listen(notices.append)
    source.start()
    fake.streams[0].hear(LOUD[:8_000], overflow=True)
    heard(source, 8_000)
    assert source.overflows == 25
    assert [type(notice) for notice in notices] == [AudioLost]
    fake.streams[0].hear(LOUD, overflow=True)
    heard(source, 16_000)
    assert len(notices) == 2


def test_what_nobody_reads_is_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    source.start()
    for _ in range(61):
        fake.streams[0].hear(LOUD)
    assert source.backlog_s == 60
    assert source.overflows == 50


def test_a_device_that_does_not_open_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Microphone()
    fake.unplug()
    with pytest.raises(DeviceError, match=r"'Mic' does not open \(Device unavailable\); choose another with --device"):
        source.read()


def test_it_waits_longer_for_a_device_that_stays_away() -> None:
    waits = [microphone.backoff_s(attempt) for attempt in range(2_000)]
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 5.0]
    assert max(waits) == 5.0


@pytest.mark.microphone
@needs_microphone
def test_an_unknown_device_is_said_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no input device fits 'kazoo'; --list-devices shows these: .*pulse"):
        Microphone("kazoo")


Listening = Callable[..., subprocess.Popen[bytes]]


def pulseaudio(*command: str) -> str:
    return subprocess.run(["pactl", *command], check=True, capture_output=True, timeout=HANG_S).stdout.decode()


def plug_in_again(name: str) -> None:
    pulseaudio("load-module", "module-null-sink", f"sink_name={name}", "rate=16000", "channels=1")
    pulseaudio("set-default-source", f"{name}.monitor")


@pytest.fixture
def virtual_microphone() -> Iterator[str]:
    """Its name; a test that takes it away need not bring it back."""
    name = os.environ["VIRTUAL_MICROPHONE"]
    yield name
    if f"sink_name={name}" not in pulseaudio("list", "short", "modules"):
        plug_in_again(name)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    """Starts a run on the microphone and waits until it listens; none outlives its test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.live", "--mic", "--config", "demo", "--jsonl", str(tmp_path / "out.jsonl"),
             *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        started.append(process)
        watchdog = threading.Timer(120, process.kill)  # so that what is not said fails a test, and does not hang it
        watchdog.daemon = True
        watchdog.start()
        wait_for(process, "listening to")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def play(wav: Path) -> None:
    """Speak ``wav`` into the virtual microphone."""
    device = f"--device={os.environ['VIRTUAL_MICROPHONE']}"
    subprocess.run(["paplay", device, str(wav)], check=True, timeout=HANG_S)


def interrupted(process: subprocess.Popen[bytes]) -> bytes:
    """What the run showed when an interrupt has ended it well."""
    process.send_signal(signal.SIGINT)
    shown, error = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, error.decode()
    return shown


@pytest.mark.microphone
@needs_microphone
def test_speech_into_the_microphone_becomes_subtitles(listening: Listening, tmp_path: Path) -> None:
    """Plays the phrases into the virtual microphone that .ci/run has set up, and interrupts the run at their end."""
    process = listening("--srt", str(tmp_path / "out.srt"))
    play(PHRASES)
    shown = interrupted(process)
    said = spoken_texts()["phrases"]
    cues = list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))
    assert len(cues) == len(spoken_texts()["phrases"])
    assert all(any("\u4e00" <= c <= "\u9fff" for c in cue.content) for cue in cues)
    heard = units(" ".join(line[15:] for line in shown.decode().splitlines() if "–" in line), "en")
    reference = units(" ".join(said), "en")
    assert edits(reference, heard) / len(reference) < 0.35


def wait_for(process: subprocess.Popen[bytes], words: str) -> None:
    assert process.stderr is not None
    while words.encode() not in (line := process.stderr.readline()):
        assert line, f"the run ended before it said {words!r}"


def events_of(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.microphone
@needs_microphone
def test_a_source_that_vanishes_and_comes_back_is_heard_again(
    listening: Listening, virtual_microphone: str, tmp_path: Path
) -> None:
    process, name = listening(), virtual_microphone
    (module,) = [line.split("\t")[0] for line in pulseaudio("list", "short", "modules").splitlines() if name in line]
    pulseaudio("unload-module", module)
    wait_for(process, "is gone")
    plug_in_again(name)
    wait_for(process, "is back")
    play(PHRASES)
    interrupted(process)
    events = events_of(tmp_path)
    kinds = [event["type"] for event in events]
    assert kinds.index("device_lost") < kinds.index("device_back") < kinds.index("transcript")
    back = events[kinds.index("device_back")]
    assert len([k for k in kinds if k == "transcript"]) == len(spoken_texts()["phrases"])
    # The time that it was away counts, so that what follows has the times of the room.
    assert back["at_s"] == pytest.approx(back["away_s"] + events[kinds.index("device_lost")]["at_s"], abs=0.05)


@pytest.mark.microphone
@needs_microphone
def test_a_signal_pauses_and_resumes(listening: Listening, tmp_path: Path) -> None:
    process = listening()
    process.send_signal(signal.SIGUSR1)
    wait_for(process, "paused")
    with wave.open(str(tmp_path / "one.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(read_wav(PHRASES)[: 6 * 16_000].tobytes())
    play(tmp_path / "one.wav")
    process.send_signal(signal.SIGUSR1)
    wait_for(process, "listening again")
    interrupted(process)
    events = events_of(tmp_path)
    assert not [event for event in events if event["type"] == "transcript"]
    paused, resumed = (event for event in events if event["type"] in ("paused", "resumed"))
    assert (paused["type"], resumed["type"], events[-1]["type"]) == ("paused", "resumed", "end")
    assert resumed["at_s"] - paused["at_s"] > 5
