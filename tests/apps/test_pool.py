"""Items shared out to processes: who does what, and what is said when a process fails or ends."""

import os
import signal
from contextlib import closing

import pytest

from pipeline.apps.pool import Ended, share_out
from pipeline.errors import PipelineError
from tests.apps.work import die, double, end, fail, wait


def test_items_are_shared_out_and_all_messages_come_back():
    told = list(share_out(list(range(7)), 2, double, 1))
    assert sorted((item, message) for item, message in told if isinstance(message, int)) == [
        (item, 2 * item + 1) for item in range(7)
    ]
    begun = [(item, message[1]) for item, message in told if isinstance(message, tuple)]
    assert len(dict(begun)) == 7
    assert len({process for item, process in begun if item < 2}) == 2, "no item is given out before both have asked"
    assert list(share_out([], 2, double, 1)) == []


def test_another_process_takes_the_place_of_one_that_ended():
    told = list(share_out(["a", "poison", "b", "poison", "c"], 1, die))
    died = Ended(-signal.SIGKILL)
    assert told == [("a", "done"), ("poison", died), ("b", "done"), ("poison", died), ("c", "done")]


def test_a_process_that_ends_before_it_has_work_is_an_error():
    with pytest.raises(PipelineError, match="ended before it had work \\(status 3\\); is there enough memory"):
        list(share_out([1, 2], 2, end))


def test_what_fails_in_a_process_is_raised_here():
    with pytest.raises(OSError, match="Input/output") as disk:
        list(share_out([1], 1, fail, "disk"))
    assert "in fail" in "".join(disk.value.__notes__)
    with pytest.raises(PipelineError, match="the VAD stage failed: stereo"):
        list(share_out([1], 1, fail, "stage"))


def test_processes_at_work_are_terminated_with_the_iterator():
    with closing(share_out([1, 2], 2, wait)) as told:
        _, process = next(told)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
