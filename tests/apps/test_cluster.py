"""Recordings on a real Dask scheduler and its workers: the same files as from one process, whatever ends."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from pipeline.apps.outputs import JOURNAL_SUFFIX
from pipeline.apps.translate import arguments as translate_arguments
from tests.apps.test_several import archive, arguments, config, files, run, whole
from tests.apps.test_translate import save
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav

__all__ = ["archive", "config", "whole"]
pytestmark = pytest.mark.slow

OTHER_VERSION = "import pipeline\npipeline.__version__ = '0.0.1'\n"


class Cluster:
    """A scheduler and its workers, without nannies: each is one process."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self.scheduler, self.address = self._start("dask_scheduler", "--port", "0")
        self.workers = [self.work(), self.work()]

    def work(self, *more: str, within: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a worker; ``within`` is a program that runs the command after its arguments."""
        options = more or ("--nthreads", "1")
        return self._start("dask_worker", self.address, "--no-nanny", *options, within=within)[0]

    def _start(self, module: str, *options: str, within: Sequence[str] = ()) -> tuple[subprocess.Popen[str], str]:
        """Start a program, and wait until it is ready; its address."""
        program = [*within, sys.executable, "-m", f"distributed.cli.{module}"]
        command = [*program, "--host", "127.0.0.1", "--no-dashboard", *options]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        process = self._stack.enter_context(
            subprocess.Popen(command, cwd=self._folder, env=environment, stderr=subprocess.PIPE, text=True)
        )
        self._stack.callback(process.kill)
        for line in process.stderr:
            if found := re.search(r"(?:Scheduler|Registered) (?:at|to): +(tcp://\S+)", line):
                subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
                return process, found[1]
        raise AssertionError(f"{module} ended with {process.wait()}")


@pytest.fixture
def cluster(tmp_path_factory):
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path_factory.mktemp("cluster"))


@contextmanager
def begun(archive, config, out, cluster):
    """The command, once the first recording is in progress; and the worker that does it."""
    command = arguments(archive, "--output-dir", out, "--cluster", cluster.address, config=config)
    journal = out / f"a{JOURNAL_SUFFIX}"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (journal.exists() and b'"translation"' in journal.read_bytes()):
            assert process.poll() is None, process.stderr.read()
        yield process, next(worker for worker in cluster.workers if opens(worker.pid, journal))


def opens(process: int, path: Path) -> bool:
    return any(os.path.realpath(each) == str(path) for each in Path(f"/proc/{process}/fd").iterdir())


def errors(told: str) -> str:
    return "".join(re.findall("^error.*\n", told, re.M))


def again(archive, config, out, cluster):
    """The same command once more, on a new cluster if the scheduler has ended."""
    done = run(arguments(archive, "--output-dir", out, "--cluster", cluster.address, config=config))
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes")
def test_a_killed_worker_costs_only_its_seconds(archive, config, whole, cluster, tmp_path):
    with begun(archive, config, tmp_path, cluster) as (process, worker):
        worker.kill()
        said, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, told
    assert "finished" in said, "the other worker goes on from the journal"
    assert told.count("times real time") == 5
    assert "Traceback" not in told
    assert files(tmp_path) == whole


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes")
def test_a_lost_scheduler_is_told_and_the_same_command_goes_on(archive, config, whole, cluster, tmp_path):
    with begun(archive, config, tmp_path, cluster) as (process, _):
        cluster.scheduler.kill()
        _, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert told.splitlines()[-1] == (
        f"error: lost the scheduler {cluster.address}; when it is back, the same command goes on"
    )
    assert "Traceback" not in told
    for worker in cluster.workers:
        worker.wait(HANG_S)  # so that nobody writes
    with ExitStack() as stack:
        again(archive, config, tmp_path, Cluster(stack, tmp_path.parent))
    assert files(tmp_path) == whole


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes")
def test_an_interrupted_command_cancels_its_jobs_and_goes_on(archive, config, whole, cluster, tmp_path):
    with begun(archive, config, tmp_path, cluster) as (process, worker):
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=HANG_S)
        assert process.returncode == 130
        assert "interrupted" in said
        assert told.splitlines()[-1] == "interrupted: the same command resumes the run"
        while opens(worker.pid, tmp_path / f"a{JOURNAL_SUFFIX}"):
            assert worker.poll() is None
    assert (tmp_path / f"a{JOURNAL_SUFFIX}").exists(), "the job was cancelled before its end"
    assert "finished" in again(archive, config, tmp_path, cluster).stdout
    assert files(tmp_path) == whole


def test_a_worker_that_cannot_do_the_jobs_is_named(cluster, config, tmp_path):
    recording = tmp_path / "a.wav"
    save(recording, read_wav(PHRASES)[:16_000])
    given = arguments(recording, "--output-dir", tmp_path, "--cluster", cluster.address, config=config)
    several = cluster.work("--nthreads", "2")
    done = run(given)
    assert done.returncode == 2
    assert re.fullmatch(
        r"error: the worker tcp://\S+ cannot be used: it has 2 threads; start it with --nthreads 1\n", done.stderr
    )
    several.kill()
    several.wait()
    preload = tmp_path / "old.py"
    preload.write_text(OTHER_VERSION)
    cluster.work("--nthreads", "1", "--preload", str(preload))
    done = run(given)
    assert done.returncode == 2
    assert "cannot be used: it has version 0.0.1, not" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_recording_that_fails_everywhere_fails_alone(archive, config, whole, cluster, tmp_path):
    broken = tmp_path / "in" / "broken.wav"
    broken.parent.mkdir()
    for path in archive.iterdir():
        (broken.parent / path.name).symlink_to(path)
    broken.write_bytes(b"no audio")
    done = run(arguments(broken.parent, "--output-dir", tmp_path / "out", "--cluster", cluster.address, config=config))
    assert done.returncode == 1
    assert re.fullmatch(r"error: the worker \S+: \S+broken.wav is not audio.*\n", errors(done.stderr))
    assert files(tmp_path / "out") == whole


def test_a_full_disk_on_one_worker_fails_its_recordings_alone(archive, config, whole, cluster, tmp_path):
    """The worker has a small file system of its own in place of the output folder."""
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=8k tmpfs {tmp_path} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    cluster.workers[0].kill()
    cluster.workers[0].wait()
    full = cluster.work(within=mount)
    done = run(arguments(archive, "--output-dir", tmp_path, "--cluster", cluster.address, config=config))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    failed = re.findall(r"error: the worker \S+: cannot write \S.* \(No space left on device\).*\n", done.stderr)
    assert "".join(failed) == errors(done.stderr) != ""
    found = files(tmp_path)
    assert len(found) == 10 - 2 * len(failed)
    assert found.items() <= whole.items(), "the other worker's files are complete"
    full.kill()
    full.wait()
    assert again(archive, config, tmp_path, cluster).stdout.count("already there:") == 5 - len(failed)
    assert files(tmp_path) == whole


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes")
def test_a_folder_that_vanishes_ends_the_command_which_goes_on_later(archive, config, whole, cluster, tmp_path):
    out, gone = tmp_path / "out", tmp_path / "gone"
    with begun(archive, config, out, cluster) as (process, _):
        out.rename(gone)
        _, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    # A worker that begins with a recording does not see the folder, those in the middle of one cannot write. Who is first varies.
    unseen = re.compile(rf"error: the worker \S+: it does not see the folder {out}; mount it there")
    lines = errors(told).splitlines()
    writing = [each for each in lines if not unseen.fullmatch(each)]
    assert len(writing) <= 2, "recordings in progress"
    assert all(each.endswith("when its folder is back, the same command goes on") for each in writing)
    assert lines
    assert "Traceback" not in told
    assert not out.exists(), "nobody makes another in its place"
    for worker in cluster.workers:
        while opens(worker.pid, gone / f"a{JOURNAL_SUFFIX}"):
            assert worker.poll() is None
    gone.rename(out)
    assert "finished" in again(archive, config, out, cluster).stdout
    assert files(out) == whole


def test_a_scheduler_that_does_not_answer_is_told(config, tmp_path, monkeypatch):
    save(tmp_path / "a.wav", read_wav(PHRASES)[:16_000])
    done = run(arguments(tmp_path, "--cluster", "tcp://127.0.0.1:9", config=config))
    assert done.returncode == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_examples_start_a_cluster_and_translate_on_it():
    """Their commands are parsed by the programs that they name."""
    deploy = ROOT / "examples" / "deploy"
    services = yaml.safe_load((deploy / "compose.yaml").read_text("utf-8"))["services"]
    found = [service["entrypoint"] for service in services.values()]
    for part in yaml.safe_load_all((deploy / "kubernetes-cluster.yaml").read_text("utf-8")):
        if part["kind"] != "Service":
            found += [each["command"] for each in part["spec"]["template"]["spec"]["containers"]]
    parsed = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    for program, name, *options in found:
        if program == "dask":
            parsed[name].make_context(name, list(options))
        else:
            assert (program, name) == ("speech-translate", "translate")
            assert translate_arguments().parse_args(options).cluster == "tcp://dask-scheduler:8786"
    assert len(found) == 5
