"""Recordings in several processes: the same files as from one process, whatever ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.apps.outputs import JOURNAL_SUFFIX
from pipeline.resources import CONFIGS
from tests.apps.test_translate import save
from tests.conftest import EXAMPLES, HANG_S, PHRASES, read_wav

pytestmark = pytest.mark.slow

# Runs in each process before anything else: one recording ends the process that opens it.
POISON = """
import os
from pipeline.audio import recording
real = recording.Recording.__init__
def opened(self, path, **options):
    if path.name == "poison.wav":
        os._exit(11)
    real(self, path, **options)
recording.Recording.__init__ = opened
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The demo's configuration, recognising a segment at a time."""
    text = (CONFIGS / "demo-zh.toml").read_text("utf-8").replace("../models", str(CONFIGS.parent / "models"))
    path = tmp_path_factory.mktemp("config") / "demo.toml"
    path.write_text(text + "\n[sentences]\nlong_pause_ms = 0\n")
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Five recordings, the first of them long enough to be interrupted. A shell, a URL or a pattern would misread some names."""
    folder = tmp_path_factory.mktemp("archive")
    travel = read_wav(EXAMPLES / "travel.wav")
    save(folder / "a.wav", np.tile(travel, 3))
    for number, name in enumerate(("-b's *", "b%20 #1?", f"z{'x' * 245}")):
        save(folder / f"{name}.wav", travel[16_000 * 4 * number : 16_000 * 4 * (number + 1)])
    save(folder / "c.wav", read_wav(PHRASES)[: 16_000 * 5])
    return folder


def arguments(*more, config):
    options = ("--format", "srt,jsonl", "--config", str(config))
    return [sys.executable, "-m", "pipeline.translate", *options, *map(str, more)]


def files(folder: Path):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(archive, config, tmp_path_factory):
    """What one process writes."""
    out = tmp_path_factory.mktemp("whole")
    subprocess.run(arguments(archive, "--output-dir", out, config=config), check=True, timeout=HANG_S)
    found = files(out)
    assert len(found) == 10
    return found


def run(command, **settings):
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, **settings)


def test_several_processes_write_what_one_process_writes(archive, config, whole, tmp_path):
    command = arguments(archive, "--output-dir", tmp_path, "--processes", 2, config=config)
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("times real time") == 5
    assert files(tmp_path) == whole
    again = run(command)
    assert again.returncode == 0
    assert again.stdout.count("already there:") == 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be tied to a core")
def test_the_number_of_cores_changes_no_file(tmp_path):
    one_core = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    runs = {
        "two threads": ([], {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}, []),
        "one thread": ([], {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, []),
        "one core": (one_core, {}, []),
        "two processes": ([], {}, ["--processes", "2"]),
    }
    for name, (before, threads, options) in runs.items():
        audio = [EXAMPLES / "novel.wav", PHRASES]
        command = arguments(*audio, "--output-dir", tmp_path / name, *options, config=CONFIGS / "demo.toml")
        subprocess.run([*before, *command], env=os.environ | threads, check=True, timeout=HANG_S)
    expected = files(tmp_path / "two threads")
    assert len(expected) == 4
    assert [name for name in runs if files(tmp_path / name) != expected] == []


def test_a_recording_that_ends_its_process_fails_alone(archive, config, whole, tmp_path):
    recordings, first = tmp_path / "recordings", tmp_path / "first"
    recordings.mkdir()
    for path in archive.iterdir():
        (recordings / path.name).symlink_to(path)
    save(recordings / "poison.wav", read_wav(PHRASES)[:16_000])
    (recordings / "broken.wav").write_bytes(b"no audio")
    first.mkdir()
    (first / "sitecustomize.py").write_text(POISON)
    path = os.pathsep.join(filter(None, (str(first), str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    command = arguments(recordings, "--output-dir", tmp_path / "out", "--processes", 2, config=config)
    done = run(command, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 1
    assert "error: the translation stage failed: its process ended with status 11\n" in done.stderr
    assert "broken.wav is not audio" in done.stderr
    assert files(tmp_path / "out") == whole


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_is_resumed(sent, archive, config, whole, tmp_path):
    command = arguments(archive, "--output-dir", tmp_path, "--processes", 2, config=config)
    journal = tmp_path / f"a{JOURNAL_SUFFIX}"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (journal.exists() and journal.read_bytes().count(b'"translation"') >= 1):
            assert process.poll() is None, process.stderr.read()
        process.send_signal(sent)
        said, told = process.communicate(timeout=HANG_S)  # the pipes are closed when its processes have ended
    assert process.returncode == (-sent if sent == signal.SIGKILL else 130), told
    assert "Traceback" not in told
    if sent != signal.SIGKILL:
        assert "interrupted" in said
        assert "interrupted: the same command resumes the run" in told
    assert journal.exists()
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout
    assert files(tmp_path) == whole


def test_a_model_that_is_missing_ends_the_run_with_one_line(archive, config, tmp_path):
    missing = tmp_path / "missing.toml"
    missing.write_text(config.read_text("utf-8").replace('model = "base"', f'model = "{tmp_path}"'))
    done = run(arguments(archive, "--output-dir", tmp_path / "out", "--processes", 2, config=missing))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
