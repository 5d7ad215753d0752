"""Recordings that several machines claim: each is done by one, and one that ends loses its claim."""

import os
import subprocess
from collections import deque
from pathlib import Path

import pytest

from pipeline.apps.translate import run as translate
from pipeline.archives import claims
from pipeline.archives.claims import Claims
from pipeline.archives.recording_run import open_recording
from pipeline.archives.recordings import Begin, Options, plan
from pipeline.archives.results import Result
from pipeline.config import load_config
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
from tests.commands import command, run

__all__ = ["archive", "config", "hold", "scripted", "whole"]


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


def machine_of(other: Claims) -> Claims:
    """Another machine with the same jobs."""
    return Claims([Result(job) for job in other._jobs])


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


def test_who_waits_for_others_says_so_once_and_not_while_it_works(folder, at_once, capsys):
    first, second = machine(folder), machine(folder)
    assert [first.take(), second.take(), first.take(), second.take()] == [2, 1, 0, None]
    assert capsys.readouterr().err == ""
    second.release(1)
    assert [first.take(), second.take(), second.take()] == [1, None, None]
    assert capsys.readouterr().err == "waiting for other machines, which have claimed 2 recordings\n"


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


def test_touches_go_on_after_any_error(folder, monkeypatch, caplog):
    monkeypatch.setattr(claims, "TOUCH_S", 0.0)
    touch, left = claims._Files.touch, [ValueError("odd"), FileNotFoundError("gone")]

    def failing(self, claim):
        if left:
            raise left.pop()
        touch(self, claim)

    monkeypatch.setattr(claims._Files, "touch", failing)
    with machine(folder) as first:
        first.take()
        claim = folder / "c.claimed"
        os.utime(claim, (0, 0))
        while claim.stat().st_mtime == 0:
            pass
    assert [record.message.partition("claimed ")[2] for record in caplog.records] == [
        "was not touched (gone); it is tried again",
        "was not touched (odd); it is tried again",
    ]


@pytest.mark.parametrize("waited", [True, False])
def test_what_another_machine_translated_is_said_so(folder, at_once, waited):
    first, second = machine(folder), machine(folder)
    index = first.take()
    if waited:
        assert second.take() == 1
        second._waiting = deque([index])
        assert second.take() is None
    first.release(index)
    assert (second.take() if waited else second._claim(index) and index) == index
    result = second._results[index]
    result.how, result.outcome = Begin.SKIP, "already there"
    second.release(index)
    assert result.outcome == ("translated by another machine" if waited else "already there")


def test_a_recording_that_vanishes_is_said_to_be_gone_and_leaves_no_claim(folder, monkeypatch, at_once):
    clock, ended = Clock(monkeypatch), machine(folder)
    assert ended.take() == 2
    (folder / "c.wav").unlink()
    with (other := machine_of(ended)) as turns:
        assert [turns.take() for _ in range(2)] == [1, 0]
        assert turns.take() is None
        clock.now += claims.STALE_S + 1
        assert turns.take() == 2
        result = other._results[2]
        assert open_recording(result, Options(load_config("demo-zh"))) is None
        assert result.summary.startswith(f"failed: {folder / 'c.wav'} is gone, which was there when the run began")
    assert claimed(folder) == []


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
def test_a_machine_goes_on_from_the_journal_of_one_that_was_killed(
    archive, config, whole, hold, tmp_path, at_once, monkeypatch
):
    """The killed one leaves its claim and its journal."""
    arguments = options(archive, "--output-dir", tmp_path, "--claim", config=config)
    with subprocess.Popen(
        command("translate", *arguments), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: is_begun(tmp_path) or process.poll() is not None)
        process.kill()
    hold.unlink()
    assert (tmp_path / JOURNAL).exists()
    assert (tmp_path / "a.claimed").exists()
    monkeypatch.setattr(claims, "STALE_S", -1.0)
    done = run("translate", *arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert b"a.wav: finished" in done.stdout
    assert files(tmp_path) == whole


def test_a_folder_that_vanishes_ends_a_machine_that_claims_and_it_goes_on_later(archive, config, whole, hold, tmp_path):
    out, gone = tmp_path / "out", tmp_path / "gone"
    arguments = options(archive, "--output-dir", out, "--claim", config=config)

    def vanish() -> None:
        wait_until(lambda: is_begun(out))
        out.rename(gone)
        hold.unlink()

    done = meanwhile(vanish, lambda: run("translate", *arguments))
    assert done.returncode == 1
    assert [line for line in done.stderr.decode().splitlines() if line.startswith("error")] == [
        f"error: cannot write {out / 'a.srt'} (No such file or directory); when its folder is back, the same command goes on",
        f"error: the folder {out} is gone; when it is back, the same command goes on",
    ]
    assert not out.exists(), "another in its place would hide the claims of others"
    gone.rename(out)
    (out / "a.claimed").unlink()  # else it is free after two minutes
    assert run("translate", *arguments).returncode == 0
    assert files(out) == whole
