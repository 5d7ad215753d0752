"""A live run in a terminal: status line, pause, and a closed terminal."""

import asyncio
import json
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path

import numpy as np
import pytest
import srt

from pipeline.apps.controls import NoticeSink, controls, meter, notice_line, status_line
from pipeline.console import keys
from pipeline.core.notices import (
    AudioLost,
    DeviceBack,
    DeviceLost,
    InputLevel,
    LoadChanged,
    Paused,
    Resumed,
    TranslationLost,
)
from pipeline.events import EndOfInput
from pipeline.media.audio.microphone import Microphone
from tests.commands import quick_config
from tests.conftest import EXAMPLES, HANG_S, PHRASES, ROOT, read_wav, write_wav
from tests.media.audio.portaudio import FakePortAudio, ended


@pytest.mark.parametrize(
    ("notice", "line"),
    [
        (DeviceLost(3725.0, "USB Mic", "it stopped"), "[1:02:05] the input 'USB Mic' is gone: it stopped; waiting"),
        (DeviceBack(5.0, "USB Mic", 11.6), "[0:00:05] the input 'USB Mic' is back after 12 s"),
        (AudioLost(5.0, 0.0, "full"), "[0:00:05] audio was lost: full"),
        (AudioLost(5.0, 1.26, "full"), "[0:00:05] 1.3 s of audio were lost: full"),
        (InputLevel(2.5, "Mic", -34.2), "[0:00:02] the input 'Mic' records at -34 dBFS"),
        (InputLevel(2.5, "Mic", -90.0, silent=True), "[0:00:02] the input 'Mic' records silence; if somebody"),
        (InputLevel(2.5, "Mic", -6.0, 0.031), "[0:00:02] the input 'Mic' is too loud: 3.1% of its samples are clipped"),
        (Paused(5.0), "[0:00:05] paused"),
        (Resumed(5.0), "[0:00:05] listening again"),
        (LoadChanged(1, 5.2), "lag 5.2 s: no drafts until text has caught up"),
        (LoadChanged(0, 1.0), "lag 1.0 s: caught up"),
    ],
)
def test_every_notice_is_a_line_for_people(notice, line):
    assert notice_line(notice).startswith(line)


@pytest.mark.parametrize(("level", "line"), [(0, "lag 9.0 s: caught up"), (1, "lag 9.0 s: text comes late")])
def test_a_run_without_drafts_does_not_say_that_there_are_none(level, line, capsys):
    NoticeSink(drafts=False).write(LoadChanged(level, 9.0))
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize(
    ("notice", "level"),
    [
        (AudioLost(5.0, 0.0, "full"), logging.ERROR),
        (TranslationLost("de", "full"), logging.ERROR),
        (DeviceLost(5.0, "Mic", "gone"), logging.WARNING),
        (Paused(5.0), logging.WARNING),
    ],
)
def test_what_is_lost_for_ever_is_said_to_be_an_error(notice, level, monkeypatch):
    told: list[tuple[str, int]] = []
    monkeypatch.setattr("pipeline.apps.controls.tell", lambda line, of: told.append((line, of)))
    NoticeSink().write(notice)
    NoticeSink().write(EndOfInput(1.0))
    assert told == [(notice_line(notice), level)]


def test_the_meter_spans_speech():
    assert [meter(dbfs).count("▮") for dbfs in (-90.0, -60.0, -30.0, 0.0, 3.0)] == [0, 0, 5, 10, 10]


def test_the_status_line_shows_the_microphones_state(monkeypatch):
    fake = FakePortAudio(("Mic", 1, 16_000))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    assert status_line(1.26, None) == "lag 1.3 s"
    with ended(Microphone()) as microphone:
        microphone.start()
        fake.streams[0].hear(np.full(320, 32_767, np.int16))
        microphone.read()
        assert status_line(0.0, microphone) == "● listening  ▮▮▮▮▮▮▮▮▮▮  lag 0.0 s"
        microphone.pause()
        assert status_line(0.0, microphone).startswith("⏸ paused")
        fake.unplug()
        while microphone.connected:
            microphone.read()
        assert status_line(0.0, microphone).startswith("⚠ waiting for Mic")


def spoken(folder: Path, count: int) -> Path:
    """A recording of a short question, and of further sentences up to ``count``; there are eleven."""
    samples = np.concatenate([read_wav(PHRASES)[int(4.5 * 16_000) :], read_wav(EXAMPLES / "travel.wav")])
    end_s = {1: 2.4, 2: 5.8}.get(count, 60.0)
    return write_wav(folder / "spoken.wav", samples[: int(end_s * 16_000)])


class Terminal:
    """A run whose controlling terminal is a pseudo-terminal."""

    def __init__(self, *arguments: str | Path) -> None:
        self.shown = b""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execv(sys.executable, [sys.executable, *map(str, arguments)])

    def press(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def wait_for(self, words: str) -> None:
        while words.encode() not in self.shown:
            try:
                self.shown += os.read(self.descriptor, 4096)
            except OSError:  # the run has ended
                pytest.fail(f"{words!r} was not shown in {self.shown.decode(errors='replace')}")

    def close(self) -> None:
        os.close(self.descriptor)

    def status(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def subtitles(tmp_path: Path) -> Path:
    return tmp_path / "out.srt"


@pytest.mark.slow
def test_lag_is_shown_below_the_subtitles(subtitles):
    terminal = Terminal(
        "-m",
        "pipeline.live",
        spoken(subtitles.parent, 11),
        "--config",
        quick_config(subtitles.parent),
        "--srt",
        subtitles,
    )
    terminal.wait_for("lag ")
    os.kill(terminal.pid, signal.SIGINT)
    terminal.wait_for("times real time")
    assert terminal.status() == 0


def test_a_terminal_shows_that_the_program_has_started_before_its_libraries_are_imported():
    program = "from pipeline.apps.entry import entry_point; entry_point('.missing', 'missing')()"
    terminal = Terminal("-c", program)
    terminal.wait_for("No module named 'pipeline.apps.missing'")
    assert terminal.shown.startswith("loading …\r".encode())
    quiet = Terminal("-c", program, "--quiet")
    quiet.wait_for("No module named 'pipeline.apps.missing'")
    assert b"loading" not in quiet.shown


@pytest.mark.slow
def test_a_terminal_shows_which_model_is_loaded_and_then_a_table(tmp_path):
    recording = spoken(tmp_path, 1)
    terminal = Terminal(
        "-m", "pipeline.translate", recording, "--config", quick_config(tmp_path), "--output-dir", tmp_path
    )
    terminal.wait_for("loading tiny.en …\r\n")
    assert terminal.shown.startswith(f"loading …\r{'':9}\rloading tiny.en …".encode())
    terminal.wait_for("outcome")
    assert terminal.status() == 0


@pytest.mark.slow
def test_a_terminal_that_nobody_reads_does_not_hold_back_the_files(subtitles):
    """Ctrl-S stops the terminal's output, and with it whatever writes to the terminal."""
    jsonl = subtitles.with_suffix(".jsonl")
    os.mkfifo(jsonl)  # tells when something is written
    whole = threading.Event()

    def read_events() -> None:
        with jsonl.open(encoding="utf-8") as lines:
            if any(json.loads(line)["type"] == "end" for line in lines):
                whole.set()

    recording = spoken(subtitles.parent, 2)
    terminal = Terminal(
        "-m",
        "pipeline.live",
        recording,
        "--config",
        quick_config(subtitles.parent),
        "--srt",
        subtitles,
        "--jsonl",
        jsonl,
    )
    threading.Thread(target=read_events, daemon=True).start()
    terminal.wait_for("00:0")
    terminal.press(b"\x13")
    assert whole.wait(HANG_S), "the files wait for the terminal"
    terminal.press(b"\x11")
    terminal.wait_for("times real time")
    assert terminal.status() == 0
    assert len(list(srt.parse(subtitles.read_text("utf-8")))) == 2


@pytest.mark.slow
def test_closing_the_terminal_loses_no_speech(subtitles):
    jsonl = subtitles.with_suffix(".jsonl")
    terminal = Terminal(
        "-m",
        "pipeline.live",
        spoken(subtitles.parent, 11),
        "--config",
        quick_config(subtitles.parent),
        "--srt",
        subtitles,
        "--jsonl",
        jsonl,
    )
    terminal.wait_for("00:0")  # the first sentence is in progress while the next is spoken
    terminal.close()
    assert terminal.status() in (0, 1)
    events = [json.loads(line) for line in jsonl.read_text("utf-8").splitlines()]
    finished = [event for event in events if event["type"] == "translation"]
    cues = list(srt.parse(subtitles.read_text("utf-8")))
    assert 1 <= len(cues) < 11
    assert len(cues) == len(finished)


@pytest.mark.slow
def test_a_terminal_that_vanishes_without_a_signal_loses_no_speech(subtitles):
    ours, its = pty.openpty()  # not the controlling terminal, so there is no SIGHUP
    arguments = [
        "-m",
        "pipeline.live",
        spoken(subtitles.parent, 11),
        "--config",
        quick_config(subtitles.parent),
        "--srt",
        subtitles,
    ]
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)], cwd=ROOT, stdout=its, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        os.close(its)
        shown = b""
        while b"00:0" not in shown:
            shown += os.read(ours, 4096)
        os.close(ours)
        assert running.stderr
        said = running.stderr.read().decode()
    assert "times real time" in said  # it ended normally
    assert running.returncode in (0, 1), said
    cues = list(srt.parse(subtitles.read_text("utf-8")))
    assert 1 <= len(cues) < 11


async def test_a_run_under_nohup_ignores_the_end_of_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with controls(interrupted=lambda: None, hung_up=lambda: None, microphone=None):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with controls(interrupted=lambda: None, hung_up=lambda: None, microphone=None):
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


# A run that prints a number of notices about its microphone.
LISTENING = """
import asyncio, os, signal, sys, termios
from tests.media.audio.portaudio import FakePortAudio, ended
sys.modules["sounddevice"] = FakePortAudio(("Mic", 1, 16_000))
from pipeline.media.audio.microphone import Microphone
from pipeline.apps.controls import controls

async def main(count):
    microphone, notices = Microphone(), asyncio.Queue()
    microphone.listen(notices.put_nowait)
    with controls(interrupted=lambda: None, hung_up=lambda: None, microphone=microphone):
        print("ready", flush=True)
        for _ in range(count):
            print(type(await notices.get()).__name__.lower(), flush=True)
"""
ALONE = (
    LISTENING
    + """
asyncio.run(main(2))
print("echo is", "on" if termios.tcgetattr(0)[3] & termios.ECHO else "off", flush=True)
"""
)


async def test_each_press_of_the_space_bar_counts(monkeypatch):
    keyboard, terminal = pty.openpty()
    monkeypatch.setattr(keys, "_in_foreground", lambda terminal: True)
    pressed = asyncio.Queue[None]()
    with keys._terminal(lambda: pressed.put_nowait(None), terminal):
        os.write(keyboard, b" x ")
        async with asyncio.timeout(HANG_S):
            await pressed.get()
    assert pressed.qsize() == 1
    os.close(terminal)
    os.close(keyboard)


@pytest.mark.slow
def test_the_space_bar_pauses_and_resumes_and_the_terminal_is_left_as_it_was():
    terminal = Terminal("-c", ALONE)
    terminal.wait_for("ready")
    terminal.press(b"x ")
    terminal.wait_for("paused")
    terminal.press(b" ")
    terminal.wait_for("echo is on")
    assert terminal.status() == 0


# Acts as a shell: puts its job into the foreground, the background, the foreground again, and ends it in the
# background.
SHELL = """
import atexit, os, select, signal, subprocess, sys, termios
settings = termios.tcgetattr(0)
job = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True, bufsize=1)
atexit.register(job.kill)  # also one that is stopped
signal.signal(signal.SIGTTOU, signal.SIG_IGN)

def said(line):
    assert select.select([job.stdout], [], [], int(sys.argv[2]))[0], f"the job has not said {line!r}: it is stopped"
    assert job.stdout.readline() == line + "\\n"

def to_background():
    os.kill(job.pid, signal.SIGSTOP)
    os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    termios.tcsetattr(0, termios.TCSANOW, settings)
    os.kill(job.pid, signal.SIGCONT)

said("ready")
to_background()
print("type", flush=True)
while b" " not in os.read(0, 64):
    pass
os.kill(job.pid, signal.SIGUSR1)
said("paused")
os.tcsetpgrp(0, job.pid)
os.kill(job.pid, signal.SIGCONT)
print("press", flush=True)
said("resumed")
to_background()
os.kill(job.pid, signal.SIGUSR1)
said("paused")
assert job.wait() == 0
print("the job has ended", flush=True)
"""
JOB = (
    LISTENING
    + """
os.setpgid(0, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
os.tcsetpgrp(0, os.getpid())
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
asyncio.run(main(3))
"""
)


@pytest.mark.slow
def test_the_keyboard_is_read_only_in_the_foreground():
    terminal = Terminal("-c", SHELL, JOB, str(HANG_S))
    terminal.wait_for("type")
    terminal.press(b"ls \n")  # the shell's terminal is line-buffered
    terminal.wait_for("press")
    for _ in range(500_000):
        if not termios.tcgetattr(terminal.descriptor)[3] & termios.ICANON:
            break
        select.select([], [], [], 0.001)  # keys pressed before the job reads the keyboard are lost
    else:
        pytest.fail("in the foreground again, the job has not taken the keyboard")
    terminal.press(b" ")
    terminal.wait_for("the job has ended")
    assert terminal.status() == 0
