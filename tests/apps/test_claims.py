"""Recordings that several machines claim: each is done by one, and one that ends loses its claim."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.apps import claims
from pipeline.apps.claims import Claims
from pipeline.apps.outputs import JOURNAL_SUFFIX
from pipeline.apps.recordings import plan
from pipeline.apps.results import Result
from pipeline.apps.translate import run as translate
from tests.apps.test_several import archive, arguments, config, files, whole
from tests.conftest import HANG_S

__all__ = ["archive", "config", "whole"]


@pytest.fixture
def folder(tmp_path):
    for name in ("a.wav", "b.wav", "c.wav"):
        (tmp_path / name).write_bytes(b"no audio " * ord(name[0]))
    return tmp_path


@pytest.fixture
def at_once(monkeypatch):
    """Claims are looked at again at once."""
    monkeypatch.setattr(claims, "AGAIN_S", 0.0)


class Clock:
    """Time that a test lets pass."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(claims.time, "monotonic", lambda: self.now)


def machine(folder: Path) -> Claims:
    return Claims([Result(job) for job in plan([folder], ["srt"], None, {"zh": ""})])


def claimed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*claimed*"))


def test_each_recording_has_one_machine(folder):
    first, second = machine(folder), machine(folder)
    assert [first.take(), second.take(), first.take(), second.take(), first.take()] == [2, 1, 0, None, None]
    assert claimed(folder) == ["a.claimed", "b.claimed", "c.claimed"]
    assert (folder / "c.claimed").read_text().split()[1] == str(os.getpid())
    assert (first.left, second.left) == (1, 2)


def test_a_released_recording_is_looked_at_by_others(folder, at_once):
    first, second = machine(folder), machine(folder)
    assert [first.take(), first.take(), first.take(), second.take()] == [2, 1, 0, None]
    first.release(1)
    assert second.take() == 1
    with first:
        pass
    assert claimed(folder) == ["b.claimed"], "the end of a run releases its claims"


def test_a_claim_that_nobody_touches_is_taken_over_once(folder, monkeypatch, at_once):
    clock = Clock(monkeypatch)
    ended, second, third = machine(folder), machine(folder), machine(folder)
    assert [ended.take() for _ in range(3)] == [2, 1, 0]
    assert second.take() is third.take() is None
    clock.now += claims.STALE_S / 2
    os.utime(folder / "b.claimed", (0, 0))  # touched by a machine whose clock is wrong
    assert second.take() is third.take() is None
    clock.now += claims.STALE_S / 2 + 1
    assert sorted([second.take(), third.take()]) == [0, 2]
    assert second.take() is third.take() is None
    assert claimed(folder) == ["a.claimed", "a.claimed.2", "b.claimed", "c.claimed", "c.claimed.2"]
    with second, third:
        pass
    assert claimed(folder) == ["b.claimed"]


def test_a_machine_at_work_touches_its_claims(folder, monkeypatch):
    monkeypatch.setattr(claims, "TOUCH_S", 0.0)
    with machine(folder) as first:
        first.take()
        claim = folder / "c.claimed"
        os.utime(claim, (0, 0))
        while claim.stat().st_mtime == 0:
            pass


def test_a_machine_that_goes_on_touches_its_own_claim(folder, monkeypatch, at_once):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(claims, "TOUCH_S", 0.0)
    ended, second = machine(folder), machine(folder)
    assert [ended.take(), *(second.take() for _ in range(3))] == [2, 1, 0, None]
    clock.now += claims.STALE_S + 1
    assert second.take() == 2
    claim = folder / "c.claimed.2"
    os.utime(claim, (0, 0))
    with second:
        while claim.stat().st_mtime == 0:
            pass


def test_existing_subtitles_are_not_replaced_by_machines_that_claim(folder, capsys):
    assert translate([str(folder), "--claim", "--config", "demo-zh"]) == 1
    assert capsys.readouterr().err.count("is not audio") == 3
    assert claimed(folder) == []
    with pytest.raises(translate.__globals__["UsageError"], match="--claim leaves existing subtitles"):
        translate([str(folder), "--claim", "--overwrite", "--config", "demo-zh"])


@pytest.mark.slow
def test_machines_on_one_folder_write_what_one_process_writes(archive, config, whole, tmp_path):
    """One is killed and leaves its claim and its journal; the others share the rest, and one goes on from the journal."""
    command = arguments(archive, "--output-dir", tmp_path, "--claim", config=config)
    journal = tmp_path / f"a{JOURNAL_SUFFIX}"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while not (journal.exists() and b'"translation"' in journal.read_bytes()):
            assert process.poll() is None
        process.kill()
    assert (tmp_path / "a.claimed").exists()
    soon = f"""
import sys
from pipeline.apps import claims
from pipeline.apps.translate import run
claims.TOUCH_S, claims.STALE_S = 1.0, 15.0
sys.exit(run({command[3:]}))
"""
    others = [subprocess.Popen([sys.executable, "-c", soon], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=HANG_S)[0] for each in others]
    assert [each.returncode for each in others] == [0, 0]
    assert sum(each.count("finished") for each in said) >= 1
    assert files(tmp_path) == whole


@pytest.mark.slow
def test_a_folder_that_vanishes_ends_a_machine_that_claims_and_it_goes_on_later(archive, config, whole, tmp_path):
    out, gone = tmp_path / "out", tmp_path / "gone"
    command = arguments(archive, "--output-dir", out, "--claim", config=config)
    journal = out / f"a{JOURNAL_SUFFIX}"
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        while not (journal.exists() and b'"translation"' in journal.read_bytes()):
            assert process.poll() is None
        out.rename(gone)
        told = process.communicate(timeout=HANG_S)[1]
    assert process.returncode == 1
    assert [line for line in told.splitlines() if line.startswith("error")] == [
        f"error: cannot write {out / 'a.srt'} (No such file or directory); when its folder is back, the same command goes on",
        f"error: the folder {out} is gone; when it is back, the same command goes on",
    ]
    assert not out.exists(), "another in its place would hide the claims of others"
    gone.rename(out)
    (out / "a.claimed").unlink()  # else it is free after two minutes
    subprocess.run(command, check=True, timeout=HANG_S)
    assert files(out) == whole
