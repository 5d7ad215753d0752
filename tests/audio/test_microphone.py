"""The microphone: what is said when there is none, and, on a virtual one, the whole way to subtitles."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import srt

from pipeline.audio.microphone import Microphone, list_devices
from pipeline.errors import DeviceError, UsageError
from tests.conftest import PHRASES, edits, spoken_texts, words


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


class NoDevices:
    """Stands for PortAudio on a machine without any input device."""

    class PortAudioError(Exception):
        pass

    class default:  # noqa: N801
        device = (-1, -1)

    def query_devices(self, device: object = None, kind: str | None = None) -> list[Any]:
        if kind is None:
            return []
        raise self.PortAudioError("Error querying device -1")


def test_without_an_input_device_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", NoDevices())
    assert list_devices() == []
    with pytest.raises(DeviceError, match="no audio input device was found"):
        Microphone()


@pytest.mark.microphone
@needs_microphone
def test_an_unknown_device_is_said_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no input device fits 'kazoo'; --list-devices shows these: .*pulse"):
        Microphone("kazoo")


@pytest.mark.microphone
@needs_microphone
def test_speech_into_the_microphone_becomes_subtitles(tmp_path: Path) -> None:
    """Plays the phrases into the virtual microphone that .ci/run has set up, and interrupts the run at their end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.live", "--mic", "--config", "demo", "--srt", str(tmp_path / "out.srt"),
         "--jsonl", str(tmp_path / "out.jsonl")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    while b"listening to" not in (line := process.stderr.readline()):
        assert line, "the run ended before it listened"
    playing = subprocess.run(
        ["paplay", f"--device={os.environ['VIRTUAL_MICROPHONE']}", str(PHRASES)], check=False, timeout=120
    )
    assert playing.returncode == 0
    process.send_signal(2)
    shown, error = process.communicate(timeout=60)
    assert process.returncode == 0, error.decode()
    said = spoken_texts()["phrases"]
    cues = list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))
    assert len(cues) == len(said)
    assert all(any("\u4e00" <= c <= "\u9fff" for c in cue.content) for cue in cues)
    heard = words(" ".join(line[15:] for line in shown.decode().splitlines() if "–" in line))
    reference = words(" ".join(said))
    assert edits(reference, heard) / len(reference) < 0.35
