"""With a virtual microphone and loudspeakers of PulseAudio, which .ci/run sets up: the complete run, and what it is told by signals."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srt

from pipeline.bench.words import edits, scored_units
from pipeline.errors import UsageError
from pipeline.events import SourceSentence
from pipeline.media.audio.microphone import Microphone
from pipeline.media.audio.recording import Recording
from tests.chain import events_of
from tests.commands import command, run
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav, spoken_texts, write_wav
from tests.speaking.test_voice import JOE, needs_joe

pytestmark = pytest.mark.skipif("VIRTUAL_MICROPHONE" not in os.environ, reason="no PulseAudio; .ci/run sets one up")
LISBON = ROOT / "examples" / "audio-pt" / "lisbon.wav"
# Three sentences of the recording, with the pause after the third.
PART_SECONDS, PART_SENTENCES = 10.5, 3
Listening = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return write_wav(tmp_path / "part.wav", read_wav(PHRASES)[: int(PART_SECONDS * 16_000)])


def pulseaudio(*words: str) -> str:
    return subprocess.run(["pactl", *words], check=True, capture_output=True, timeout=HANG_S).stdout.decode()


def plug_in_again(name: str) -> None:
    pulseaudio("load-module", "module-null-sink", f"sink_name={name}", "rate=16000", "channels=1")
    pulseaudio("set-default-source", f"{name}.monitor")


@pytest.fixture
def virtual_microphone() -> Iterator[str]:
    """Yield the name of the virtual microphone, and restore the microphone if the test removed it."""
    name = os.environ["VIRTUAL_MICROPHONE"]
    yield name
    if f"sink_name={name}" not in pulseaudio("list", "short", "modules"):
        plug_in_again(name)


@pytest.fixture
def loudspeakers() -> Iterator[str]:
    """An output that the microphone does not record."""
    module = pulseaudio("load-module", "module-null-sink", "sink_name=speakers", "rate=48000", "channels=2").strip()
    yield "speakers"
    pulseaudio("unload-module", module)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    """Start a run on a microphone and wait until it listens. The run ends with the test."""
    with ExitStack() as stack:

        def start(*options: str, **environment: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                command("live", *options, "--config", "demo-zh", "--jsonl", tmp_path / "out.jsonl", "--srt", tmp_path / "out.srt"),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
            )  # fmt: skip
            watchdog = threading.Timer(HANG_S, process.kill)  # a missing message fails the test instead of hanging it
            watchdog.daemon = True
            watchdog.start()
            for end in (process.communicate, process.kill, watchdog.cancel):  # called in the opposite order
                stack.callback(end)
            wait_for(process, "listening to")
            return process

        yield start


def play(wav: Path, device: str = "") -> None:
    """Play ``wav``, without another device into the virtual microphone."""
    place = f"--device={device or os.environ['VIRTUAL_MICROPHONE']}"
    subprocess.run(["paplay", place, str(wav)], check=True, timeout=HANG_S)


def interrupted(process: subprocess.Popen[bytes]) -> bytes:
    """Interrupt the run, check that it ends without error, and return its output."""
    process.send_signal(signal.SIGINT)
    shown, error = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, error.decode()
    return shown


def wait_for(process: subprocess.Popen[bytes], words: str) -> None:
    assert process.stderr is not None
    while words.encode() not in (line := process.stderr.readline()):
        assert line, f"the run ended before it said {words!r}"


def recorded(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]


def cues(tmp_path: Path) -> list[srt.Subtitle]:
    return list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))


def test_devices_are_listed():
    done = run("live", "--list-devices")
    assert done.returncode == 0, done.stderr.decode()
    assert "pulse" in done.stdout.decode()


def test_the_error_for_an_unknown_device_lists_the_devices():
    with pytest.raises(UsageError, match=r"no input device matches 'kazoo'; --list-devices shows these: .*pulse"):
        Microphone("kazoo")


def test_speech_into_the_microphone_becomes_subtitles(listening, tmp_path):
    process = listening("--mic")
    play(PHRASES)
    shown = interrupted(process)
    said = spoken_texts()["phrases"]
    assert len(cues(tmp_path)) == len(said)
    assert all(any("\u4e00" <= c <= "\u9fff" for c in cue.content) for cue in cues(tmp_path))
    heard = scored_units(" ".join(line[15:] for line in shown.decode().splitlines() if "–" in line), "en")
    reference = scored_units(" ".join(said), "en")
    assert edits(reference, heard) / len(reference) < 0.35


def test_a_source_that_is_removed_and_restored_is_recorded_again(listening, virtual_microphone, part, tmp_path):
    process, name = listening("--mic"), virtual_microphone
    (module,) = [line.split("\t")[0] for line in pulseaudio("list", "short", "modules").splitlines() if name in line]
    pulseaudio("unload-module", module)
    wait_for(process, "is gone")
    plug_in_again(name)
    wait_for(process, "is back")
    play(part)
    interrupted(process)
    events = recorded(tmp_path)
    kinds = [event["type"] for event in events]
    assert kinds.index("device_lost") < kinds.index("device_back") < kinds.index("transcript")
    back = events[kinds.index("device_back")]
    assert len([kind for kind in kinds if kind == "transcript"]) == PART_SENTENCES
    # The time without the device counts, so that later times stay correct.
    assert back["at_s"] == pytest.approx(back["away_s"] + events[kinds.index("device_lost")]["at_s"], abs=0.05)


def test_a_signal_pauses_and_resumes(listening, phrase, tmp_path):
    process = listening("--mic")
    process.send_signal(signal.SIGUSR1)
    wait_for(process, "paused")
    play(phrase)
    process.send_signal(signal.SIGUSR1)
    wait_for(process, "listening again")
    interrupted(process)
    events = recorded(tmp_path)
    assert not [event for event in events if event["type"] == "transcript"]
    paused, resumed = (event for event in events if event["type"] in ("paused", "resumed"))
    assert (paused["type"], resumed["type"], events[-1]["type"]) == ("paused", "resumed", "end")
    assert resumed["at_s"] - paused["at_s"] > 5


@pytest.mark.parametrize("option", ["--device=pulse", "--loopback"])
def test_the_output_of_the_computer_is_subtitled(option, listening, loudspeakers, part, tmp_path):
    assert f"{loudspeakers}.monitor" in pulseaudio("list", "short", "sources")
    pulseaudio("set-default-sink", loudspeakers)
    process = listening(option, **({} if option == "--loopback" else {"PULSE_SOURCE": f"{loudspeakers}.monitor"}))
    play(part, loudspeakers)
    interrupted(process)
    assert len(cues(tmp_path)) == PART_SENTENCES


@needs_joe
def test_a_loudspeaker_speaks_while_the_recording_plays(loudspeakers, demo_config, demo_models, tmp_path):
    record = ["parec", f"--device={loudspeakers}.monitor", "--rate=16000", "--channels=1", "--format=s16le"]
    voice = ("--speak", JOE, "--speak-to", "pulse", "--txt", tmp_path / "said.txt")
    with (tmp_path / "sound.pcm").open("wb") as file, subprocess.Popen(record, stdout=file) as recording:
        done = subprocess.run(
            command("live", LISBON, "--config", "demo-pt-en", *voice),
            env=os.environ | {"PULSE_SINK": loudspeakers}, capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        recording.terminate()
    assert done.returncode == 0, done.stderr
    assert " sentences spoken, " in done.stderr
    said = scored_units((tmp_path / "said.txt").read_text("utf-8"), "en")
    path = write_wav(tmp_path / "sound.wav", np.fromfile(tmp_path / "sound.pcm", np.int16))
    heard = [
        event.text
        for event in events_of(demo_config, demo_models, Recording(path))
        if isinstance(event, SourceSentence)
    ]
    assert edits(said, scored_units(" ".join(heard), "en")) / len(said) < 0.5  # a slow machine skips a sentence
