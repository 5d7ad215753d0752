"""One run may write a file, regardless of queries and of what other runs leave or remove."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.media.sinks import block_file
from pipeline.media.sinks.block_file import BlockFile, in_use
from tests.conftest import HANG_S, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no locks there that leave a file readable")

LOOKER = """
import sys
from pathlib import Path
from pipeline.media.sinks.block_file import in_use
path = Path(sys.argv[1])
print("looking", flush=True)
while True:
    in_use(path)
"""
HOLDER = """
import sys
from pathlib import Path
from pipeline.media.sinks.block_file import BlockFile
file = BlockFile(Path(sys.argv[1]))
file.append("a line")
print("holding", flush=True)
sys.stdin.read()
"""


def started(program: str, path: Path) -> subprocess.Popen[bytes]:
    """Start a program and wait for its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def ended(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    process.send_signal(number)
    process.communicate(timeout=HANG_S)


def test_concurrent_queries_never_keep_a_writer_out(tmp_path):
    path, over = tmp_path / "out.srt", threading.Event()
    path.write_text("there before")

    def look() -> None:
        while not over.is_set():
            in_use(path)

    processes = [started(LOOKER, path) for _ in range(2)]
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(1_000):
            BlockFile(path).close()  # raises if it may not write
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for process in processes:
            ended(process)


def test_a_writer_may_start_during_a_query(tmp_path, monkeypatch):
    path, close, writers = tmp_path / "out.srt", os.close, list[BlockFile]()
    path.touch()

    def begun(descriptor: int) -> None:
        """The writer starts at the last moment of the query."""
        monkeypatch.setattr(os, "close", close)
        writers.append(BlockFile(path))
        close(descriptor)

    monkeypatch.setattr(os, "close", begun)
    assert not in_use(path)
    assert in_use(path)
    writers[0].close()
    assert not in_use(path)
    assert os.listdir(tmp_path) == ["out.srt"]  # no lock file is left


def test_a_file_is_in_use_until_its_writer_ends_in_any_way(tmp_path):
    path = tmp_path / "out.srt"
    assert not in_use(path)
    process = started(HOLDER, path)
    for _ in range(3):
        assert in_use(path)
        with pytest.raises(UsageError, match=r"out\.srt is being written by another run; wait for it to end"):
            BlockFile(path)
    ended(process)
    assert not in_use(path)
    file = BlockFile(path)
    assert in_use(path)
    file.close()
    assert not in_use(path)
    assert path.read_text() == "a line"


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_another_run_removes_while_it_is_opened_is_created_again(again, tmp_path, monkeypatch):
    path, lock = tmp_path / "out.srt", block_file.lock
    other = BlockFile(path)  # wrote nothing, so closing it removes its file

    def just_before(descriptor: int) -> bool:
        monkeypatch.setattr(block_file, "lock", lock)
        other.close()
        if again:
            path.write_text("somebody else's")
        return lock(descriptor)

    monkeypatch.setattr(block_file, "lock", just_before)
    file = BlockFile(path)
    file.append("a line")
    assert in_use(path)
    file.close()
    assert path.read_text() == "a line"


def test_a_file_removed_before_it_is_opened_is_created_again(tmp_path, monkeypatch):
    path, opening = tmp_path / "out.srt", os.open
    other = BlockFile(path)

    def removed(name: Path, flags: int, *mode: int) -> int:
        if not flags & os.O_CREAT:
            monkeypatch.setattr(os, "open", opening)
            other.close()
        return opening(name, flags, *mode)

    monkeypatch.setattr(os, "open", removed)
    file = BlockFile(path)
    file.append("a line")
    file.close()
    assert path.read_text() == "a line"


def test_files_are_written_on_file_systems_without_locks(tmp_path, monkeypatch):
    import errno
    import fcntl

    def refuse(*_: object) -> int:
        """Simulates a file system without locks."""
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "out.srt"
    file = BlockFile(path)
    assert not in_use(path)
    file.append("a line")
    file.close()
    assert path.read_text() == "a line"
