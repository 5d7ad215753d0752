"""Recordings and subtitles in object stores, on a server that speaks S3 (moto)."""

import subprocess
import sys
from urllib.request import Request, urlopen

import obstore
import pytest
from moto.server import ThreadedMotoServer
from obstore.store import from_url

from pipeline.apps.translate import run as translate
from pipeline.archives import claims, objects
from pipeline.archives.claims import Claims
from pipeline.archives.objects import ObjectClaims, add_stand_ins, with_remote
from pipeline.archives.recordings import Options, plan
from pipeline.archives.results import Result
from pipeline.config import load_config
from pipeline.errors import PipelineError, UsageError
from tests.archives.archives import archive, config, files, options, scripted, whole
from tests.commands import run

__all__ = ["archive", "config", "scripted", "whole"]


@pytest.fixture(scope="module")
def server():
    """The address of a server of objects."""
    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


@pytest.fixture
def bucket(server, monkeypatch, request):
    """A new bucket, and its name; its server, by http, and credentials are in the environment."""
    for name, value in (
        ("ENDPOINT_URL", server),
        ("ACCESS_KEY_ID", "a"),
        ("SECRET_ACCESS_KEY", "b"),
        ("REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    name = f"bucket-{abs(hash(request.node.name))}"
    urlopen(Request(f"{server}/{name}", method="PUT")).read()
    return from_url(f"s3://{name}", client_options={"allow_http": True}), name


def names(store):
    return sorted(each["path"] for batch in obstore.list(store) for each in batch)


def test_only_one_machine_can_claim_an_object(bucket):
    store, name = bucket
    claim, first, second = f"s3://{name}/talks/a.claimed", ObjectClaims("first 1"), ObjectClaims("second 2")
    assert first.mark(claim) is None
    assert [first.create(claim), second.create(claim)] == [True, False]
    before = second.mark(claim)
    first.touch(claim)
    assert before != second.mark(claim), "a touch is seen"
    assert obstore.get(store, "talks/a.claimed").bytes().to_bytes().startswith(b"first 1")
    first.remove(claim)
    first.remove(claim)
    assert second.create(claim)


def test_machines_share_out_what_a_bucket_has(bucket, tmp_path, monkeypatch):
    store, name = bucket
    for key in ("talks/a.wav", "talks/day 2/b.mp3", "talks/notes.txt", "talks.wav"):
        obstore.put(store, key, b"no audio" * len(key))
    monkeypatch.setattr(claims, "AGAIN_S", 0.0)

    def machine() -> Claims:
        add_stand_ins(f"s3://{name}/talks", tmp_path)
        jobs = plan([tmp_path / "s3" / name / "talks"], ["srt"], None, {"zh": ""})
        return Claims([Result(with_remote(job, tmp_path)) for job in jobs])

    first, second = machine(), machine()
    assert [first.take(), second.take(), first.take(), second.take()] == [1, 0, None, None]
    assert names(store)[:1] == ["talks.wav"]
    assert [each for each in names(store) if "claimed" in each] == ["talks/a.claimed", "talks/day 2/b.claimed"]
    with first:
        pass
    assert second.take() == 1


def test_what_a_store_lacks_is_told(bucket, server):
    _, name = bucket
    with pytest.raises(UsageError, match=f"s3://{name}/none has no recordings"):
        translate([f"s3://{name}/none", "--config", "demo-zh"])
    with pytest.raises(PipelineError, match="^s3://other/none: The specified bucket does not exist; check the address"):
        translate(["s3://other/none", "--config", "demo-zh"])


def test_the_place_of_subtitles_is_asked_before_any_work(bucket, tmp_path, capsys):
    (tmp_path / "a.wav").write_bytes(b"no audio")
    with pytest.raises(PipelineError, match="^s3://other/out: The specified bucket does not exist; check the address"):
        translate([str(tmp_path / "a.wav"), "--config", "demo-zh", "--output-dir", "s3://other/out"])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Generic S3 error: 404: <?xml v?>\n<Error><Code>a</Code><Message>No such bucket.</Message>", "No such bucket"),
        ("Generic S3 error: 403 Forbidden: <html>\n<body>", "Generic S3 error: 403 Forbidden"),
        ("Generic GCS error: 404 Not Found: {\n 'error'", "Generic GCS error: 404 Not Found"),
        ("Object at location x not found\n\nDebug source:\nNotFound {", "Object at location x not found"),
    ],
)
def test_markup_of_a_store_is_not_shown(message, said):
    assert objects._said(message) == said


def test_subtitles_that_cannot_be_put_are_kept_and_named(bucket, tmp_path):
    store, name = bucket
    obstore.put(store, "a.wav", b"no audio")
    add_stand_ins(f"s3://{name}/a.wav", tmp_path)
    (job,) = (
        with_remote(each, tmp_path)
        for each in plan([tmp_path / "s3" / name / "a.wav"], ["srt"], tmp_path / "s3" / "gone" / "out", {"zh": ""})
    )
    with objects.CopiedJob(Result(job), Options(load_config("demo-zh"), overwrite=True)) as copied:
        copied.fetch()
        (path,) = copied.local.job.outputs.values()
        path.write_text("subtitles")
        copied.local.outcome, copied.local.outputs = "done", copied.local.job.outputs
        with pytest.raises(PipelineError, match=f"gone/out/a.srt: .*; the finished subtitles are in {path.parent}$"):
            copied.put()
    assert [each.name for each in path.parent.iterdir()] == ["a.srt"]
    path.unlink()
    path.parent.rmdir()


def test_a_claim_in_a_bucket_that_vanishes_for_a_moment_is_no_error(bucket):
    claims_of_nobody = ObjectClaims("first 1")
    claims_of_nobody.touch("s3://gone/a.claimed")
    claims_of_nobody.remove("s3://gone/a.claimed")


def test_a_name_that_windows_would_take_for_something_else_is_refused_there(bucket, tmp_path, monkeypatch):
    store, name = bucket
    for key in ("talks/notes: 1.txt", "talks/9:30.wav"):
        obstore.put(store, key, b"no audio")
    add_stand_ins(f"s3://{name}/talks", tmp_path / "linux")
    monkeypatch.setattr(sys, "platform", "win32")
    for url in (f"s3://{name}/talks", f"s3://{name}/talks/9:30.wav"):
        with pytest.raises(UsageError, match="talks/9:30.wav' in the object store has a name that no file"):
            add_stand_ins(url, tmp_path)


def test_a_recording_that_is_no_audio_is_named_by_its_address(bucket, capsys):
    store, name = bucket
    obstore.put(store, "a.wav", b"no audio")
    assert translate([f"s3://{name}/a.wav", "--config", "demo-zh"]) == 1
    assert capsys.readouterr().err.startswith(f"error: s3://{name}/a.wav is not audio")
    assert names(store) == ["a.wav"]


@pytest.mark.slow
def test_an_archive_in_a_bucket_becomes_the_same_files(scripted, archive, config, whole, bucket, tmp_path):
    store, name = bucket
    for path in archive.iterdir():
        obstore.put(store, f"in/{path.name}", path)
    arguments = options(f"s3://{name}/in", "--output-dir", f"s3://{name}/out", "--claim", config=config)
    done = run("translate", *arguments, "--processes", "2")
    assert done.returncode == 0, done.stderr.decode()
    assert f"s3://{name}/out/a.srt" in done.stdout.decode()
    found = {
        key.removeprefix("out/"): obstore.get(store, key).bytes().to_bytes() for key in names(store) if "out/" in key
    }
    assert found == whole
    again = run("translate", *arguments)
    assert again.returncode == 0
    assert again.stdout.count(b"already there:") == 5
    here = run("translate", *options(f"s3://{name}/in/c.wav", "--output-dir", tmp_path, config=config))
    assert here.returncode == 0, here.stderr.decode()
    assert files(tmp_path) == {name: whole[name] for name in ("c.srt", "c.jsonl")}


def test_programs_that_need_no_store_and_no_cluster_import_neither(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"no audio")
    program = f"""
import sys
from pipeline.apps import live, serve, translate
for claim in ([], ["--claim"]):
    translate.run([{str(tmp_path)!r}, "--config", "demo-zh", *claim])
assert not sys.modules.keys() & {{"distributed", "dask", "obstore"}}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("a.wav is not audio") == 2
