"""Two hundred recordings on three workers: whatever fails meanwhile, the files are those of one process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline.apps.journal import SUFFIX
from pipeline.events import Samples
from pipeline.names import escaped
from pipeline.resources import CONFIGS
from tests.apps.test_cluster import NOTING, POISON, Cluster, arguments, begun, ended
from tests.apps.test_translate import save
from tests.conftest import EXAMPLES, HANG_S, PHRASES, read_wav

COUNT = 200
POISONED = "poison.wav"
TRANSCRIPT = b'{"type": "transcript"'
LONG = tuple(f"meeting-long-{number}.wav" for number in range(6))
# The names of some recordings, which the shell, URLs or patterns would read in another way, or which are too long for one of
# the suffixes.
ODD = (
    "-day.wav",
    "day's *.wav",
    "day #1?.wav",
    "day%20a.wav",
    "Tag für Tag.wav",
    "会议 1.wav",
    "s3:x.wav",
    f"z{'x' * 245}.wav",
)

# Runs in a worker before anything else: from its fourth recording on, the disk is full in the middle of one recording, and for
# the two after it.
FULL_FOR = 3
FULL = f"""
import errno, os, stat
from pathlib import Path
from pipeline.audio import recording
log, real_write, unwatched = Path(__file__).parent / "full", os.write, recording.Recording.__init__
failed = log.read_text("utf-8").splitlines() if log.exists() else []
name, recordings, writes = "", 0, 0
def watched(self, path, **options):
    global name, recordings, writes
    name, recordings, writes = path.name, recordings + 1, 0
    unwatched(self, path, **options)
def write(descriptor, data):
    global writes
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        writes += 1
        if recordings > 3 and len(failed) < {FULL_FOR} and (failed or writes > 5):
            failed.append(name)
            log.write_text("".join(f"{{each}}\\n" for each in failed), "utf-8")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real_write(descriptor, data)
recording.Recording.__init__, os.write = watched, write
"""


def recordings() -> Iterator[tuple[str, Samples]]:
    """Two to three seconds each, cut from speech at any place and mixed; six of ten seconds, and some without speech."""
    chance = np.random.default_rng(36)
    speech = {name: read_wav(EXAMPLES / f"{name}.wav") for name in ("day", "meeting", "novel", "travel")}
    speech["phrases"] = read_wav(PHRASES)

    def cut(source: Samples, length: int) -> Samples:
        begin = chance.integers(len(source) - length)
        return source[begin : begin + length]

    short = COUNT - len(LONG) - len(ODD) - 1
    for number in range(short):
        name = sorted(speech)[number % len(speech)]
        samples = cut(speech[name], int(chance.integers(24_000, 40_000)))
        if number % 4 == 1:
            samples = samples + cut(speech["novel"], len(samples)) // 8
        elif number % 4 == 2:
            samples = samples + chance.normal(0, 30, len(samples)).astype(np.int16)
        yield f"{name}-{number:03}.wav", np.zeros_like(samples) if number % 40 == 7 else samples
    for name in LONG:
        yield name, cut(speech["meeting"], 16_000 * 10)
    for name in (*ODD, POISONED):
        yield name, cut(speech["day"], 32_000)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The demo's configuration with a smaller model and one hypothesis, which take less time, and a segment at a time."""
    text = (CONFIGS / "demo-zh.toml").read_text("utf-8").replace("../models", str(CONFIGS.parent / "models"))
    path = tmp_path / "demo.toml"
    path.write_text(text.replace('model = "base"', 'model = "tiny.en"\njoin_ms = 0\nbeam_size = 1'))
    return path


def until(condition: Callable[[], bool], run: subprocess.Popen[bytes]) -> None:
    """Wait until a condition holds, while ``run`` runs."""
    while not condition():
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(0.02)
            raise AssertionError("the run ended first")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def reported(report: Path, folder: Path) -> dict[str, str]:
    """Recording → its line of the table, which has each recording once."""
    lines = report.read_text("utf-8").splitlines()
    found = {
        path.name: [line for line in lines if line.startswith(f" {escaped(str(path))} ")] for path in folder.iterdir()
    }
    assert [name for name, rows in found.items() if len(rows) != 1] == []
    return {name: rows[0] for name, rows in found.items()}


def named(rows: dict[str, str], *outcomes: str) -> set[str]:
    return {name for name, row in rows.items() if any(f"  {outcome}" in row for outcome in outcomes)}


class Runs:
    """Runs of the command over the same recordings, with their reports and errors."""

    def __init__(self, folder: Path, config: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self._config, self._stack = folder, config, stack
        self.recordings = folder / "recordings"

    def start(self, name: str, out: Path, *options: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.txt").open("wb") as report, (self.folder / f"{name}.err").open("wb") as errors:
            run = subprocess.Popen(
                arguments(self.recordings, "--output-dir", out, *options, config=self._config),
                stdout=report, stderr=errors, process_group=0,
            )  # fmt: skip
        self._stack.callback(ended, run)
        return run

    def errors(self, name: str) -> str:
        return (self.folder / f"{name}.err").read_text("utf-8")

    def rows(self, name: str) -> dict[str, str]:
        return reported(self.folder / f"{name}.txt", self.recordings)


def victim(workers: list[Path], out: Path) -> tuple[int, str] | None:
    """A process that has recognised the first of several segments of a long recording."""
    for worker in workers:
        for process, name in begun(worker)[-1:]:
            with contextlib.suppress(FileNotFoundError):
                if name in LONG and (out / f"{Path(name).stem}{SUFFIX}").read_bytes().count(TRANSCRIPT) == 1:
                    return process, name
    return None


def kill_worker(workers: list[Path], out: Path, run: subprocess.Popen[bytes]) -> str:
    """Kill the process of a worker in the middle of a long recording, whose name is returned."""
    found: list[tuple[int, str]] = []

    def kill() -> bool:
        if (one := victim(workers, out)) is not None:
            os.kill(one[0], signal.SIGKILL)
            found.append(one)
        return bool(found)

    until(kill, run)
    return found[0][1]


def complete(out: Path) -> int:
    return len([path for path in out.glob("*.srt") if ".unfinished." not in path.name])


def without(files: dict[str, bytes], recordings: set[str]) -> dict[str, bytes]:
    """The files that are not those of these recordings."""
    stems = {Path(name).stem for name in recordings}
    return {name: data for name, data in files.items() if Path(name).stem not in stems}


def supervised(cluster: Cluster, run: subprocess.Popen[bytes]) -> int:
    """Replace workers that end because they lost the scheduler, as a service manager does. Returns the run's exit status."""
    running = list(cluster.workers)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return run.wait(0.1)
        ended_now = [worker for worker in running if worker.poll() is not None]
        running = [worker for worker in running if worker not in ended_now]
        running += [cluster.start_worker(POISON + NOTING) for _ in ended_now]


def begun_by_all(folder: Path) -> Counter[str]:
    """How often each recording was begun."""
    return Counter(name for worker in folder.glob("worker*") for _, name in begun(worker))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_recordings_are_those_of_one_process_whatever_fails(tmp_path: Path, config: Path) -> None:
    with contextlib.ExitStack() as stack:
        runs, out = Runs(tmp_path, config, stack), tmp_path / "out"
        for name, samples in recordings():
            save(runs.recordings / name, samples)
        assert len(list(runs.recordings.iterdir())) == COUNT
        alone = runs.start("alone", tmp_path / "whole")
        cluster = Cluster(tmp_path, stack)
        for preload in (POISON + NOTING, POISON + NOTING, POISON + NOTING + FULL):
            cluster.start_worker(preload)
        run = runs.start("first", out, "--cluster", cluster.address)
        until(lambda: runs.errors("first").count("No space left on device") == FULL_FOR, run)
        full = set((tmp_path / "worker2" / "full").read_text("utf-8").splitlines())
        assert len(full) == FULL_FOR
        killed = kill_worker([tmp_path / "worker0", tmp_path / "worker1"], out, run)
        until((out / f"{Path(killed).stem}.srt").exists, run)
        before = complete(out)
        until(lambda: complete(out) >= before + 10, run)
        ended(cluster.scheduler)
        cluster.start_scheduler(cluster.address.rpartition(":")[2])
        assert supervised(cluster, run) == 1
        assert alone.wait(HANG_S) == 0

        whole, silent = contents(tmp_path / "whole"), named(runs.rows("alone"), "no subtitles") - {POISONED}
        assert len(whole) == 2 * COUNT
        rows, found, counts = runs.rows("first"), contents(out), begun_by_all(tmp_path)
        assert named(rows, "failed") == full | {POISONED}
        assert killed in named(rows, "finished")
        assert named(rows, "no subtitles") == silent - full
        errors = runs.errors("first")
        assert f"{POISONED} ended every worker that tried it" in errors
        assert "the scheduler was lost" in errors
        assert "Traceback" not in errors
        unfinished = {name for name in found if ".unfinished." in name}
        assert unfinished, "what was recognised before the disk was full is kept"
        assert {name.partition(".unfinished.")[0] for name in unfinished} <= {Path(name).stem for name in full}
        assert {name: found[name] for name in found.keys() - unfinished} == without(whole, full | {POISONED})
        repeated = {name for name, count in counts.items() if count > 1}
        assert len(repeated - {killed, POISONED}) <= 3, "only those in progress when the scheduler was lost"
        assert repeated.isdisjoint(full)

        again = runs.start("again", out, "--cluster", cluster.address)
        assert supervised(cluster, again) == 1
        rows = runs.rows("again")
        assert named(rows, "failed") == {POISONED}
        assert named(rows, "no subtitles") == silent
        # What was done on a worker that died before it sent the result is reported as already there.
        assert named(rows, "done", "finished") <= full - silent
        assert len(named(rows, "done", "finished", "already there")) == COUNT - 1 - len(silent)
        assert (begun_by_all(tmp_path) - counts).keys() == {POISONED} | full | silent
        assert contents(out) == without(whole, {POISONED})
