"""The microphone: its backlog, losses and notices; with a virtual microphone, the complete run to subtitles."""

import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from pipeline.core.notices import AudioLost, DeviceBack, DeviceLost, InputLevel, Paused, Resumed, SourceNotice
from pipeline.errors import DeviceError
from pipeline.events import Samples
from pipeline.media.audio import capture
from pipeline.media.audio.microphone import Microphone
from pipeline.media.audio.spool import SpooledSource
from tests.conftest import HANG_S
from tests.media.audio.portaudio import FakePortAudio, ended

SECOND = np.full(16_000, 8_000, np.int16)


class Room:
    """A microphone on a fake device that the test speaks into, directly or behind another spool."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, backlog_s: float, wrapped: bool) -> None:
        self.fake = FakePortAudio(("Mic", 1, 16_000))
        monkeypatch.setitem(sys.modules, "sounddevice", self.fake)
        monkeypatch.setattr(capture, "backoff_s", lambda attempt: 0.0)
        monkeypatch.setattr(capture, "_POLL_S", 0.005)
        self.microphone = Microphone(backlog_s=3_600 if wrapped else backlog_s)
        self.source = SpooledSource(self.microphone, backlog_s) if wrapped else self.microphone
        self.notices: queue.Queue[SourceNotice] = queue.Queue()
        self.levels: list[InputLevel] = []
        self.source.listen(
            lambda notice: (self.levels.append if isinstance(notice, InputLevel) else self.notices.put)(notice)
        )
        self.microphone.start()
        self.source.start()
        self.said = 0

    def say(self, seconds: int) -> None:
        """Deliver ``seconds`` of loud audio; return when all of it is kept or lost."""
        stream, source = self.fake.streams[-1], self.source
        for _ in range(50 * seconds):
            stream.hear(SECOND[:320])
            self.said += 320
            with source._changed:
                assert source._changed.wait_for(lambda: source._received >= self.said, HANG_S)

    def next_notice(self) -> SourceNotice:
        return self.notices.get(timeout=HANG_S)

    def told(self) -> list[SourceNotice]:
        return [self.notices.get_nowait() for _ in range(self.notices.qsize())]

    def read(self, samples: int | None = None) -> Samples:
        """Read at least ``samples`` samples, or until the end."""
        parts = [np.zeros(0, np.int16)]
        while samples is None or sum(map(len, parts)) < samples:
            if (part := self.source.read()) is None:
                break
            parts.append(part)
        return np.concatenate(parts)


@pytest.fixture(params=[False, True], ids=["as it is", "wrapped"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], Room]]:
    with ExitStack() as stack:

        def make(backlog_s: float) -> Room:
            made = Room(monkeypatch, backlog_s, request.param)
            stack.enter_context(ended(made.source))
            stack.enter_context(ended(made.microphone))
            return made

        yield make


def test_audio_is_kept_until_it_is_read(room):
    here = room(100.0)
    here.say(70)
    assert here.source.backlog_s == 70
    here.source.close()
    samples = here.read()
    assert len(samples) == 70 * 16_000
    assert (samples == 8_000).all()
    assert not here.told()


def test_the_level_is_told_within_three_seconds_of_the_start(room):
    here = room(100.0)
    here.microphone.pause()  # a pause is no silent device
    here.say(5)
    here.microphone.resume()
    here.say(2)
    assert not here.levels
    here.say(5)
    assert here.levels == [InputLevel(pytest.approx(7.5), "Mic", pytest.approx(-12.2, abs=0.1))]


def test_audio_beyond_the_backlog_becomes_silence_and_is_reported(room):
    here = room(10.0)
    here.say(12)
    (began,) = here.told()
    assert isinstance(began, AudioLost)
    assert (began.at_s, began.lost_s) == (pytest.approx(10, abs=0.03), 0.0)
    assert "the backlog of 10 s is full" in began.reason
    assert here.source.backlog_s == pytest.approx(10)
    assert here.source.overflows == 1
    first = here.read(6 * 16_000)
    here.say(1)
    (ended,) = here.told()
    assert ended == AudioLost(ended.at_s, 2.0, "there is room again")
    assert ended.at_s == pytest.approx(12, abs=0.03)
    here.source.close()
    samples = np.concatenate([first, here.read()])
    expected = np.concatenate([np.tile(SECOND, 10), np.zeros(2 * 16_000, np.int16), SECOND])
    assert len(samples) == len(expected)
    assert (samples == expected).all()


def test_a_loss_at_the_end_is_reported_with_its_length(room):
    here = room(2.0)
    here.say(5)
    here.source.close()
    assert isinstance(here.next_notice(), AudioLost)
    ended = here.next_notice()
    assert ended == AudioLost(5.0, 3.0, "the audio has ended")


def test_losses_of_the_device_become_silence_and_are_reported(room, monkeypatch):
    monkeypatch.setattr(capture, "_DEVICE_BUFFER_S", 5.0)  # accept a loss longer than the time that has passed
    here = room(100.0)
    here.say(1)
    here.fake.streams[0].hear(SECOND[:320], overflow=True, lost_s=3.0)
    notice = here.next_notice()
    assert notice == AudioLost(1.0, pytest.approx(3.0), "Mic was not read in time")
    here.source.close()
    samples = here.read()
    assert len(samples) == 4 * 16_000 + 320
    assert (np.flatnonzero(samples == 0) == np.arange(16_000, 4 * 16_000)).all()
    assert here.source.overflows == 1


def test_pausing_and_unplugging_are_reported_and_replaced_by_silence(room):
    here = room(100.0)
    here.microphone.pause()
    assert here.microphone.paused
    here.say(1)
    here.microphone.resume()
    here.say(1)
    assert here.microphone.level_dbfs > -20
    plugged = here.fake.plugged
    here.fake.unplug()
    lost = here.next_notice(), here.next_notice(), here.next_notice()
    assert [type(notice) for notice in lost] == [Paused, Resumed, DeviceLost]
    assert not here.microphone.connected
    here.fake.plugged = plugged
    back = here.next_notice()
    assert isinstance(back, DeviceBack)
    here.fake.streams[-1].hear(SECOND[:320])
    here.source.close()
    samples = here.read()
    assert not samples[:16_000].any()
    assert (samples[16_000:32_000] == 8_000).all()
    assert (samples[-320:] == 8_000).all()
    assert (len(samples) - 320) / 16_000 == pytest.approx(back.at_s, abs=0.001)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePortAudio:
    found = FakePortAudio(("Mic", 1, 16_000))
    monkeypatch.setitem(sys.modules, "sounddevice", found)
    return found


def test_start_and_read_raise_if_the_device_cannot_be_opened(fake):
    source = Microphone()
    assert source.name == "Mic"
    fake.unplug()
    for begin in (source.start, source.read, source.start):
        with pytest.raises(DeviceError, match="'Mic' cannot be opened"):
            begin()


def test_close_releases_the_device_without_a_read(fake):
    source = Microphone()
    source.start()
    source.close()
    assert source._thread is not None
    source._thread.join(HANG_S)
    assert fake.streams[0].closed
    assert source.read() is None


def test_a_microphone_closed_before_its_start_opens_no_device(fake):
    source = Microphone()
    source.close()
    assert source.read() is None
    assert not fake.streams
