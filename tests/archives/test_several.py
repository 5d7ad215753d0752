"""Recordings in several processes: the same files as from one process, whatever ends."""

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.archives import several
from pipeline.archives.recordings import Options, plan
from pipeline.archives.results import Result
from pipeline.archives.several import Run, translate_on
from pipeline.config import load_config
from pipeline.errors import ModelError, PipelineError
from tests.archives.archives import (
    JOURNAL,
    archive,
    config,
    deadly,
    files,
    hold,
    is_begun,
    options,
    scripted,
    wait_until,
    whole,
)
from tests.commands import command, run
from tests.conftest import HANG_S

__all__ = ["archive", "config", "hold", "scripted", "whole"]
pytestmark = pytest.mark.usefixtures("scripted")


@pytest.mark.slow
def test_several_processes_write_what_one_process_writes_and_a_recording_that_ends_its_process_fails_alone(
    archive, config, whole, tmp_path
):
    recordings, out = tmp_path / "recordings", tmp_path / "out"
    recordings.mkdir()
    for path in archive.iterdir():
        (recordings / path.name).symlink_to(path)
    poison = deadly(recordings / "poison.wav")
    (recordings / "broken.wav").write_bytes(b"no audio")
    arguments = options(recordings, "--output-dir", out, config=config)
    done = run("translate", *arguments, "--processes", "2")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "error: the translation stage failed: its process ended with status 11\n" in said
    assert "broken.wav is not audio" in said
    assert said.count("times real time") == 5
    for left in out.glob("poison*"):
        left.unlink()
    assert files(out) == whole
    for path in (poison, recordings / "broken.wav"):
        path.unlink()
    again = run("translate", *arguments)
    assert again.returncode == 0
    assert again.stdout.count(b"already there:") == 5


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_resumed(sent, archive, config, whole, hold, tmp_path):
    arguments = options(archive, "--output-dir", tmp_path, "--processes", "2", config=config)
    with subprocess.Popen(
        command("translate", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: is_begun(tmp_path) or process.poll() is not None)
        process.send_signal(sent)
        if sent == signal.SIGKILL:
            process.wait(timeout=HANG_S)
            hold.unlink()  # its processes end when they have something to tell
        said, told = process.communicate(timeout=HANG_S)  # the pipes are closed when its processes have ended
    assert process.returncode == (-sent if sent == signal.SIGKILL else 130), told
    assert "Traceback" not in told
    if sent != signal.SIGKILL:
        assert "interrupted" in said
        assert "interrupted: the same command resumes the run" in told
        hold.unlink()
    assert (tmp_path / JOURNAL).exists()
    done = run("translate", *arguments[:-2])
    assert done.returncode == 0, done.stderr
    assert b"finished" in done.stdout
    assert files(tmp_path) == whole


def test_a_model_that_cannot_be_loaded_ends_the_run(archive, tmp_path, monkeypatch):
    def missing(config):
        raise ModelError("there is none")

    monkeypatch.setattr(several, "_models", missing)
    results = [Result(job) for job in plan([archive], ["srt"], tmp_path, {"zh": ""})]
    with ThreadPoolExecutor(1) as executor, pytest.raises(PipelineError, match=r"^there is none$"):
        translate_on(executor, results, Run(Options(load_config("demo-zh"), False, 1, (), False)), at_once=lambda: 1)
    assert not any(tmp_path.iterdir())
