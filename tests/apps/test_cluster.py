"""Recordings spread over Dask workers: the same files as from one process, whatever dies."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from distributed import Client, Worker
from distributed.client import FutureCancelledError, FuturesCancelledError

from pipeline.apps.cluster import Address, SchedulerLostError, noticing_loss, parse_address
from pipeline.apps.cluster_worker import TOPIC, ModelsPlugin
from pipeline.apps.journal import SUFFIX
from pipeline.errors import UsageError
from pipeline.resources import CONFIGS
from tests.apps.test_translate import save
from tests.conftest import EXAMPLES, HANG_S, PHRASES, read_wav

KINDS = "srt,jsonl"
OPTIONS = ("--format", KINDS)

# Runs in the workers before anything else: what a test needs to go wrong there.
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
# Notes each recording that is begun on the worker, after the number of the process.
NOTING = """
import os
from pathlib import Path
from pipeline.audio import recording
notes, unnoted = Path(__file__).parent / "begun", recording.Recording.__init__
def noted(self, path, **options):
    with notes.open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {path.name}\\n")
    unnoted(self, path, **options)
recording.Recording.__init__ = noted
"""
# Once, the disk is full in the middle of a recording.
FULL = """
import errno, os
real, left = os.write, 6
def write(descriptor, data):
    global left
    left -= "/out/a." in os.readlink(f"/proc/self/fd/{descriptor}")
    if left == 0:
        left = -1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real(descriptor, data)
os.write = write
"""
OTHER_VERSION = """
import pipeline
pipeline.__version__ = "0.0.1"
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's configuration, recognising a segment at a time."""
    text = (CONFIGS / "demo-zh.toml").read_text("utf-8").replace("../models", str(CONFIGS.parent / "models"))
    path = tmp_path_factory.mktemp("config") / "demo.toml"
    path.write_text(text.replace('model = "base"', 'model = "base"\njoin_ms = 0'))
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five recordings, the first of them long enough to be interrupted. A shell, a URL or a pattern would misread some names."""
    folder = tmp_path_factory.mktemp("archive")
    travel = read_wav(EXAMPLES / "travel.wav")
    save(folder / "a.wav", travel)
    for number, name in enumerate(("-b's *", "b%20 #1?", f"z{'x' * 245}")):
        save(folder / f"{name}.wav", travel[16_000 * 4 * number : 16_000 * 4 * (number + 1)])
    save(folder / "c.wav", read_wav(PHRASES)[: 16_000 * 5])
    return folder


def arguments(*more: object, config: Path) -> list[str]:
    return [sys.executable, "-m", "pipeline.translate", *OPTIONS, "--config", str(config), *map(str, more)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(archive: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    out = tmp_path_factory.mktemp("whole")
    subprocess.run(arguments(archive, "--output-dir", out, config=config), check=True, timeout=HANG_S)
    found = files(out)
    assert len(found) == 10
    return found


class Cluster:
    """A Dask scheduler and workers on loopback, as processes of their own."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.workers: list[subprocess.Popen[str]] = []
        self.start_scheduler("0")

    def start_scheduler(self, port: str) -> None:
        self.scheduler = self._started(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show"
        )
        self.address = "tcp://" + awaited(self.scheduler, "Scheduler at:").rpartition("tcp://")[2].strip()

    def start_worker(self, first: str = "") -> subprocess.Popen[str]:
        """Start a worker that runs the code ``first`` before anything else."""
        own = self.folder / f"worker{len(self.workers)}"
        own.mkdir()
        (own / "sitecustomize.py").write_text(first)
        worker = self._started(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(own), path=own
        )
        awaited(worker, "Registered to")
        self.workers.append(worker)
        return worker

    def _started(self, *command: str, path: Path | None = None) -> subprocess.Popen[str]:
        paths = os.pathsep.join(filter(None, (str(path or ""), str(Path.cwd()), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-c", "from dask.__main__ import main; main()", *command],
            env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip
        self._stack.callback(ended, process)
        return process


def awaited(process: subprocess.Popen[str], words: str) -> str:
    """The first line of standard error with these words; the rest is read and forgotten."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            threading.Thread(target=drained, args=(process.stderr,), daemon=True).start()
            return line
    raise AssertionError(f"it ended without a line with {words!r}")


def drained(stream: IO[str]) -> None:
    for _ in stream:
        pass


def ended(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path, stack)


@pytest.mark.slow
def test_processes_of_this_machine_write_what_one_process_writes(archive, config, whole, tmp_path):
    command = arguments(archive, "--output-dir", tmp_path, "--cluster", "local:2", config=config)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == whole
    again = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert again.returncode == 0
    assert again.stdout.count("already there:") == 5


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be tied to a core")
def test_the_number_of_cores_changes_no_file(tmp_path):
    one_core = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    runs = {
        "two threads": ([], {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}, []),
        "one thread": ([], {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, []),
        "one core": (one_core, {}, []),
        "two processes": ([], {}, ["--cluster", "local:2"]),
    }
    for name, (before, threads, options) in runs.items():
        audio = [EXAMPLES / "novel.wav", PHRASES]
        command = arguments(*audio, "--output-dir", tmp_path / name, *options, config=CONFIGS / "demo.toml")
        subprocess.run([*before, *command], env=os.environ | threads, check=True, timeout=HANG_S)
    expected = files(tmp_path / "two threads")
    assert len(expected) == 4
    assert [name for name in runs if files(tmp_path / name) != expected] == []


def begun(worker: Path) -> list[tuple[int, str]]:
    """What ``NOTING`` noted in the folder of a worker: processes and recordings."""
    notes = worker / "begun"
    lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return [(int(process), name) for process, _, name in (line.partition(" ") for line in lines)]


@pytest.mark.slow
def test_a_recording_that_ends_its_workers_fails_alone(archive, config, whole, cluster, tmp_path):
    recordings, out = tmp_path / "recordings", tmp_path / "out"
    recordings.mkdir()
    for path in archive.iterdir():
        (recordings / path.name).symlink_to(path)
    save(recordings / "poison.wav", read_wav(PHRASES)[:16_000])
    cluster.start_worker(POISON)
    cluster.start_worker(POISON)
    command = arguments(recordings, "--output-dir", out, "--cluster", cluster.address, config=config)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert "poison.wav ended every worker that tried it" in done.stderr
    assert files(out) == whole


@pytest.mark.slow
def test_what_a_lost_worker_had_finished_is_not_begun_again(config, tmp_path, monkeypatch):
    recordings = tmp_path / "recordings"
    save(recordings / "poison.wav", read_wav(PHRASES)[:16_000])
    (recordings / "broken.wav").write_bytes(b"no audio")
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    with contextlib.ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        cluster.start_worker(POISON + NOTING)
        command = arguments(recordings, "--output-dir", tmp_path / "out", "--cluster", cluster.address, config=config)
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert "poison.wav ended every worker that tried it" in done.stderr
    assert [name for _, name in begun(tmp_path / "worker0")] == ["broken.wav", "poison.wav", "poison.wav"]


@pytest.mark.slow
def test_a_recording_for_which_the_disk_was_full_is_finished_by_the_next_run(archive, config, whole, cluster, tmp_path):
    out = tmp_path / "out"
    cluster.start_worker(FULL)
    command = arguments(archive, "--output-dir", out, "--cluster", cluster.address, config=config)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert done.stderr.count("No space left on device") == 1
    found = files(out)
    assert {name for name in found if name.startswith("a.unfinished.")}, "what was recognised before is kept"
    others = {name: content for name, content in found.items() if not name.startswith("a.")}
    assert others == {name: content for name, content in whole.items() if not name.startswith("a.")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("already there:") == 4
    assert files(out) == whole


def when_begun(journal: Path, process: subprocess.Popen[str], then: Callable[[], None]) -> None:
    """Call ``then`` once the journal has an event, while ``process`` runs."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if journal.read_bytes().count(b"\n") > 2:
                then()
                return
    raise AssertionError("the run ended first")


@pytest.mark.slow
def test_another_worker_finishes_what_a_killed_worker_began(archive, config, whole, cluster, tmp_path):
    out = tmp_path / "out"
    first = cluster.start_worker()
    command = arguments(archive, "--output-dir", out, "--cluster", cluster.address, config=config)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:

        def kill() -> None:
            cluster.start_worker()
            os.killpg(first.pid, signal.SIGKILL)

        when_begun(out / f"a{SUFFIX}", run, kill)
        stdout, stderr = run.communicate(timeout=HANG_S)
    assert run.returncode == 0, stderr
    assert files(out) == whole
    assert "finished" in stdout, "the second worker resumed the recording"


@pytest.mark.slow
def test_a_lost_scheduler_is_waited_for(archive, config, whole, cluster, tmp_path):
    out = tmp_path / "out"
    cluster.start_worker()
    command = arguments(archive, "--output-dir", out, "--cluster", cluster.address, config=config)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:

        def restart() -> None:
            ended(cluster.scheduler)
            ended(cluster.workers[0])
            cluster.start_scheduler(cluster.address.rpartition(":")[2])
            cluster.start_worker()

        when_begun(out / f"a{SUFFIX}", run, restart)
        _, stderr = run.communicate(timeout=HANG_S)
    assert run.returncode == 0, stderr
    assert "the scheduler was lost" in stderr
    assert "Traceback" not in stderr
    assert files(out) == whole


@pytest.mark.parametrize("error", [FutureCancelledError("translate-1", "lost"), FuturesCancelledError([]), OSError()])
def test_cancelled_results_mean_that_the_scheduler_was_lost(error):
    with pytest.raises(SchedulerLostError), noticing_loss():
        raise error


def test_threads_of_workers_are_not_sampled(cluster):
    """Old versions of Python can hang there."""

    def callbacks(dask_worker: Worker) -> list[str]:
        return list(dask_worker.periodic_callbacks)

    cluster.start_worker()
    with Client(cluster.address) as client:
        (before,) = client.run(callbacks).values()
        client.register_plugin(ModelsPlugin(), name=TOPIC)
        (after,) = client.run(callbacks).values()
    assert set(before) - set(after) == {"profile", "profile-cycle"}


def test_workers_of_another_version_are_refused(archive, config, cluster, tmp_path):
    cluster.start_worker(OTHER_VERSION)
    command = arguments(archive, "--output-dir", tmp_path / "out", "--cluster", cluster.address, config=config)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 2
    assert "has version 0.0.1 of this package" in done.stderr
    assert not [*(tmp_path / "out").iterdir()]


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_reported(archive, config, tmp_path):
    command = arguments(archive, "--output-dir", tmp_path, "--cluster", "tcp://127.0.0.1:1", config=config)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["localhost", "local:0", "local:x", "http://host:80", "tcp://host", "tcp:host:1", ""])
def test_an_address_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="is no cluster"):
        parse_address(text)


def test_addresses():
    assert parse_address("local:3") == Address(processes=3)
    assert parse_address("local").processes >= 1
    assert parse_address("tls://10.0.0.1:8786") == Address("tls://10.0.0.1:8786")
