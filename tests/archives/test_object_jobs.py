"""Jobs whose files are in an object store: what is fetched, what is put back, and how a claim is kept. Objects in memory."""

from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from pipeline.archives import objects
from pipeline.archives.objects import CopiedJob, ObjectClaims, add_stand_ins, with_remote
from pipeline.archives.outputs import language_tags
from pipeline.archives.recordings import Job, Options, plan
from pipeline.archives.results import Result
from pipeline.errors import PipelineError, UsageError

CUE = b"1\n00:00:00,000 --> 00:00:01,000\nold\n"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """What every bucket has."""
    found = MemoryStore()
    monkeypatch.setattr(objects, "_bucket", lambda url: found)
    return found


def content(store: MemoryStore) -> dict[str, bytes]:
    return {
        each["path"]: obstore.get(store, each["path"]).bytes().to_bytes()
        for batch in obstore.list(store)
        for each in batch
    }


def planned(root: Path, output_dir: Path | None = None, *targets: str) -> Job:
    """The job of the only recording in the bucket."""
    path = add_stand_ins("s3://bucket/in", root)
    (job,) = plan([path], ["srt"], output_dir, language_tags(targets or ("zh",), always=False))
    return with_remote(job, root)


@pytest.mark.parametrize(
    ("overwrite", "there", "fetched"),
    [
        (False, (), ["recording/a.wav"]),
        (False, ("a.zh.srt",), ["a.zh.srt", "recording/a.wav"]),
        (False, ("a.zh.srt", "a.de.srt"), ["a.de.srt", "a.zh.srt"]),
        (True, ("a.zh.srt", "a.de.srt"), ["recording/a.wav"]),
    ],
    ids=["nothing is there", "a language is missing", "all is there", "overwrite"],
)
def test_a_job_has_what_it_needs_and_no_old_subtitles_that_it_replaces(
    overwrite, there, fetched, store, tmp_path, demo_config
):
    for name in ("a.wav", *there):
        obstore.put(store, f"in/{name}", CUE)
    result = Result(planned(tmp_path, None, "zh", "de"))
    with CopiedJob(result, Options(demo_config, overwrite=overwrite)) as copied:
        folder = copied.local.job.names.base.folder
        copied.fetch()
        found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        assert found == fetched
        assert all((folder / name).read_bytes() == CUE for name in found)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("outcome", "is_put"), [("done", True), ("finished", True), ("interrupted", False), ("failed", False)]
)
def test_complete_subtitles_alone_are_put_back(outcome, is_put, store, tmp_path, demo_config):
    obstore.put(store, "in/a.wav", b"no audio")
    result = Result(job := planned(tmp_path))
    with CopiedJob(result, Options(demo_config)) as copied:
        copied.fetch()
        local = copied.local
        local.outputs = {("srt", "zh"): local.job.outputs["srt", "zh"]}
        local.outputs["srt", "zh"].write_bytes(CUE)
        local.outcome, local.sentences = outcome, 7
        local.error = f"{local.job.recording} is cut off"
        copied.put()
    assert content(store) == {"in/a.wav": b"no audio"} | ({"in/a.srt": CUE} if is_put else {})
    assert list(result.put) == (["s3://bucket/in/a.srt"] if is_put else [])
    assert (result.job, result.outcome, result.sentences) == (job, outcome, 7)
    assert result.error == "s3://bucket/in/a.wav is cut off"


def test_subtitles_of_this_machine_stay_here_and_the_recording_is_fetched(store, tmp_path, demo_config):
    obstore.put(store, "in/a.wav", b"no audio")
    out = tmp_path / "out"
    job = planned(tmp_path / "root", out)
    assert job.remote is not None
    assert (job.remote.recording, job.remote.folder) == ("s3://bucket/in/a.wav", None)
    result = Result(job)
    with CopiedJob(result, Options(demo_config)) as copied:
        copied.fetch()
        assert copied.local.job.recording.read_bytes() == b"no audio"
        assert copied.local.job.outputs == {("srt", "zh"): out / "a.srt"}
        copied.local.outcome, copied.local.outputs = "done", copied.local.job.outputs
        copied.put()
    assert result.put == []
    assert with_remote(replace(job, recording=tmp_path / "b.wav", remote=None), tmp_path / "root").remote is None


@pytest.mark.parametrize(("overwrite", "is_fetched"), [(False, False), (True, True)])
def test_a_recording_is_fetched_if_there_is_something_to_write(overwrite, is_fetched, store, tmp_path, demo_config):
    obstore.put(store, "in/a.wav", b"no audio")
    job = planned(tmp_path / "root", tmp_path)
    (tmp_path / "a.srt").write_bytes(CUE)
    with CopiedJob(Result(job), Options(demo_config, overwrite=overwrite)) as copied:
        copied.fetch()
        assert copied.local.job.recording.exists() is is_fetched


def test_a_recording_that_is_gone_meanwhile_is_reported_by_who_opens_it(store, tmp_path, demo_config):
    obstore.put(store, "in/a.wav", b"no audio")
    job = planned(tmp_path)
    obstore.delete(store, "in/a.wav")
    with CopiedJob(Result(job), Options(demo_config)) as copied:
        copied.fetch()
        assert not copied.local.job.recording.exists()


def test_recordings_stand_for_themselves_and_a_named_object_whatever_its_name(store, tmp_path):
    for key, size in (("in/a.wav", 3), ("in/b/c.MP3", 5), ("in/notes.txt", 7), ("other/d.wav", 2)):
        obstore.put(store, key, bytes(size))
    path = add_stand_ins("s3://bucket/in/", tmp_path)
    found = {each.relative_to(path).as_posix(): each.stat().st_size for each in path.rglob("*") if each.is_file()}
    assert found == {"a.wav": 3, "b/c.MP3": 5}
    assert add_stand_ins("s3://bucket/in/notes.txt", tmp_path).stat().st_size == 7
    for url in ("s3://bucket/none", "s3://bucket/in/b/d.wav"):
        with pytest.raises(UsageError, match=f"{url} has no recordings"):
            add_stand_ins(url, tmp_path)


def test_a_claim_is_one_machines_and_changes_when_it_is_touched(store):
    claim, first, second = "s3://bucket/a.claimed", ObjectClaims("first 1"), ObjectClaims("second 2")
    assert first.mark(claim) is None
    assert [first.create(claim), second.create(claim)] == [True, False]
    assert content(store) == {"a.claimed": b"first 1 1\n"}
    before = second.mark(claim)
    first.touch(claim)
    assert second.mark(claim) not in (before, None)
    first.remove(claim)
    first.remove(claim)
    assert second.create(claim)


def test_a_failure_of_the_store_is_told_with_the_address(store, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise objects.BaseError("Generic error\nwith details")

    monkeypatch.setattr(obstore, "list", fail)
    with pytest.raises(PipelineError, match="^s3://bucket/in: Generic error; check the address and the credentials"):
        add_stand_ins("s3://bucket/in", tmp_path)
