"""Subtitles for the computer's own output: by --loopback, or by PULSE_SOURCE, which names the monitor of an output."""

import os
import sys
from functools import partial

import pytest

from pipeline.errors import UsageError
from pipeline.media.audio.devices import loopback_device
from tests.media.audio.portaudio import FakePortAudio


@pytest.mark.parametrize(
    ("devices", "found", "source"),
    [
        (["Mic", "Monitor of Built-in Audio", "pulse"], "Monitor of Built-in Audio", None),
        (["MacBook Microphone", "BlackHole 2ch"], "BlackHole 2ch", None),
        (["Microphone", "Stereo Mix (Realtek(R) Audio)"], "Stereo Mix (Realtek(R) Audio)", None),
        (["hw:0,0", "pulse", "default"], "pulse", "@DEFAULT_MONITOR@"),
    ],
)
def test_the_input_that_hears_the_computer_is_found_by_name(devices, found, source, monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(*[(name, 2, 48_000) for name in devices]))
    monkeypatch.setenv("PULSE_SOURCE", "")
    monkeypatch.delenv("PULSE_SOURCE")
    assert loopback_device() == found
    assert os.environ.get("PULSE_SOURCE") == source


@pytest.mark.parametrize("played", ["Headset (USB)", "Speakers (Realtek(R) Audio)"])
def test_of_several_that_of_the_default_output_is_taken(played, monkeypatch):
    """As PortAudio's master lists the outputs of WASAPI, and MME's default output before, cut to 31 characters."""
    heard = ["Speakers (Realtek(R) Audio) [Loopback]", "Headset (USB) [Loopback]"]
    fake = FakePortAudio((played[:31], 2, 48_000), *[(name, 2, 48_000) for name in heard])
    monkeypatch.setattr(fake, "query_devices", partial(both_kinds, fake.query_devices))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    assert loopback_device() == f"{played} [Loopback]"


def both_kinds(query, device=None, kind=None):
    """The first device of the list is an output, the others are inputs."""
    found = query(device, "input") if kind else query()
    for row in [found] if kind else found:
        if row["index"] == 0:
            row |= {"max_input_channels": 0, "max_output_channels": 2}
    return found


def test_without_such_an_input_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Mic", 1, 16_000)))
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="no input device hears what this computer plays; install BlackHole"):
        loopback_device()
