"""Systems that lack something: an old Python, Windows, no make. What is missing is said at once, with the way on."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from tests.conftest import HANG_S, ROOT

# What Windows' Python lacks, taken away from this one. Other packages are imported before, as they look at the platform
# themselves; everything of this project is imported after.
AS_ON_WINDOWS = """
import asyncio, ctypes, multiprocessing, os, runpy, select, shutil, signal, subprocess, sys, tempfile
import av, faster_whisper, huggingface_hub.file_download, jellyfish, rapidfuzz.distance, numpy, onnxruntime, rich.console, rich.progress, sentencepiece, sentencex
import distributed, multipart, nats, obstore, prometheus_client, segno, starlette.applications, starlette.testclient, uvicorn, websockets.asyncio.client, wyoming.server

for name in ("curses", "fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for module, names in {
    signal: ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGPIPE", "SIGALRM", "pthread_sigmask"),
    os: ("fork", "getpgrp", "tcgetpgrp", "getuid", "geteuid", "mkfifo", "O_NONBLOCK", "sched_getaffinity", "sysconf"),
    select: ("poll", "epoll"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
del asyncio.SelectorEventLoop.add_signal_handler, asyncio.SelectorEventLoop.remove_signal_handler
sys.platform = "win32"
"""


def as_on_windows(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS + program, *arguments],
        capture_output=True, encoding="utf-8", timeout=HANG_S, check=False, env=os.environ | {"PYTHONIOENCODING": "cp437"},
    )  # fmt: skip


@pytest.mark.slow
def test_every_module_imports_without_what_windows_lacks():
    program = """
import importlib, pkgutil, pipeline
for module in pkgutil.walk_packages(pipeline.__path__, "pipeline."):
    importlib.import_module(module.name)
print("all")
"""
    done = as_on_windows(program)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr


@pytest.mark.slow
def test_a_recording_is_translated_without_what_windows_lacks(phrase, tmp_path):
    program = "runpy.run_module('pipeline.translate', run_name='__main__')"
    options = ("--config", "demo-zh", "--asr", "tiny.en", "--output-dir", str(tmp_path))
    done = as_on_windows(program, str(phrase), *options)
    assert done.returncode == 0, done.stderr
    assert "-->" in (tmp_path / "phrase.srt").read_text("utf-8")


@pytest.mark.slow
def test_live_subtitles_are_utf8_whatever_the_consoles_encoding(phrase):
    program = "runpy.run_module('pipeline.live', run_name='__main__')"
    done = as_on_windows(program, str(phrase), "--config", "demo-zh", "--asr", "tiny.en", "--fast")
    assert done.returncode == 0, done.stderr
    assert re.search("[\u4e00-\u9fff]", done.stdout)


@pytest.mark.slow
def test_ctrl_c_ends_a_microphone_without_what_windows_lacks():
    device = "from tests.media.audio.portaudio import FakePortAudio\n"  # needs what Windows lacks
    program = """
sys.modules["sounddevice"] = FakePortAudio(("Mic", 1, 16_000))
runpy.run_module("pipeline.live", run_name="__main__")
"""
    command = [
        sys.executable,
        "-c",
        device + AS_ON_WINDOWS + program,
        "--mic",
        "--config",
        "demo-zh",
        "--asr",
        "tiny.en",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            while "listening to Mic; Ctrl-C ends" not in (line := running.stderr.readline()):
                assert line, "the run ended before it listened"
            running.send_signal(signal.SIGINT)
            assert "finishing what was said" in running.communicate(timeout=HANG_S)[1]
        finally:
            running.kill()
    assert running.returncode == 0


@pytest.mark.slow
def test_a_pipe_on_windows_is_refused_with_an_alternative():
    program = """
from pipeline.media.audio.pcm import PcmStream
from pipeline.errors import UsageError
try:
    PcmStream(sys.stdin.buffer)
except UsageError as error:
    print(error)
"""
    assert as_on_windows(program).stdout.startswith("pipes cannot be read on win32")


def test_subtitle_files_are_opened_in_binary_mode(tmp_path, monkeypatch):
    """Windows would write each line's end as two bytes, and the lengths would be wrong."""
    from pipeline.media.sinks import block_file

    flags = []
    opened = os.open
    monkeypatch.setattr(block_file, "_BINARY", os.O_CLOEXEC)  # another flag that os.open passes on
    monkeypatch.setattr(os, "open", lambda path, flag, mode=0o777: (flags.append(flag), opened(path, flag, mode))[1])
    for _ in range(2):  # a new file, and an existing one
        block_file.BlockFile(tmp_path / "x.srt", "header").close()
        (tmp_path / "x.srt").write_text("old")
    assert len(flags) >= 2
    assert all(flag & os.O_CLOEXEC for flag in flags)


def test_an_old_python_is_refused_on_import():
    program = "import sys; sys.version_info = (3, 10, 14, 'final', 0); import pipeline"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr.splitlines()[-1]


@pytest.fixture
def old_python(tmp_path):
    """A folder with a ``python3`` that says it is 3.10, and records that it was asked to do more than that."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "python3"
    script.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "  --version) echo Python 3.10.14 ;;\n"
        f"  -c) shift; exec {sys.executable} -c "
        """"import sys; sys.version_info = (3, 10, 14, 'final', 0); exec(sys.argv[1])" "$@" ;;\n"""
        f"  *) touch {tmp_path}/used; exit 3 ;;\n"
        "esac\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def make(path, *arguments):
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False,
        env={"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/")},
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", ["demo", "test", "test-fast"])
def test_make_refuses_an_old_python_at_once(target, old_python, tmp_path):
    done = make(old_python, target, f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 2
    first = done.stderr.splitlines()[0]
    assert first.startswith("error: python3 is Python 3.10.14, but Python 3.11 or newer is needed")
    assert f"make {target} PYTHON=" in first
    assert not (tmp_path / "used").exists()
    assert not (tmp_path / "venv").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_says_that_there_is_no_python(tmp_path):
    done = make(tmp_path, "demo", "PYTHON=python9", f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 2
    assert done.stderr.startswith("error: python9 was not found; install Python 3.11 or newer")
