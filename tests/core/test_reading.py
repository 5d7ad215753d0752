"""A source read on a thread: chunks in order, also before a failure and from a slow source."""

import asyncio
import os
import threading
from collections.abc import Callable

import numpy as np
import pytest

from pipeline.core import reading
from pipeline.core.reading import chunks_of, is_local
from pipeline.core.run.worker import Worker
from pipeline.errors import AudioError
from pipeline.events import Samples
from pipeline.media.audio import pipe
from pipeline.media.audio.recording import Recording
from tests.conftest import HANG_S, PHRASES, read_wav


class Numbers:
    """Chunks of one sample: 0, 1, 2 and so on, and then what ``end`` does."""

    duration_s = None
    overflows = 0

    def __init__(self, count: int, end: Callable[[], None]) -> None:
        self._left, self._end = iter(range(count)), end

    def read(self) -> Samples | None:
        if (number := next(self._left, None)) is None:
            return self._end()
        return np.array([number], np.int16)

    def close(self) -> None:
        pass


def fail() -> None:
    raise AudioError("the device is gone")


def numbers(source: Numbers, at_once: int, calls: list[int] | None = None) -> list[int]:
    """What is read of a source, up to its failure; ``calls`` gets the number of chunks of each call of the thread."""

    class Counted(Worker):
        async def run(self, function, stage=None):
            found = await super().run(function, stage)
            if calls is not None:
                calls.append(len(function.args[1]))
            return found

    async def collect() -> list[int]:
        worker, found = Counted("audio"), list[int]()
        try:
            async for chunk in chunks_of(source, worker, at_once):
                found.append(int(chunk[0]))
        except AudioError:
            found.append(-1)
        finally:
            worker.close()
        return found

    return asyncio.run(collect())


@pytest.mark.parametrize("at_once", [1, 3, 10])
def test_all_chunks_come_in_order(at_once):
    assert numbers(Numbers(7, lambda: None), at_once) == list(range(7))


@pytest.mark.parametrize("at_once", [1, 3, 10])
def test_chunks_read_before_a_failure_come_before_it(at_once):
    assert numbers(Numbers(7, fail), at_once) == [*range(7), -1]


def test_a_slow_source_is_read_chunk_by_chunk(monkeypatch):
    calls: list[int] = []
    assert numbers(Numbers(7, lambda: None), 3, calls) == list(range(7))
    assert calls == [3, 3, 1]
    monkeypatch.setattr(reading, "_LONGEST_READ_S", -1.0)  # every read takes longer
    calls.clear()
    assert numbers(Numbers(3, lambda: None), 3, calls) == list(range(3))
    assert calls == [1, 1, 1, 0]


def test_losses_are_told_after_each_call_and_at_the_end():
    source, told = Numbers(3, lambda: None), list[int]()

    async def collect() -> None:
        worker = Worker("audio")
        async for chunk in chunks_of(source, worker, 2, told.append):
            source.overflows = int(chunk[0]) + 1
        worker.close()

    asyncio.run(collect())
    assert told == [0, 2]


def test_only_recordings_are_local():
    assert is_local(Recording(PHRASES))
    assert not is_local(Recording(PHRASES, growing=True))  # a read of it may stall
    assert not is_local(Numbers(1, lambda: None))


def test_a_file_that_is_still_written_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "GROWS_S", 1.0)
    path, content = tmp_path / "growing.wav", PHRASES.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[:40] + bytes(4) + content[44:half])  # as a recorder writes the header first
    recording = Recording(path, growing=True)
    assert recording.read_once
    chunks = [recording.read() for _ in range(10)]
    with path.open("ab") as file:
        file.write(content[half:])
    while (chunk := recording.read()) is not None:
        chunks.append(chunk)
    assert np.array_equal(np.concatenate([chunk for chunk in chunks if chunk is not None]), read_wav(PHRASES))


def test_a_growing_file_that_is_no_recording_yet_says_how_to_record(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(pipe, "GROWS_S", 0.0)
    (tmp_path / "film.mp4").touch()
    with pytest.raises(AudioError, match="record as WAV, MPEG-TS, Matroska"):
        Recording(tmp_path / "film.mp4", growing=True)
    assert "nothing was added to" in caplog.text


def test_a_growing_file_can_be_left(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "GROWS_S", 0.5)  # opening it waits for more than there is
    path = tmp_path / "growing.wav"
    path.write_bytes(PHRASES.read_bytes()[:100_000])
    recording = Recording(path, growing=True)
    assert recording.read() is not None
    recording.close()
    assert recording.read() is None


def test_a_relay_ends_quietly_when_nobody_reads_any_more(monkeypatch):
    failed = list[object]()
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    reading_end, writing_end = os.pipe()
    with os.fdopen(reading_end, "rb") as stream, os.fdopen(writing_end, "wb") as writer:
        os.close(pipe.relayed(pipe.PipeReader(stream)))
        writer.write(b"sound")
        writer.flush()
        for thread in set(threading.enumerate()) - before:
            thread.join(HANG_S)
            assert not thread.is_alive()
    assert failed == []
