"""Speech on an output device: whole and without gaps; devices that are missing, of other settings, or go away."""

import sys
import threading

import numpy as np
import pytest

from pipeline.errors import DeviceError, UsageError
from pipeline.speaking import device
from pipeline.speaking.device import DeviceOutput
from tests.conftest import HANG_S
from tests.media.audio.portaudio import FakePortAudio

SPEECH = np.arange(1, 16_001, dtype=np.int16)


def plugged_in(monkeypatch, *devices, default=0):
    fake = FakePortAudio(*devices, default=default, kind="output")
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    monkeypatch.setattr(device, "_POLL_S", 0.005)
    monkeypatch.setattr(device, "_STALLED_S", HANG_S)
    return fake


def playing(output, samples=SPEECH):
    """Play on another thread; what is called to wait for it gives its error."""
    errors = []

    def work():
        try:
            output.play(samples)
        except DeviceError as error:
            errors.append(str(error))

    def left():
        return len(output._sound) - output._at

    thread = threading.Thread(target=work)
    with output._changed:
        before = left()
        thread.start()
        assert output._changed.wait_for(lambda: left() > before, HANG_S)

    def ended():
        thread.join(HANG_S)
        assert not thread.is_alive()
        return errors

    return ended


def test_speech_is_played_whole_with_silence_around_it(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    (stream,) = fake.streams
    assert not stream.play(320).any()
    ended = playing(output)
    parts = [stream.play(320) for _ in range(40)]
    assert ended() == []  # although some is left
    again = playing(output)
    parts += [stream.play(320) for _ in range(70)]
    assert again() == []
    sound = np.concatenate(parts)
    (from_,) = np.flatnonzero(sound[:, 0] == 1)[:1]
    assert stream.channels == 1
    assert np.array_equal(sound[from_ : from_ + 32_000, 0], np.tile(SPEECH, 2))
    assert not sound[from_ + 32_000 :].any()
    output.finish()
    output.close()
    assert stream.closed


def test_short_speech_returns_at_once_and_is_played_once(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    (stream,) = fake.streams
    for part in (SPEECH[:320], SPEECH[320:640]):
        output.play(part)
        assert np.array_equal(stream.play(320)[:, 0], part)
    assert not stream.play(320).any()
    output.close()


def test_a_device_with_other_settings_gets_them(monkeypatch):
    fake = plugged_in(monkeypatch, ("Card", 2, 48_000))
    output = DeviceOutput("card", 16_000)
    (stream,) = fake.streams
    assert (stream.channels, stream.samplerate) == (2, 48_000)
    ended = playing(output, np.full(16_000, 1_000, np.int16))
    sound = np.concatenate([stream.play(960) for _ in range(60)])
    assert ended() == []
    assert np.array_equal(sound[:, 0], sound[:, 1])
    assert abs(np.count_nonzero(sound[:, 0] > 500) - 48_000) < 100


@pytest.mark.parametrize(
    ("devices", "asked", "said"),
    [
        ([], None, r"no audio output device was found; connect one, or give --speak-to FILE\.wav"),
        ([("Speakers", 2, 0)], "kazoo", "no output device matches 'kazoo'; --list-devices shows these: .*Speakers"),
        ([("Speakers", 2, 0), ("Speakers 2", 2, 0)], "speak", "several output devices match 'speak'"),
    ],
)
def test_a_device_that_is_not_there_is_said(devices, asked, said, monkeypatch):
    plugged_in(monkeypatch, *devices)
    with pytest.raises((UsageError, DeviceError), match=said):
        DeviceOutput(asked, 16_000)


def test_a_device_that_cannot_be_opened_is_said(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    fake.plugged = []
    with pytest.raises(DeviceError, match="the output device 'Speakers' cannot be opened .Device unavailable.; choose"):
        DeviceOutput(None, 16_000)


@pytest.mark.parametrize("silently", [False, True])
def test_a_device_that_goes_away_is_said_and_opened_again(silently, monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    ended = playing(output)
    plugged = fake.plugged
    if silently:
        fake.plugged = []
        monkeypatch.setattr(device, "_STALLED_S", 0.01)
    else:
        fake.unplug()
    assert ended() == ["the output device 'Speakers' stopped; the subtitles go on without a voice"]
    with pytest.raises(DeviceError, match="cannot be opened"):
        output.play(SPEECH)
    monkeypatch.setattr(device, "_STALLED_S", HANG_S)
    fake.plugged = plugged
    ended = playing(output)
    sound = np.concatenate([fake.streams[-1].play(320) for _ in range(60)])
    assert ended() == []
    assert np.array_equal(sound[sound[:, 0] != 0, 0], SPEECH)  # the rest of the other sentence is gone
    output.close()


def test_closing_ends_a_sentence(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    ended = playing(output)
    output.close()
    assert ended() == []
    output.play(SPEECH)  # a sentence that was being made meanwhile
    assert [stream.closed for stream in fake.streams] == [True]


def test_a_device_that_is_being_opened_again_is_closed_too(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    ended, plugged = playing(output), fake.plugged
    fake.unplug()
    assert ended() != []
    fake.plugged = plugged
    kind = type(fake.streams[0])
    start = kind.start
    monkeypatch.setattr(kind, "start", lambda stream: (start(stream), output.close()))
    output.play(SPEECH)
    assert [stream.closed for stream in fake.streams] == [True, True]


def test_a_device_that_was_lost_in_silence_does_not_hold_up_the_end(monkeypatch):
    fake = plugged_in(monkeypatch, ("Speakers", 2, 0))
    output = DeviceOutput(None, 16_000)
    (stream,) = fake.streams
    forever = threading.Event()
    monkeypatch.setattr(stream, "stop", forever.wait)
    monkeypatch.setattr(stream, "close", lambda ignore_errors: forever.wait())
    monkeypatch.setattr(device, "_CLOSE_S", 0.01)
    monkeypatch.setattr(device, "_STALLED_S", 0.0)
    output.finish()
    output.close()
    forever.set()
