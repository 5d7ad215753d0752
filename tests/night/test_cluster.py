"""A cluster of processes: a scheduler that is killed, a command that is interrupted, a worker without room on its disk."""

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.archives.archives import (
    JOURNAL,
    archive,
    config,
    files,
    hold,
    is_begun,
    options,
    scripted,
    wait_until,
    whole,
)
from tests.archives.test_cluster import Processes, errors, opens
from tests.commands import command, run
from tests.conftest import HANG_S

__all__ = ["archive", "config", "hold", "scripted", "whole"]
pytestmark = [
    pytest.mark.usefixtures("scripted"),
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes"),
]


@pytest.fixture
def cluster(scripted, tmp_path_factory):
    with ExitStack() as stack:
        yield Processes(stack, tmp_path_factory.mktemp("cluster"))


@contextmanager
def begun(archive: Path, config: Path, out: Path, cluster: Processes) -> Iterator[subprocess.Popen[str]]:
    """The command, once the first recording is in progress."""
    given = options(archive, "--output-dir", out, "--cluster", cluster.address, config=config)
    with subprocess.Popen(
        command("translate", *given), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: is_begun(out) or process.poll() is not None)
        yield process


def again(archive, config, out, cluster):
    """The same command once more."""
    done = run("translate", *options(archive, "--output-dir", out, "--cluster", cluster.address, config=config))
    assert done.returncode == 0, done.stderr.decode()
    return done


def test_a_lost_scheduler_is_told_and_the_same_command_goes_on(archive, config, whole, hold, cluster, tmp_path):
    with begun(archive, config, tmp_path, cluster) as process:
        cluster.scheduler.kill()
        _, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert told.splitlines()[-1] == (
        f"error: lost the scheduler {cluster.address}; when it is back, the same command goes on"
    )
    assert "Traceback" not in told
    hold.unlink()
    for worker in cluster.workers:
        worker.wait(HANG_S)  # so that nobody writes
    with ExitStack() as stack:
        again(archive, config, tmp_path, Processes(stack, tmp_path.parent))
    assert files(tmp_path) == whole


def test_an_interrupted_command_cancels_its_jobs_and_goes_on(archive, config, whole, hold, cluster, tmp_path):
    with begun(archive, config, tmp_path, cluster) as process:
        worker = cluster.at_work(tmp_path / JOURNAL)
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "interrupted" in said
    assert told.splitlines()[-1] == "interrupted: the same command resumes the run"
    wait_until(lambda: not opens(worker.pid, tmp_path / JOURNAL))
    assert (tmp_path / JOURNAL).exists(), "the job was cancelled before its end"
    hold.unlink()
    assert b"finished" in again(archive, config, tmp_path, cluster).stdout
    assert files(tmp_path) == whole


def test_a_full_disk_on_one_worker_fails_its_recordings_alone(archive, config, whole, cluster, tmp_path):
    """The worker has a small file system of its own in place of the output folder."""
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=8k tmpfs {tmp_path} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    cluster.workers[0].kill()
    cluster.workers[0].wait()
    full = cluster.work(within=mount)
    done = run("translate", *options(archive, "--output-dir", tmp_path, "--cluster", cluster.address, config=config))
    told = done.stderr.decode()
    assert done.returncode == 1
    assert "Traceback" not in told
    failed = re.findall(r"error: the worker \S+: cannot write \S.* \(No space left on device\).*\n", told)
    assert "".join(failed) == errors(told) != ""
    found = files(tmp_path)
    assert len(found) == 10 - 2 * len(failed)
    assert found.items() <= whole.items(), "the other worker's files are complete"
    full.kill()
    full.wait()
    assert again(archive, config, tmp_path, cluster).stdout.count(b"already there:") == 5 - len(failed)
    assert files(tmp_path) == whole
