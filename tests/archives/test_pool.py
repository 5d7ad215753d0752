"""Calls in processes of this machine: what returns, what is told, and what becomes of a process that ends."""

import os
import signal
import time
from queue import SimpleQueue

import pytest

from pipeline.archives.pool import ProcessEndedError, Processes, tell_first_process


def test_calls_return_from_other_processes_and_messages_arrive_first():
    told = SimpleQueue()
    with Processes(2, told.put) as executor:
        calls = [executor.submit(os.path.join, "a", str(number)) for number in range(7)]
        assert [call.result() for call in calls] == [os.path.join("a", str(number)) for number in range(7)]
        assert executor.submit(os.getpid).result() != os.getpid()
        assert executor.submit(tell_first_process, "begun").result() is None
        assert told.get_nowait() == "begun"


def test_what_fails_in_a_process_is_raised_here():
    with Processes(1, print) as executor:
        with pytest.raises(NotADirectoryError):
            executor.submit(os.listdir, __file__).result()
        assert executor.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN


def test_another_process_takes_the_place_of_one_that_ended():
    with Processes(1, print) as executor:
        first = executor.submit(os.getpid).result()
        ended = executor.submit(os._exit, 3)
        after = executor.submit(os.getpid)
        with pytest.raises(ProcessEndedError, match="ended with status 3"):
            ended.result()
        assert after.result() != first
        with pytest.raises(ProcessEndedError, match="ended with status -9"):
            executor.submit(signal.raise_signal, signal.SIGKILL).result()


def test_processes_at_work_are_terminated():
    executor = Processes(2, print)
    process = executor.submit(os.getpid).result()
    calls = [executor.submit(time.sleep, 600) for _ in range(3)]
    executor.shutdown(wait=False)
    assert [call.cancelled() or isinstance(call.exception(), ProcessEndedError) for call in calls] == [True] * 3
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_no_process_is_started_after_they_were_ended():
    executor = Processes(1, print)
    executor.shutdown(wait=False)
    with pytest.raises(ProcessEndedError, match="were ended"):  # by a call that was waiting
        executor._call(os.getpid)
