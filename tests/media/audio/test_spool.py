"""The backlog of live audio: nothing is lost while there is room; dropped audio becomes silence of its length."""

import os
import resource
import threading
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.notices import AudioLost, SourceNotice
from pipeline.core.source import CHUNK_SAMPLES
from pipeline.errors import DeviceError
from pipeline.events import SAMPLE_RATE, Samples
from pipeline.media.audio.spool import Spool, SpooledSource
from tests.conftest import HANG_S, examples


def numbered(start: int, count: int) -> Samples:
    """Samples that identify their position; never zero."""
    return ((np.arange(start, start + count) % 30_000) + 1).astype(np.int16)


@settings(max_examples=examples(200))
@given(st.lists(st.integers(-40, 40), max_size=80), st.sampled_from([0, 50, 1000]))
def test_samples_come_out_in_order_with_silence_for_dropped_ones(steps, memory):
    """A positive step appends that many tens of samples; a negative one takes that many times."""
    spool, expected, taken = Spool(1_000, memory), [np.zeros(0, np.int16)], [np.zeros(0, np.int16)]
    at = 0
    for step in steps:
        if step > 0:
            samples = numbered(at, 10 * step)
            at += len(samples)
            lost = spool.append(samples)
            assert lost in (0, len(samples))
            expected.append(np.zeros_like(samples) if lost else samples)
        for _ in range(-step):
            taken.append(spool.take())
        assert len(spool) <= 1_000
    while len(rest := spool.take()):
        assert len(rest) <= CHUNK_SAMPLES
        taken.append(rest)
    assert (np.concatenate(taken) == np.concatenate(expected)).all()
    spool.close()


def test_new_samples_do_not_overtake_those_in_the_file_when_there_is_room_in_memory_again():
    spool = Spool(1_000, 50)
    spool.append(numbered(0, 50))
    spool.append(numbered(50, 10))  # into the file
    taken = [spool.take()]
    spool.append(numbered(60, 10))
    while len(rest := spool.take()):
        taken.append(rest)
    assert (np.concatenate(taken) == numbered(0, 70)).all()
    spool.close()


def test_hours_of_audio_keep_a_minute_in_memory():
    spool = Spool(600 * SAMPLE_RATE)
    second = numbered(0, SAMPLE_RATE)
    for _ in range(600):
        assert spool.append(second) == 0
    assert sum(len(chunk) for chunk in spool._memory) <= 60 * SAMPLE_RATE
    assert len(spool) == 600 * SAMPLE_RATE
    assert spool.append(second) == SAMPLE_RATE
    spool.close()


def test_a_full_disk_drops_like_a_full_spool():
    def full() -> Any:
        raise OSError(28, "No space left on device")

    spool = Spool(1_000, 100, full)
    assert spool.append(numbered(0, 100)) == 0
    assert spool.append(numbered(100, 50)) == 50
    assert (spool.take() == numbered(0, 100)).all()
    assert (spool.take() == np.zeros(50)).all()


def test_a_full_disk_makes_one_long_gap_instead_of_many_short_ones():
    def full() -> Any:
        raise OSError(28, "No space left on device")

    spool = Spool(100_000, 3 * CHUNK_SAMPLES, full)

    def lost() -> bool:
        return spool.append(numbered(0, CHUNK_SAMPLES)) > 0

    assert [lost() for _ in range(4)] == [False, False, False, True]
    spool.take()
    assert lost()  # there is room, but too many samples still wait
    spool.take()
    assert not lost()


def test_a_disk_that_was_always_full_leaves_one_gap():
    def full() -> Any:
        raise OSError(28, "No space left on device")

    spool = Spool(100_000, 0, full)
    for start in range(0, 1000, 100):
        assert spool.append(numbered(start, 100)) == 100
    assert list(spool._gaps) == [[0, 1000]]


def test_a_disk_that_fills_up_keeps_stored_samples_and_the_times_of_later_ones():
    spool = Spool(100_000, 100)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 1_500, limits[1]))  # room for 1,500 samples in the file
    taken = []
    try:
        dropped = [spool.append(numbered(start, 320)) for start in range(0, 3_200, 320)]
        while len(samples := spool.take()):
            taken.append(samples)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert dropped == [0] * 4 + [320] * 6
    assert (np.concatenate(taken) == np.concatenate([numbered(0, 1_280), np.zeros(1_920)])).all()
    spool.close()


class Talker:
    """A live source that delivers the given samples at once, and then ends or raises."""

    duration_s = None
    overflows = 0
    backlog_s = 0.0

    def __init__(self, chunks: list[Samples], error: Exception | None = None) -> None:
        self.chunks, self.error = chunks, error
        self.read_all = threading.Event()

    def read(self) -> Samples | None:
        if self.chunks:
            return self.chunks.pop(0)
        self.read_all.set()
        if self.error is not None:
            raise self.error
        return None

    def close(self) -> None: ...

    def listen(self, notify: Callable[[SourceNotice], None]) -> None: ...


def test_a_source_is_read_without_a_reader():
    said = numbered(0, 50 * SAMPLE_RATE)
    talker = Talker(list(said.reshape(500, -1)))
    spooled = SpooledSource(talker, limit_s=60)
    first = spooled.read()
    assert talker.read_all.wait(HANG_S)
    assert first is not None
    heard = [first]
    while (chunk := spooled.read()) is not None:
        heard.append(chunk)
    assert (np.concatenate(heard) == said).all()
    assert spooled.overflows == 0


def test_audio_before_a_failure_of_the_source_is_read_first():
    spooled = SpooledSource(Talker([numbered(0, 100)], DeviceError("gone")), limit_s=60)
    first = spooled.read()
    assert first is not None
    assert len(first) == 100
    with pytest.raises(DeviceError, match="gone"):
        spooled.read()


def test_a_loss_is_reported_when_it_begins_and_measured_when_it_ends(monkeypatch):
    notices: list[SourceNotice] = []
    talker, over = Talker([]), threading.Event()

    def silent() -> None:
        over.wait()

    monkeypatch.setattr(talker, "read", silent)  # the source has not ended
    spooled = SpooledSource(talker, limit_s=10)
    spooled.listen(notices.append)
    for second in range(12):
        spooled._add(numbered(second * SAMPLE_RATE, SAMPLE_RATE))
    assert [(notice.at_s, notice.lost_s) for notice in notices if isinstance(notice, AudioLost)] == [(11.0, 0.0)]
    assert spooled.overflows == 1
    for _ in range(60):  # read six seconds
        spooled.read()
    spooled._add(numbered(0, SAMPLE_RATE))
    assert notices[1:] == [AudioLost(13.0, 2.0, "there is room again")]
    assert spooled.overflows == 1
    over.set()


def test_losses_and_backlog_of_the_device_count_too():
    talker = Talker([])
    talker.overflows, talker.backlog_s = 2, 0.5
    spooled = SpooledSource(talker, limit_s=1)
    for _ in range(2):  # the second does not fit
        spooled._add(numbered(0, SAMPLE_RATE))
    assert (spooled.overflows, spooled.backlog_s) == (3, 1.5)


def test_a_spool_that_is_full_after_a_disk_that_was_is_not_called_a_full_disk():
    states = iter([OSError(28, "No space left on device"), None, None])

    def sometimes() -> Any:
        if (error := next(states)) is not None:
            raise error
        return TemporaryFile(buffering=0)

    spool = Spool(100, 0, sometimes)
    assert (spool.append(numbered(0, 50)), spool.refused) == (50, "No space left on device")
    assert (spool.append(numbered(0, 60)), spool.refused) == (0, None)
    assert (spool.append(numbered(0, 60)), spool.refused) == (60, None)
    spool.close()


def test_a_loss_at_the_end_is_measured():
    notices: list[SourceNotice] = []
    talker = Talker([numbered(0, SAMPLE_RATE) for _ in range(10)])
    spooled = SpooledSource(talker, limit_s=2)
    spooled.listen(notices.append)
    spooled._read_source()
    assert [(notice.at_s, notice.lost_s) for notice in notices if isinstance(notice, AudioLost)] == [(3, 0), (10, 8)]


@pytest.mark.parametrize("seconds", [3, 10])
def test_a_failing_listener_ends_the_reading_instead_of_hanging_it(seconds):
    """When a loss begins, or when it ends with the audio."""

    def fails(notice: SourceNotice) -> None:
        if isinstance(notice, AudioLost) and (notice.lost_s or seconds == 3):
            raise ValueError("no listener")

    spooled = SpooledSource(Talker([numbered(0, SAMPLE_RATE) for _ in range(seconds)]), limit_s=2)
    spooled.listen(fails)
    spooled._read_source()
    spooled._thread = threading.current_thread()  # its work has been done above
    with pytest.raises(ValueError, match="no listener"):
        while spooled.read() is not None:
            pass


def test_a_full_disk_is_reported_as_the_cause(monkeypatch):
    def refuse() -> Any:
        raise OSError(28, "No space left on device")

    notices: list[SourceNotice] = []
    spooled = SpooledSource(Talker([]), limit_s=600)
    spooled._spool = Spool(600 * SAMPLE_RATE, SAMPLE_RATE, refuse)
    spooled.listen(notices.append)
    for second in range(3):
        spooled._add(numbered(second * SAMPLE_RATE, SAMPLE_RATE))
    (notice,) = notices
    assert isinstance(notice, AudioLost)
    assert "No space left on device" in notice.reason


def test_disk_space_is_released_when_the_spool_is_empty():
    with TemporaryFile(buffering=0) as file:
        spool = Spool(10_000, 0, lambda: file)
        for start in (0, 3_000):
            assert spool.append(numbered(start, 3_000)) == 0
            assert os.fstat(file.fileno()).st_size == 6_000
            while len(spool):
                spool.take()
            assert os.fstat(file.fileno()).st_size == 0
