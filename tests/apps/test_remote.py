"""Recordings and subtitles on other machines: object stores and web servers."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from pipeline import Models, PipelineConfig
from pipeline.apps import translate
from pipeline.apps.journal import SUFFIX
from pipeline.apps.mirror import deliver, fetch, workspace
from pipeline.apps.recordings import Job, find_recordings, plan
from pipeline.apps.shards import Shard
from pipeline.audio.recording import Recording
from pipeline.audio.remote import RemoteFile, remote_file
from pipeline.errors import AudioError, UsageError
from tests.apps.test_translate import Counting, save
from tests.conftest import EXAMPLES, HANG_S, PHRASES, ROOT, read_wav

SPEECH = read_wav(EXAMPLES / "travel.wav")[: 16_000 * 4]


@pytest.fixture(autouse=True)
def own_workspace(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of temporary files that no other run uses, also for the processes that a test starts."""
    folder = str(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)


@pytest.fixture
def run(demo_models: Models, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """The command in this process, with the demo models loaded once; equal windows are recognised once."""
    demo = Counting(demo_models)

    async def loaded(config: PipelineConfig) -> Models:
        return replace(demo_models, recognizer=demo, translations=dict.fromkeys(config.languages.targets, demo))

    monkeypatch.setattr(translate, "_load", loaded)
    return translate.run


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's file system in this process's memory, empty."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def put(filesystem: Any, path: str, local: Path) -> None:
    filesystem.pipe_file(path, local.read_bytes())


def test_a_remote_recording_is_decoded_as_a_local_one(memory):
    put(memory, "/talks/phrases.wav", PHRASES)
    found, expected = Recording(RemoteFile("memory://talks/phrases.wav")), Recording(PHRASES)
    assert found.may_stall, "a server may not answer"
    while (chunk := expected.read()) is not None:
        assert (chunk == found.read()).all()
    assert found.read() is None


def test_a_remote_folder_is_searched(memory):
    for name in ("a.wav", "deep/b.mp3", ".hidden/c.wav", "notes.txt"):
        memory.pipe_file(f"/talks/{name}", b"")
    top = RemoteFile("memory://talks")
    assert [(str(file), str(below)) for file, below in find_recordings([top])] == [
        ("memory://talks/a.wav", "."),
        ("memory://talks/deep/b.mp3", "deep"),
    ]
    jobs = plan([top], ["srt"], RemoteFile("memory://subtitles"), {"zh": ""})
    assert [str(job.remote) for job in jobs] == ["memory://subtitles", "memory://subtitles/deep"]


def test_subtitles_go_beside_a_remote_recording(memory, tmp_path, capsys, run):
    save(tmp_path / "talk.wav", SPEECH)
    put(memory, "/talks/talk.wav", tmp_path / "talk.wav")
    assert run([str(tmp_path / "talk.wav"), "--config", "demo-zh", "--format", "srt,jsonl"]) == 0
    assert run(["memory://talks", "--config", "demo-zh", "--format", "srt,jsonl"]) == 0
    assert "memory://talks/talk.srt" in capsys.readouterr().out
    assert sorted(memory.ls("/talks", detail=False)) == ["/talks/talk.jsonl", "/talks/talk.srt", "/talks/talk.wav"]
    for kind in ("srt", "jsonl"):
        assert memory.cat_file(f"/talks/talk.{kind}") == (tmp_path / f"talk.{kind}").read_bytes()
    assert run(["memory://talks", "--config", "demo-zh", "--format", "srt,jsonl"]) == 0
    assert "already there" in capsys.readouterr().out
    assert not [*workspace(RemoteFile("memory://talks")).iterdir()], "no copy is left on this machine"


@pytest.mark.slow
def test_an_interrupted_recording_is_resumed_on_another_machine(memory, tmp_path, monkeypatch, capsys, run):
    save(tmp_path / "talk.wav", read_wav(PHRASES)[: 16_000 * 12])
    put(memory, "/talks/talk.wav", tmp_path / "talk.wav")
    folder = RemoteFile("memory://talks")
    real, reads = Recording.read, iter(range(200))

    def broken(recording: Recording) -> Any:
        if next(reads) == 80:
            raise OSError("the network is gone")
        return real(recording)

    one_by_one = tmp_path / "demo.toml"
    text = (ROOT / "configs" / "demo-zh.toml").read_text("utf-8").replace("../models", str(ROOT / "models"))
    one_by_one.write_text(text.replace('model = "base"', 'model = "base"\njoin_ms = 0'))
    with monkeypatch.context() as patch:
        patch.setattr(Recording, "read", broken)
        assert run([str(folder), "--config", str(one_by_one)]) == 1
    assert memory.exists(f"/talks/talk{SUFFIX}")
    first = tempfile.gettempdir()
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "other"))  # as on another machine
    capsys.readouterr()
    assert run([str(folder), "--config", str(one_by_one)]) == 0
    assert "finished" in capsys.readouterr().out
    assert sorted(memory.ls("/talks", detail=False)) == ["/talks/talk.srt", "/talks/talk.wav"]
    assert run([str(tmp_path / "talk.wav"), "--config", str(one_by_one)]) == 0
    assert memory.cat_file("/talks/talk.srt") == (tmp_path / "talk.srt").read_bytes()
    memory.pipe_file("/talks/talk.srt", b"1\n00:00:01,000 --> 00:00:02,000\nedited\n\n")
    monkeypatch.setattr(tempfile, "tempdir", first)
    assert workspace(folder).joinpath(f"talk{SUFFIX}").is_file()
    capsys.readouterr()
    assert run([str(folder), "--config", str(one_by_one)]) == 0
    assert "already there" in capsys.readouterr().out
    assert b"edited" in memory.cat_file("/talks/talk.srt")
    assert not [*workspace(folder).iterdir()]


@pytest.mark.parametrize(
    ("kept", "here", "taken"),
    [
        (b"header\n", b"header\nevent\n", False),  # this machine's run was killed
        (b"header\nevent\n", b"header\n", True),  # another machine has gone on
        (b"other\n", b"header\nevent\n", True),  # another machine has begun anew
        (None, b"header\nevent\n", True),  # another machine has finished
        (b"header\n", None, True),
        (None, None, True),
    ],
)
def test_the_journal_here_counts_if_it_continues_the_one_that_was_kept(memory, tmp_path, kept, here, taken):
    journal, output = tmp_path / f"talk{SUFFIX}", tmp_path / "talk.srt"
    memory.pipe_file("/talks/talk.srt", b"finished")
    output.write_bytes(b"begun")
    if kept is not None:
        memory.pipe_file(f"/talks/{journal.name}", kept)
    if here is not None:
        journal.write_bytes(here)
    fetch(RemoteFile("memory://talks"), [output], journal)
    assert output.read_bytes() == (b"finished" if taken else b"begun")
    expected = kept if taken else here
    assert (journal.read_bytes() if journal.exists() else None) == expected


def test_the_journal_of_a_recording_in_progress_is_kept_from_its_beginning(memory, tmp_path, monkeypatch, run):
    """Of a run that has written nothing, none is left."""
    save(tmp_path / "talk.wav", SPEECH)
    command = [str(tmp_path / "talk.wav"), "--output-dir", "memory://talks", "--config", "demo-zh"]
    there: list[bool] = []

    def broken(recording: Recording) -> Any:
        there.append(memory.exists(f"/talks/talk{SUFFIX}"))
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Recording, "read", broken)
        assert run(command) == 1
    assert there == [True]
    assert not memory.exists(f"/talks/talk{SUFFIX}")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket on an S3 server on loopback."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("archive")
    yield "s3://archive"
    server.stop()


@pytest.mark.slow
def test_an_object_store_has_recordings_and_gets_subtitles(bucket, tmp_path, run):
    save(tmp_path / "talk.wav", SPEECH)
    RemoteFile(f"{bucket}/in/talk.wav").write((tmp_path / "talk.wav").read_bytes())
    command = [sys.executable, "-m", "pipeline.translate", f"{bucket}/in", "--output-dir", f"{bucket}/out"]
    done = subprocess.run(
        [*command, "--config", "demo-zh"], capture_output=True, text=True, timeout=HANG_S, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert run([str(tmp_path / "talk.wav"), "--config", "demo-zh"]) == 0
    assert RemoteFile(f"{bucket}/out/talk.srt").read() == (tmp_path / "talk.srt").read_bytes()
    assert RemoteFile(f"{bucket}/out").names() == ["talk.srt"]
    with pytest.raises(UsageError, match=r"no such file: s3://archive/none\.wav"):
        find_recordings([RemoteFile(f"{bucket}/none.wav")])
    with pytest.raises(UsageError, match="s3://archive/in/none.wav"):
        Recording(RemoteFile(f"{bucket}/in/none.wav"))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/secret"):
                self.send_error(403)
            else:
                super().do_GET()

        do_HEAD = do_GET  # noqa: N815 (as http.server calls it)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_recording_on_a_web_server_is_read(web, tmp_path, run):
    save(tmp_path / "talk.wav", SPEECH)
    with pytest.raises(UsageError, match="nothing can be written beside"):
        plan([RemoteFile(f"{web}/talk.wav")], ["srt"], None, {"zh": ""})
    assert run([f"{web}/talk.wav?a=1", "--config", "demo-zh", "--output-dir", str(tmp_path / "out")]) == 0
    assert run([str(tmp_path / "talk.wav"), "--config", "demo-zh"]) == 0
    assert (tmp_path / "out" / "talk.srt").read_bytes() == (tmp_path / "talk.srt").read_bytes()


def test_a_url_without_permission_is_reported(web):
    with pytest.raises(UsageError, match="may not be read or written.*check the credentials"):
        Recording(RemoteFile(f"{web}/secret.wav"))


@pytest.mark.parametrize("text", ["talk.wav", "C:/talk.wav", "s3:/bucket/talk.wav", "s3://", "-"])
def test_a_path_is_no_url(text):
    assert remote_file(text) is None


def test_other_urls_are_refused():
    with pytest.raises(UsageError, match="give its path"):
        remote_file("file:///tmp/talk.wav")
    with pytest.raises(UsageError, match="Protocol not known"):
        find_recordings([RemoteFile("nonsense://talk.wav")])


def test_a_server_that_does_not_answer_is_no_missing_file(tmp_path):
    unreachable = RemoteFile("http://127.0.0.1:1/talk.wav")
    with pytest.raises(AudioError, match="check the connection"):
        find_recordings([unreachable])
    with pytest.raises(AudioError, match="check the connection"):
        Recording(unreachable)
    jobs = [Job(unreachable, {}, tmp_path / "a"), Job(tmp_path / "gone.wav", {}, tmp_path / "b")]
    with pytest.raises(AudioError, match="check the connection"):  # with a guess, other shards would be cut otherwise
        Shard(1, 2).of(jobs)
    assert Shard(1, 1).of(jobs[1:]) == jobs[1:]


def test_a_workspace_that_others_could_change_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = RemoteFile("memory://talks")
    top = workspace(folder).parent
    assert top.stat().st_mode & 0o077 == 0
    top.rename(tmp_path / "elsewhere")
    top.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link or belongs to another user; set TMPDIR"):
        workspace(folder)
    top.unlink()
    top.write_text("no folder")
    with pytest.raises(UsageError, match=r"File exists.*set TMPDIR"):
        workspace(folder)


def test_a_copy_that_cannot_be_kept_is_reported(memory, tmp_path):
    memory.pipe_file("/talks/talk.srt", b"1")
    (tmp_path / "talk.srt").mkdir()
    folder, outputs, journal = RemoteFile("memory://talks"), [tmp_path / "talk.srt"], tmp_path / "journal"
    with pytest.raises(UsageError, match=r"cannot use .*talk\.srt \(Is a directory\); set TMPDIR"):
        fetch(folder, outputs, journal)
    deliver(folder, outputs, journal)
    assert memory.cat_file("/talks/talk.srt") == b"1"
