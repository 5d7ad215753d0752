"""Capture: choosing a device, recording, losing and reopening it, and lost audio."""

import builtins
import logging
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.core.notices import AudioLost, DeviceBack, DeviceLost, InputLevel, Paused, Resumed
from pipeline.errors import DeviceError, UsageError
from pipeline.events import Samples
from pipeline.media.audio import capture
from pipeline.media.audio.capture import Capture, Converter, DeviceClock
from pipeline.media.audio.devices import AudioDevice, list_devices, settings_for
from pipeline.media.audio.level import SILENCE_DBFS, level_dbfs
from tests.conftest import HANG_S
from tests.media.audio.portaudio import FakePortAudio, Talkative, all_but_levels


def test_without_portaudio_the_error_says_how_to_install_it(monkeypatch):
    real_import = builtins.__import__

    def no_portaudio(name: str, *args: Any, **kwargs: Any) -> Any:
        """Replaces the import on a machine without libportaudio2, where importing sounddevice raises OSError."""
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return real_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", no_portaudio)
    with pytest.raises(DeviceError, match="apt-get install libportaudio2"):
        list_devices()
    with pytest.raises(DeviceError, match="apt-get install libportaudio2"):
        Capture()


LOUD = np.full(16_000, 8_000, np.int16)


def plug_in(
    monkeypatch: pytest.MonkeyPatch,
    *devices: tuple[str, int, int],
    default: int = 0,
    kind: type[FakePortAudio] = FakePortAudio,
) -> FakePortAudio:
    fake = kind(*devices, default=default)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    # Try to reopen a lost device at once, and poll often.
    monkeypatch.setattr(capture, "backoff_s", lambda attempt: 0.0)
    monkeypatch.setattr(capture, "_POLL_S", 0.005)
    return fake


def begun(
    monkeypatch: pytest.MonkeyPatch, device: tuple[str, int, int] = ("Mic", 1, 16_000)
) -> tuple[FakePortAudio, Capture, list[Any]]:
    """The only device, its started capture, and the notices of that."""
    fake, notices = plug_in(monkeypatch, device), list[Any]()
    source = Capture()
    source.listen(all_but_levels(notices.append))
    source.start()
    return fake, source, notices


def heard(source: Capture, samples: int) -> Samples:
    """Read at least ``samples`` samples."""
    parts: list[Samples] = []
    while sum(map(len, parts)) < samples:
        part = source.read()
        assert part is not None
        parts.append(part)
    return np.concatenate(parts)


def rest(source: Capture) -> Samples:
    """Read until the end."""
    parts = [np.zeros(0, np.int16)]
    while (part := source.read()) is not None:
        parts.append(part)
    return np.concatenate(parts)


def away_and_back(fake: FakePortAudio, source: Capture) -> None:
    plugged = fake.plugged
    fake.unplug()
    while source.connected:
        source.read()
    fake.plugged = plugged
    while not source.connected:
        source.read()


def test_the_error_without_an_input_device_says_so(monkeypatch):
    plug_in(monkeypatch)
    assert list_devices() == []
    with pytest.raises(DeviceError, match="no audio input device was found"):
        Capture()


def test_a_device_is_chosen_by_number_by_name_or_by_default(monkeypatch):
    plug_in(
        monkeypatch, ("Speakers", 0, 0), ("USB Mic: Audio (hw:1,0)", 1, 0), ("USB Mic 2", 1, 0), ("Monitor", 2, 0), default=2
    )  # fmt: skip
    assert [line[:5] for line in list_devices()] == ["    1", "*   2", "    3"]
    assert Capture().name == "USB Mic 2"
    assert Capture("1").name == Capture("audio").name == Capture("usb mic: AUDIO").name
    assert Capture("USB Mic 2").name == "USB Mic 2"
    assert Capture("monitor").name == "Monitor"
    with pytest.raises(UsageError, match=r"several input devices match 'usb'; .*USB Mic: Audio.*; .*USB Mic 2"):
        Capture("usb")
    for wrong in ("0", "7", "kazoo"):
        with pytest.raises(UsageError, match=f"no input device matches '{wrong}'; --list-devices shows these"):
            Capture(wrong)


def test_of_devices_of_one_name_the_first_is_taken(monkeypatch):
    plug_in(monkeypatch, ("Mic 2", 1, 0), ("Mic", 1, 0), ("Mic", 2, 0))
    assert Capture("mic")._device.index == 1


def test_the_error_without_a_default_device_lists_the_devices(monkeypatch):
    plug_in(monkeypatch, ("Mic", 1, 0), default=-1)
    with pytest.raises(UsageError, match="there is no default input device; --list-devices shows these"):
        Capture()


@pytest.mark.parametrize(("channels", "rate"), [(1, 16_000), (1, 8_000), (2, 48_000), (6, 44_100), (8, 96_000)])
def test_a_device_records_in_its_own_format_and_delivers_mono_at_16_khz(monkeypatch, channels, rate):
    fake = plug_in(monkeypatch, ("Array", channels, rate))
    source = Capture()
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


def test_of_a_device_with_many_channels_two_are_recorded_if_it_has_no_mono(monkeypatch):
    fake = plug_in(monkeypatch, ("Mixer", 8, 0))

    def check(device: int, channels: int, dtype: str, samplerate: int) -> None:
        if channels < 2:
            raise fake.PortAudioError("Invalid number of channels")

    monkeypatch.setattr(fake, "check_input_settings", check)
    assert settings_for(AudioDevice(0, "Mixer", 8, 48_000, default=True), "input", 16_000) == (2, 48_000)


def test_several_channels_are_averaged():
    frames = np.stack([np.full(320, 100), np.full(320, 301), np.full(320, -1)], axis=1).astype(np.int16)
    assert (Converter(3, 16_000).push(frames.tobytes()) == 133).all()


def test_the_level_is_that_of_the_newest_block(monkeypatch):
    fake, source, _ = begun(monkeypatch)
    fake.streams[0].hear(np.full(320, 32_767, np.int16))
    heard(source, 320)
    assert source.level_dbfs == pytest.approx(0.0, abs=0.01)
    fake.streams[0].hear(np.zeros(320, np.int16))
    heard(source, 320)
    assert source.level_dbfs == SILENCE_DBFS


def test_pausing_delivers_silence_of_the_same_length(monkeypatch):
    fake, source, notices = begun(monkeypatch)
    fake.streams[0].hear(LOUD)
    assert (heard(source, 16_000) == LOUD).all()
    source.pause()
    source.pause()
    fake.streams[0].hear(LOUD)
    source.resume()
    fake.streams[0].hear(LOUD)
    assert (heard(source, 32_000) == np.concatenate([0 * LOUD, LOUD])).all()
    assert notices == [Paused(1.0), Resumed(1.0)]


def test_unplugging_is_reported_and_the_device_is_reopened_under_its_new_number(monkeypatch):
    fake = plug_in(monkeypatch, ("USB Mic (hw:1,0)", 1, 16_000), ("Other", 1, 16_000))
    source, notices = Capture("0"), []
    source.listen(all_but_levels(notices.append))
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
    # Time went on while the device was lost.
    assert back.at_s - lost.at_s == pytest.approx(back.away_s, abs=0.02)


def test_the_silence_includes_the_time_of_reopening(monkeypatch):
    fake, source, notices = begun(monkeypatch)
    later_s = [0.0]
    monkeypatch.setattr(capture, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later_s[0]))
    initialize = fake._initialize
    monkeypatch.setattr(fake, "_initialize", lambda: (later_s.append(later_s.pop() + 5.0), initialize()))
    away_and_back(fake, source)
    lost, back = notices
    assert back.away_s > 5
    assert back.at_s - lost.at_s == pytest.approx(back.away_s, abs=0.5)


def test_a_lost_device_is_reported_even_if_closing_it_hangs(monkeypatch):
    fake, source, notices = begun(monkeypatch)
    monkeypatch.setattr(fake, "_terminate", lambda: pytest.fail("PortAudio was shut down under it"))
    released = threading.Event()
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


def test_an_active_device_that_delivers_nothing_is_reopened(monkeypatch):
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    monkeypatch.setattr(capture, "_STALLED_S", 0.01)
    source, notices = Capture(), []
    source.listen(all_but_levels(notices.append))
    while len(notices) < 2:
        source.read()
    assert isinstance(notices[0], DeviceLost)
    assert "delivered nothing" in notices[0].reason
    assert isinstance(notices[1], DeviceBack)
    assert len(fake.streams) >= 2


def test_a_failed_restart_of_portaudio_is_repeated(monkeypatch):
    fake, source, _ = begun(monkeypatch)
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


def test_without_rescan_portaudio_is_not_restarted(monkeypatch):
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    monkeypatch.setattr(fake, "_terminate", lambda: pytest.fail("PortAudio was shut down"))
    source = Capture(rescan=False)
    source.start()
    away_and_back(fake, source)
    assert fake.streams[-1].active


def test_close_ends_the_wait_for_a_device(monkeypatch):
    fake, source, _ = begun(monkeypatch)
    fake.unplug()
    while source.connected:
        source.read()
    monkeypatch.setattr(capture, "_POLL_S", 600.0)  # only close() can end the wait in time
    last: list[Samples | None] = []
    waiting = threading.Thread(target=lambda: last.append(source.read()), daemon=True)
    waiting.start()
    source.close()
    waiting.join(60)
    assert last == [None]
    assert source.read() is None
    assert all(stream.closed for stream in fake.streams)


def test_close_releases_the_device_without_another_read(monkeypatch):
    fake, source, _ = begun(monkeypatch)
    fake.streams[0].hear(LOUD[:320])
    assert len(heard(source, 320)) == 320
    source.close()
    assert fake.streams[0].closed
    source = Capture()
    source.start()
    waiting = threading.Thread(target=source.read, daemon=True)  # the device delivers nothing
    waiting.start()
    source.close()
    waiting.join(60)
    assert fake.streams[1].closed


def test_losses_of_the_device_are_counted_and_reported_once_a_second(monkeypatch):
    fake, source, notices = begun(monkeypatch)
    fake.streams[0].hear(LOUD[:8_000], overflow=True)
    heard(source, 8_000)
    assert source.overflows == 25
    assert notices == [AudioLost(0.0, 0.0, "Mic was not read in time")]
    fake.streams[0].hear(LOUD, overflow=True)
    heard(source, 16_000)
    assert len(notices) == 2
    source.close()
    assert source.read() is None
    assert len(notices) == 3  # the last loss is reported at the end


def test_losses_within_a_second_are_reported_as_one_with_their_sum(monkeypatch):
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    now_s = [0.0]
    monkeypatch.setattr(capture, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    source, notices = Capture(), []
    source.listen(all_but_levels(notices.append))
    source.start()
    fake.streams[0].hear(LOUD[:320])
    for _ in range(3):
        now_s[0] += 0.3
        fake.streams[0].hear(LOUD[:320], overflow=True, lost_s=0.3)
    source.close()
    rest(source)
    assert [round(notice.lost_s, 3) for notice in notices] == [0.3, 0.6]


def test_the_default_device_is_whichever_is_the_default_when_it_is_reopened(monkeypatch):
    fake, source, _ = begun(monkeypatch)
    fake.unplug()
    while source.connected:
        source.read()
    fake.plugged = [("Other", 1, 16_000)]
    for _ in range(100):
        if not source.connected:
            source.read()
    assert (source.connected, source.name) == (True, "Other")


def test_the_silence_of_a_pause_is_not_taken_for_a_silent_device(monkeypatch):
    fake, source, _ = begun(monkeypatch)
    notices: list[Any] = []
    source.listen(notices.append)
    source.pause()
    fake.streams[0].hear(np.tile(LOUD, 3))
    heard(source, 48_000)
    source.resume()
    fake.streams[0].hear(np.tile(LOUD, 3))
    heard(source, 48_000)
    assert [notice.silent for notice in notices if isinstance(notice, InputLevel)] == [False]


def test_attempts_to_reopen_a_device_become_rarer(monkeypatch):
    monkeypatch.setattr(capture, "time", SimpleNamespace(monotonic=lambda: 100.0))
    absence, due_s = capture._Absence(99.0), []
    for _ in range(3):
        due_s.append(absence.next_try_at)
        absence.tried()
    assert due_s == [100.5, 101.0, 102.0]


@pytest.mark.parametrize(("channels", "rate"), [(1, 16_000), (2, 48_000)])
def test_a_lost_device_is_replaced_by_silence_by_its_clock(monkeypatch, channels, rate):
    fake = plug_in(monkeypatch, ("Mic", channels, rate))
    now_s = [0.0]
    monkeypatch.setattr(capture, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    source, notices = Capture(), []
    source.listen(all_but_levels(notices.append))
    source.start()
    loud = np.full((rate, channels), 8_000, np.int16)
    fake.streams[0].hear(loud)
    now_s[0] += 2.5
    fake.streams[0].hear(loud[: rate // 50], overflow=True, lost_s=2.5)
    fake.streams[0].hear(loud)
    source.close()
    samples = rest(source)
    assert len(samples) == pytest.approx(4.52 * 16_000, abs=16)
    silent = np.flatnonzero(np.abs(samples) < 1_000)
    assert (silent[0], silent[-1]) == pytest.approx((16_000, 3.5 * 16_000), abs=40)
    assert len(silent) == pytest.approx(2.5 * 16_000, abs=80)
    (notice,) = notices
    assert notice.at_s == pytest.approx(1.0, abs=0.01)
    assert notice.lost_s == pytest.approx(2.5, abs=0.001)


def test_a_loss_is_reported_without_a_length_if_the_device_has_no_clock(monkeypatch):
    fake, source, notices = begun(monkeypatch)
    fake.streams[0].hear(LOUD, says_when=False)
    fake.streams[0].hear(LOUD, overflow=True, lost_s=2.5, says_when=False)
    source.close()
    samples = rest(source)
    assert len(samples) == 32_000
    assert (samples == 8_000).all()
    assert [notice.lost_s for notice in notices] == [0.0, 0.0]


BLOCK_S = 0.02


def lost(blocks: list[tuple[float, bool]], passes_s: float = BLOCK_S) -> list[float]:
    """The losses before each (recording time, overflow), for blocks of 20 ms that arrive every ``passes_s``."""
    clock = DeviceClock()
    return [
        round(clock.block(recorded_s, BLOCK_S, 50 + passes_s * number, overflow=overflow), 6)
        for number, (recorded_s, overflow) in enumerate(blocks)
    ]


def test_the_jitter_of_a_devices_clock_is_no_loss():
    jitter = (0.0, 0.005, -0.004, 0.003, -0.005, 0.0, 0.004)
    regular = [(10 + BLOCK_S * i + j, False) for i, j in enumerate(jitter)]
    assert lost(regular) == [0.0] * 7
    # If every block has an overflow, the total loss is at most the range of the jitter.
    marked = [regular[0], *((10 + BLOCK_S * (i + 1) + jitter[i % 7], True) for i in range(700))]
    assert sum(lost(marked)) <= 0.01


def test_a_loss_is_measured_from_the_expected_time_of_the_next_block():
    assert lost([(10.0, False), (10.02, False), (10.54, True), (10.56, False)]) == [0.0, 0.0, 0.5, 0.0]
    assert lost([(10.0, False), (10.52, True), (11.04, True)]) == [0.0, 0.5, 0.5]
    assert lost([(10.0, True), (10.02, True)]) == [0.0, 0.0]  # there is no expected time for the first block


@pytest.mark.parametrize("wrong_s", [0.0, 9.0, -1.0, 500.0])
def test_implausible_times_are_ignored(wrong_s):
    assert lost([(10.0, False), (wrong_s, True)]) == [0.0, 0.0]


def test_a_loss_is_no_longer_than_the_time_that_has_passed():
    blocks = [(10.0, False), (13.0, True)]
    assert lost(blocks, passes_s=3.0) == [0.0, 2.98]
    assert lost(blocks, passes_s=0.02) == [0.0, 0.0]


@pytest.mark.parametrize(("channels", "rate"), [(1, 16_000), (2, 48_000)])
def test_without_a_reader_memory_is_bounded_and_losses_become_silence(monkeypatch, channels, rate):
    fake, source, notices = begun(monkeypatch, ("Mic", channels, rate))
    loud = np.full((rate, channels), 8_000, np.int16)
    for _ in range(14):
        fake.streams[0].hear(loud)
    assert source.backlog_s == 10
    assert source.overflows == 200
    first = heard(source, 5 * 16_000 - 16)
    fake.streams[0].hear(loud)
    source.close()
    samples = np.concatenate([first, rest(source)])
    assert len(samples) == pytest.approx(15 * 16_000, abs=16)
    silent = np.flatnonzero(np.abs(samples) < 1_000)
    assert (silent[0], silent[-1]) == pytest.approx((10 * 16_000, 14 * 16_000), abs=40)
    assert len(silent) == pytest.approx(4 * 16_000, abs=80)
    (notice,) = notices
    assert notice == AudioLost(notice.at_s, 4.0, "this program was too busy to read it")
    assert notice.at_s == pytest.approx(10, abs=0.01)


def test_the_error_for_a_device_that_cannot_be_opened_names_it(monkeypatch):
    fake = plug_in(monkeypatch, ("Mic", 1, 16_000))
    source = Capture()
    fake.unplug()
    with pytest.raises(
        DeviceError, match=r"'Mic' cannot be opened \(Device unavailable\); choose another with --device"
    ):
        source.read()


def test_the_wait_between_attempts_grows():
    waits = [capture.backoff_s(attempt) for attempt in range(2_000)]
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 5.0]
    assert max(waits) == 5.0


def test_messages_of_the_audio_library_are_logged(monkeypatch, capfd, caplog):
    """Also when a device that was lost is opened again, while subtitles are on the screen."""
    fake = plug_in(monkeypatch, ("USB Mic", 1, 16_000), kind=Talkative)
    capfd.readouterr()
    caplog.set_level(logging.DEBUG, "pipeline")
    source = Capture()
    source.start()
    fake.unplug()
    fake.plugged = [("USB Mic", 1, 16_000)]
    while len(fake.streams) < 2:
        source.read()
    source.close()
    assert capfd.readouterr().err == ""
    assert [(record.levelname, record.message.partition(":")[0]) for record in caplog.records] == [
        ("DEBUG", "jack server is not running"),
        ("DEBUG", "ALSA lib pcm.c"),
        ("DEBUG", "jack server is not running"),
    ]


def test_a_host_s_standard_error_is_not_redirected(monkeypatch, capfd):
    """Lines of its other threads would be taken, too."""
    plug_in(monkeypatch, ("USB Mic", 1, 16_000), kind=Talkative)
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    source = Capture()
    source.start()
    source.close()
    assert "jack server is not running" in capfd.readouterr().err
