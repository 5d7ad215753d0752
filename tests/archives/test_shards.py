"""Shares of the recordings for processes that do not know each other, and manifests."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.apps.translate import arguments, run
from pipeline.archives.outputs import OutputName, OutputNames
from pipeline.archives.recordings import Job, plan, read_manifest
from pipeline.archives.shards import Shard, parse_shard
from pipeline.errors import UsageError
from tests.conftest import ROOT, examples

SLURM = {
    "SLURM_ARRAY_TASK_ID": "7",
    "SLURM_ARRAY_TASK_MIN": "3",
    "SLURM_ARRAY_TASK_STEP": "2",
    "SLURM_ARRAY_TASK_COUNT": "5",
}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("1/1", {}, Shard(1, 1)),
        ("3/8", {}, Shard(3, 8)),
        ("auto/8", {"JOB_COMPLETION_INDEX": "0"}, Shard(1, 8)),
        ("auto/8", {"JOB_COMPLETION_INDEX": "7"}, Shard(8, 8)),
        ("auto", SLURM, Shard(3, 5)),
        ("auto/4", SLURM, Shard(3, 4)),
    ],
)
def test_a_shard_is_named_or_told_by_the_scheduler(text, environment, expected):
    assert parse_shard(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        ("5/4", {}, "shard 5 of 4 does not exist"),
        ("0/4", {}, "shard 0 of 4 does not exist"),
        ("1/0", {}, "does not exist"),
        ("4", {}, "is no shard"),
        ("a/b", {}, "is no shard"),
        ("-1/4", {}, "is no shard"),
        ("1/4/2", {}, "is no shard"),
        ("auto", {}, "neither JOB_COMPLETION_INDEX"),
        ("auto", {"JOB_COMPLETION_INDEX": "2"}, "does not tell the number"),
        ("auto/2", {"JOB_COMPLETION_INDEX": "2"}, "shard 3 of 2 does not exist"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "2"}, "is no shard"),
    ],
)
def test_what_is_no_shard_is_refused(text, environment, message):
    with pytest.raises(UsageError, match=message):
        parse_shard(text, environment)


@given(sizes=st.lists(st.integers(0, 2_000), min_size=1, max_size=40), count=st.integers(1, 9))
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_shards_have_every_recording_once(tmp_path, sizes, count):
    jobs = []
    for number, size in enumerate(sizes):
        recording = tmp_path / f"{number}.wav"
        recording.write_bytes(bytes(size))
        jobs.append(Job(recording, {}, OutputNames(OutputName(tmp_path, str(number)))))
    shards = [Shard(number, count).of(jobs) for number in range(1, count + 1)]
    assert sorted(job.recording for shard in shards for job in shard) == sorted(job.recording for job in jobs)
    assert [Shard(number, count).of(jobs[::-1])[::-1] for number in range(1, count + 1)] == shards
    amounts = [sum(job.recording.stat().st_size for job in shard) for shard in shards]
    assert max(amounts) - min(amounts) <= max(sizes)


def test_a_manifest_names_files_and_folders(tmp_path):
    (tmp_path / "talks").mkdir()
    for name in ("a b.wav", "talks/c.wav", "#1.wav"):
        (tmp_path / name).write_bytes(b"")
    manifest = tmp_path / "list.txt"
    manifest.write_bytes("\ufeff# a comment\r\na b.wav\r\n\r\n  talks  \n./#1.wav".encode())
    assert read_manifest(manifest) == [tmp_path / "a b.wav", tmp_path / "talks", tmp_path / "#1.wav"]


def test_a_manifest_has_names_with_unusual_separators(tmp_path):
    names = ["a\u2028b.wav", "a\x0bb.wav", "a\x85b.wav"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "list.txt").write_bytes("\r\n".join(names).encode())
    assert read_manifest(tmp_path / "list.txt") == [tmp_path / name for name in names]


@pytest.mark.parametrize(("count", "end"), [(10, "10.wav; correct"), (11, "10.wav; and 1 more; correct")])
def test_so_many_wrong_lines_of_a_manifest_are_named(count, end, tmp_path):
    manifest = tmp_path / "list.txt"
    manifest.write_text("".join(f"{number}.wav\n" for number in range(1, count + 1)))
    with pytest.raises(UsageError, match=re.escape(end)):
        read_manifest(manifest)


def test_every_wrong_line_of_a_manifest_is_named(tmp_path):
    manifest = tmp_path / "list.txt"
    manifest.write_text("list.txt\nno.wav\n\nother.wav\n")
    with pytest.raises(UsageError, match=r"line 2: no such file: no\.wav; line 4: no such file: other\.wav"):
        read_manifest(manifest)


def test_a_manifest_that_names_nothing_is_refused(tmp_path):
    (tmp_path / "list.txt").write_text("# nothing\n")
    with pytest.raises(UsageError, match="names no recording"):
        read_manifest(tmp_path / "list.txt")
    with pytest.raises(UsageError, match="cannot be read"):
        read_manifest(tmp_path / "none.txt")


def test_a_manifest_may_come_from_standard_input(tmp_path, monkeypatch):
    (tmp_path / "a.wav").write_bytes(b"")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{tmp_path}/a.wav\n".encode())))
    assert read_manifest(Path("-")) == [tmp_path / "a.wav"]


def test_a_run_without_a_recording_is_refused():
    with pytest.raises(UsageError, match="no recording is named"):
        run(["--config", "demo-zh"])


def test_a_shard_does_not_begin_the_recordings_of_others(tmp_path, capsys):
    """Their shard may be writing them; nothing here is audio, so what is begun fails."""
    for name in "abc":
        (tmp_path / f"{name}.wav").write_bytes(name.encode() * 100)
    assert run([str(tmp_path), "--config", "demo-zh", "--shard", "2/3"]) == 1
    assert "b.wav" in (said := capsys.readouterr().err)
    assert "a.wav" not in said
    assert "c.wav" not in said
    assert len(plan([tmp_path], ["srt"], None, {"zh": ""})) == 3


def test_the_examples_give_each_process_its_share():
    """The commands in examples/deploy are parsed, and their shards are those that the schedulers' variables name."""
    job = yaml.safe_load((ROOT / "examples/deploy/kubernetes-job.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    options = arguments().parse_args(container["command"][2:])
    count = job["spec"]["completions"]
    shards = {parse_shard(options.shard, {"JOB_COMPLETION_INDEX": str(index)}) for index in range(count)}
    assert shards == {Shard(number, count) for number in range(1, count + 1)}

    script = (ROOT / "examples/deploy/slurm-array.sh").read_text()
    (called,) = (line for line in script.splitlines() if line.startswith("exec "))
    options = arguments().parse_args(shlex.split(called)[3:])
    ((first, last),) = ((int(a), int(b)) for a, b in re.findall(r"--array=(\d+)-(\d+)", script))
    environment = {"SLURM_ARRAY_TASK_MIN": str(first), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}
    found = {
        parse_shard(options.shard, {**environment, "SLURM_ARRAY_TASK_ID": str(at)}) for at in range(first, last + 1)
    }
    assert found == {Shard(number, last) for number in range(1, last + 1)}
