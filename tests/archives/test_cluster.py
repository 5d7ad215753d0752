"""Recordings on a Dask scheduler and its workers: the same files as from one process, whatever ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import distributed
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from pipeline.apps.translate import arguments as translate_arguments
from pipeline.archives import cluster as on_cluster
from pipeline.archives import several
from pipeline.archives.recordings import Options
from pipeline.archives.turns import Turns
from pipeline.config import load_config
from pipeline.errors import PipelineError
from pipeline.media.sinks.block_file import in_use
from tests.archives.archives import (
    JOURNAL,
    archive,
    config,
    files,
    hold,
    is_begun,
    meanwhile,
    options,
    scripted,
    wait_until,
    whole,
)
from tests.commands import run
from tests.conftest import ROOT

__all__ = ["archive", "config", "hold", "scripted", "whole"]
pytestmark = pytest.mark.usefixtures("scripted")


class Processes:
    """The workers of a scheduler, and maybe itself, without nannies: each is one process."""

    def __init__(self, stack: ExitStack, folder: Path, address: str | None = None) -> None:
        self._stack, self._folder = stack, folder
        if address is None:
            self.scheduler, address = self._start("dask_scheduler", "--port", "0")
        self.address = address
        self.workers = [self.work(), self.work()]

    def work(self, *, within: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a worker; ``within`` is a program that runs the command after its arguments."""
        return self._start("dask_worker", self.address, "--no-nanny", "--nthreads", "1", within=within)[0]

    def at_work(self, journal: Path) -> subprocess.Popen[str]:
        """The worker that writes the journal."""
        return next(worker for worker in self.workers if opens(worker.pid, journal))

    def _start(self, module: str, *more: str, within: Sequence[str] = ()) -> tuple[subprocess.Popen[str], str]:
        """Start a program, and wait until it is ready; its address."""
        program = [*within, sys.executable, "-m", f"distributed.cli.{module}", "--host", "127.0.0.1", "--no-dashboard"]
        process = self._stack.enter_context(
            subprocess.Popen([*program, *more], cwd=self._folder, stderr=subprocess.PIPE, text=True)
        )
        self._stack.callback(process.kill)
        for line in process.stderr:
            if found := re.search(r"(?:Scheduler|Registered) (?:at|to): +(tcp://\S+)", line):
                self._stack.enter_context(subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL))
                self._stack.callback(process.kill)
                return process, found[1]
        raise AssertionError(f"{module} ended with {process.wait()}")


def opens(process: int, path: Path) -> bool:
    return any(os.path.realpath(each) == str(path) for each in Path(f"/proc/{process}/fd").iterdir())


def local(workers: int, threads: int = 1) -> distributed.LocalCluster:
    """A scheduler and workers on threads of this process, which are spoken to as others are."""
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=threads, processes=False, protocol="tcp", dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def cluster():
    with local(1) as made:
        yield made


def errors(told: str) -> str:
    return "".join(re.findall("^error.*\n", told, re.M))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see who writes")
def test_a_killed_worker_costs_only_its_seconds(archive, config, whole, hold, tmp_path, tmp_path_factory):
    with local(0) as made, ExitStack() as stack:
        workers = Processes(stack, tmp_path_factory.mktemp("cluster"), made.scheduler_address)

        def kill() -> None:
            wait_until(lambda: is_begun(tmp_path))
            workers.at_work(tmp_path / JOURNAL).kill()
            hold.unlink()

        arguments = options(archive, "--output-dir", tmp_path, "--cluster", workers.address, config=config)
        done = meanwhile(kill, lambda: run("translate", *arguments))
    told = done.stderr.decode()
    assert done.returncode == 0, told
    assert b"finished" in done.stdout, "the other worker goes on from the journal"
    assert told.count("times real time") == 5
    assert "Traceback" not in told
    assert files(tmp_path) == whole


def test_a_lost_scheduler_is_told(cluster, config, tmp_path, monkeypatch):
    clients = []
    connected = on_cluster._connected

    def lost(*_: object, **__: object) -> None:
        clients[0].close()
        raise PipelineError("the jobs were cancelled")

    monkeypatch.setattr(on_cluster, "_connected", lambda address: clients.append(connected(address)) or clients[0])
    monkeypatch.setattr(on_cluster, "translate_on", lost)
    with pytest.raises(PipelineError, match="^lost the scheduler tcp://.*; when it is back, the same command goes on"):
        on_cluster.translate_on_cluster(cluster.scheduler_address, [], Options(load_config(config)), [], Turns([]))


def test_a_worker_that_ends_while_it_is_checked_is_left_out(capsys):
    run = several.Run(Options(load_config("demo")))

    def client(answers):
        return SimpleNamespace(nthreads=lambda: dict.fromkeys(answers, 1), run=lambda *_, **__: answers)

    on_cluster._check_workers(client({"tcp://a": OSError("Stream is closed"), "tcp://b": None}), run)
    assert capsys.readouterr().err == "the worker tcp://a is left out: Stream is closed\n"
    on_cluster._check_workers(client({"tcp://a": OSError("Stream is closed")}), run)
    assert capsys.readouterr().err.endswith("\nthe cluster has no worker yet; waiting for one\n")
    with pytest.raises(PipelineError, match="the worker tcp://b cannot be used: no module"):
        on_cluster._check_workers(client({"tcp://b": ImportError("no module")}), run)


def test_a_cluster_without_workers_is_given_a_job_so_that_it_can_grow():
    threads: dict[str, int] = {}
    at_once = on_cluster._worker_count(SimpleNamespace(nthreads=lambda: threads))
    assert at_once() == 1


def test_an_interrupted_command_cancels_its_jobs_and_goes_on(archive, config, whole, hold, cluster, tmp_path):
    def interrupt() -> None:
        wait_until(lambda: is_begun(tmp_path))
        os.kill(os.getpid(), signal.SIGINT)

    arguments = options(archive, "--output-dir", tmp_path, "--cluster", cluster.scheduler_address, config=config)
    done = meanwhile(interrupt, lambda: run("translate", *arguments))
    assert done.returncode == 130
    # The client may not have been told yet that the worker has begun.
    assert b"interrupted" in done.stdout or b"5 recordings: 5 not begun" in done.stdout
    assert done.stderr.decode().splitlines()[-1] == "interrupted: the same command resumes the run"
    wait_until(lambda: not in_use(tmp_path / JOURNAL))
    assert (tmp_path / JOURNAL).exists(), "the job was cancelled before its end"
    hold.unlink()
    again = run("translate", *arguments)
    assert again.returncode == 0, again.stderr.decode()
    assert b"finished" in again.stdout
    assert files(tmp_path) == whole


def test_a_worker_that_cannot_do_the_jobs_is_named(cluster, archive, config, tmp_path, monkeypatch):
    def refused(address: str) -> str:
        done = run("translate", *options(archive, "--output-dir", tmp_path, "--cluster", address, config=config))
        assert done.returncode == 2
        return done.stderr.decode()

    with local(1, threads=2) as made:
        assert re.fullmatch(
            r"error: the worker tcp://\S+ cannot be used: it has 2 threads; start it with --nthreads 1\n",
            refused(made.scheduler_address),
        )
    monkeypatch.setattr(several, "__version__", "0.0.1")
    said = refused(cluster.scheduler_address)
    assert "cannot be used: it has version 0.0.1, not" in said
    assert said.count("\n") == 1


def test_a_recording_that_fails_everywhere_fails_alone(archive, config, whole, cluster, tmp_path):
    broken = tmp_path / "in" / "broken.wav"
    broken.parent.mkdir()
    for path in archive.iterdir():
        (broken.parent / path.name).symlink_to(path)
    broken.write_bytes(b"no audio")
    given = (broken.parent, "--output-dir", tmp_path / "out", "--cluster", cluster.scheduler_address)
    done = run("translate", *options(*given, config=config))
    assert done.returncode == 1
    assert re.fullmatch(r"error: the worker \S+: \S+broken.wav is not audio.*\n", errors(done.stderr.decode()))
    assert files(tmp_path / "out") == whole


@pytest.mark.slow
def test_a_folder_that_vanishes_ends_the_command_which_goes_on_later(archive, config, whole, hold, cluster, tmp_path):
    out, gone = tmp_path / "out", tmp_path / "gone"
    arguments = options(archive, "--output-dir", out, "--cluster", cluster.scheduler_address, config=config)

    def vanish() -> None:
        wait_until(lambda: is_begun(out))
        out.rename(gone)
        hold.unlink()

    done = meanwhile(vanish, lambda: run("translate", *arguments))
    told = done.stderr.decode()
    assert done.returncode == 1
    # The worker cannot write the recording that it is in the middle of, and does not begin another.
    writing, beginning = errors(told).splitlines()
    assert writing.endswith("when its folder is back, the same command goes on")
    assert re.fullmatch(rf"error: the worker \S+: it does not see the folder {out}; mount it there", beginning)
    assert "Traceback" not in told
    assert not out.exists(), "nobody makes another in its place"
    gone.rename(out)
    assert b"finished" in run("translate", *arguments).stdout
    assert files(out) == whole


def test_a_scheduler_that_does_not_answer_is_told(archive, config, monkeypatch):
    monkeypatch.setattr(on_cluster, "_CONNECT_S", 0.1)
    done = run("translate", *options(archive, "--cluster", "tcp://127.0.0.1:9", config=config))
    assert done.returncode == 2
    assert b"no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_the_examples_start_a_cluster_and_translate_on_it():
    """Their commands are parsed by the programs that they name."""
    deploy = ROOT / "examples" / "deploy"
    services = yaml.safe_load((deploy / "compose.yaml").read_text("utf-8"))["services"]
    found = [service["entrypoint"] for service in services.values()]
    for part in yaml.safe_load_all((deploy / "kubernetes-cluster.yaml").read_text("utf-8")):
        if part["kind"] != "Service":
            found += [each["command"] for each in part["spec"]["template"]["spec"]["containers"]]
    parsed = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    for program, name, *given in found:
        if program == "dask":
            parsed[name].make_context(name, list(given))
        else:
            assert (program, name) == ("speech-translate", "translate")
            assert translate_arguments().parse_args(given).cluster == "tcp://dask-scheduler:8786"
    assert len(found) == 5
