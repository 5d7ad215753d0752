"""The thread of a stage: results, errors, and a clean exit of the process."""

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from pipeline.core.run.worker import MOST_IN_A_ROW, FailedCalls, Worker
from pipeline.errors import StageError
from tests.conftest import HANG_S, ROOT, Panic


def test_calls_run_in_order_off_the_event_loop():
    submitted, calls = threading.Event(), list[tuple[int, int]]()

    def call(number: int) -> None:
        submitted.wait(HANG_S)
        calls.append((number, threading.get_ident()))

    async def work() -> None:
        worker = Worker("test")
        waiting = [asyncio.ensure_future(worker.run(lambda i=i: call(i))) for i in range(5)]
        await asyncio.sleep(0)  # each of them runs until it waits
        submitted.set()
        await asyncio.gather(*waiting)
        worker.close()

    asyncio.run(work())
    assert [number for number, _ in calls] == list(range(5))
    (thread,) = {thread for _, thread in calls}
    assert thread != threading.get_ident()


class UnsayableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [
        StopIteration("odd"),
        StopAsyncIteration("odd"),
        asyncio.CancelledError("odd"),
        GeneratorExit("odd"),
        SystemExit("odd"),
        KeyboardInterrupt("odd"),
        Panic("odd"),
        OSError("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_reaches_the_awaiting_task_and_the_thread_continues(error):
    """One that would end the program or the task in another way is the cause of a StageError."""

    def broken() -> None:
        raise error

    async def work() -> int:
        worker = Worker("test")
        with pytest.raises((StageError, OSError)) as raised:
            async with asyncio.timeout(HANG_S):
                await worker.run(broken)
        if isinstance(error, OSError):
            assert raised.value is error
        else:
            assert raised.value.__cause__ is error
            assert str(raised.value) == f"the test stage failed: {type(error).__name__}: odd"
        found = await worker.run(lambda: 7)
        worker.close()
        return found

    assert asyncio.run(work()) == 7


def test_an_error_with_a_broken_str_reaches_the_awaiting_task():
    def broken() -> None:
        raise UnsayableError

    async def work() -> None:
        worker = Worker("test")
        async with asyncio.timeout(HANG_S):
            with pytest.raises(UnsayableError) as raised:
                await worker.run(broken)
            assert str(StageError("test", raised.value)) == "the test stage failed: UnsayableError"
        worker.close()

    asyncio.run(work())


def test_a_closed_worker_refuses_work():
    async def work() -> None:
        worker = Worker("test")
        worker.close()
        worker.close()
        async with asyncio.timeout(HANG_S):
            with pytest.raises(
                RuntimeError, match="the worker 'test' is closed and runs nothing more; make another one"
            ):
                await worker.run(lambda: 1)
            worker.join(HANG_S)
            with pytest.raises(RuntimeError, match="is closed"):
                await worker.run(lambda: 1)

    asyncio.run(work())


def test_calls_accepted_before_close_are_made():
    go = threading.Event()

    async def work() -> list[object]:
        worker = Worker("test")
        waiting = [asyncio.ensure_future(worker.run(call)) for call in (go.wait, lambda: 1, lambda: 2)]
        await asyncio.sleep(0)  # each of them runs until it waits
        worker.close()
        go.set()
        async with asyncio.timeout(HANG_S):
            return await asyncio.gather(*waiting)

    assert asyncio.run(work()) == [True, 1, 2]


def kill(thread: threading.Thread) -> None:
    """Raise an exception in a thread at its next bytecode, as debuggers and time limits do."""
    assert thread.ident is not None
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.skipif(sys.gettrace() is not None, reason="waits for ever while coverage is measured")
@pytest.mark.parametrize("count", [1, 3])
def test_a_killed_thread_fails_its_accepted_and_its_later_calls(count):
    async def work() -> None:
        worker = Worker("test")
        kill(worker._thread)  # takes effect when the thread wakes up for a call
        async with asyncio.timeout(HANG_S):
            waiting = [asyncio.ensure_future(worker.run(lambda: 1)) for _ in range(count)]
            for error in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(error, RuntimeError)
                assert "the worker 'test' " in str(error)
                assert "runs nothing more; make another one" in str(error)
            with pytest.raises(RuntimeError, match="runs nothing more"):
                await worker.run(lambda: 1)
        worker.join(HANG_S)

    asyncio.run(work())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
def test_a_worker_in_a_forked_process_refuses_calls():
    program = """
import asyncio, os
from pipeline.core.run.worker import Worker

worker = Worker("test")
if os.fork() == 0:
    try:
        asyncio.run(worker.run(lambda: 1))
    except RuntimeError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.wait()
"""
    assert printed(program) == "the worker 'test' has ended and runs nothing more; make another one"


def test_work_given_while_the_interpreter_exits_is_refused():
    program = """
import asyncio, atexit

@atexit.register
def last():  # runs after the workers' own exit handler, which is registered later
    try:
        asyncio.run(worker.run(lambda: 1))
    except RuntimeError as error:
        print(error)

from pipeline.core.run.worker import Worker
worker = Worker("test")
"""
    assert printed(program) == "the worker 'test' is closed and runs nothing more; make another one\n"


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_process_that_exits_lets_a_running_call_end():
    """The interpreter crashes if it shuts down during a model call. A long sum replaces the call."""
    program = """
import asyncio
from pipeline.core.run.worker import Worker

def call():
    started.set()
    sum(range(20_000_000))
    print("the call ended", flush=True)

async def main():
    global started
    import threading
    started = threading.Event()
    waiting = asyncio.ensure_future(Worker("test").run(call))
    await asyncio.sleep(0)
    started.wait()
    waiting.cancel()

asyncio.run(main())
"""
    assert printed(program) == "the call ended\n"


def test_the_result_of_a_cancelled_call_is_dropped():
    problems: list[dict[str, Any]] = []
    go = threading.Event()

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        worker = Worker("test")
        waiting = asyncio.create_task(worker.run(go.wait))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go.set()
        assert await worker.run(lambda: 1) == 1  # returns after the other result was delivered
        worker.close()

    asyncio.run(work())
    assert not problems


def test_only_calls_that_fail_one_after_another_end_a_run():
    calls, error = FailedCalls(), OSError("connection refused")
    for _ in range(2):
        assert [calls.reason(error) for _ in range(MOST_IN_A_ROW - 1)] == ["connection refused"] * (MOST_IN_A_ROW - 1)
        calls.worked()
    for _ in range(MOST_IN_A_ROW - 1):
        calls.reason(error)
    with pytest.raises(OSError, match="connection refused"):
        calls.reason(error)
