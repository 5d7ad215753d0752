"""The thread of a stage: results, errors, and a clean end of the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from pipeline.worker import Worker
from tests.conftest import HANG_S, ROOT


def test_calls_run_in_order_off_the_event_loop() -> None:
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


def test_an_error_reaches_whoever_waits_and_the_thread_goes_on() -> None:
    def broken() -> None:
        raise OSError("broken")

    async def work() -> int:
        worker = Worker("test")
        with pytest.raises(OSError, match="broken"):
            await worker.run(broken)
        found = await worker.run(lambda: 7)
        worker.close()
        return found

    assert asyncio.run(work()) == 7


@pytest.mark.parametrize("error", [StopIteration("empty"), asyncio.CancelledError("odd")])
def test_an_error_that_means_something_else_to_who_awaits_reaches_them_as_a_failure(error: BaseException) -> None:
    def broken() -> None:
        raise error

    async def work() -> None:
        worker = Worker("test")
        with pytest.raises(RuntimeError, match=type(error).__name__) as raised:
            async with asyncio.timeout(HANG_S):
                await worker.run(broken)
        assert raised.value.__cause__ is error
        worker.close()

    asyncio.run(work())


def test_a_process_that_exits_lets_a_running_call_end() -> None:
    """Taken down in the middle of a model call, the interpreter crashes; a long sum stands for the call."""
    program = """
import asyncio
from pipeline.worker import Worker

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
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"the call ended\n"), done.stderr.decode()


def test_what_a_call_gives_after_nobody_waits_for_it_any_more_is_dropped() -> None:
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
        assert await worker.run(lambda: 1) == 1  # after the other one's result was delivered
        worker.close()

    asyncio.run(work())
    assert not problems
