"""The probe of the event loop."""

from __future__ import annotations

import asyncio
import platform
import time

import numpy as np
import pytest

from pipeline.bench.probe import IdleProbe, LoopProbe, LoopTimes, held_mb, peak_mb, resident_mb
from tests.conftest import HANG_S


def test_lateness_is_counted_in_tenths_of_a_millisecond() -> None:
    probe = LoopProbe()
    for milliseconds in [0.05] * 98 + [4.0, 12.34]:
        probe.late(milliseconds / 1000)
    assert probe.longest_s == 0.01234
    assert probe.percentile_s(0.5) == pytest.approx(0.0001)
    assert probe.percentile_s(0.99) == pytest.approx(0.0041)
    assert probe.percentile_s(1.0) == 0.01234
    assert (probe.above(0.01), probe.above(0.003), probe.above(0.02)) == (1, 2, 0)


def test_a_probe_that_asked_nothing_says_nothing() -> None:
    assert LoopProbe().percentile_s(0.99) == 0


async def woken(probe: LoopProbe, times: int) -> None:
    """Wait until the probe has been woken so many times more."""
    until = probe.count + times
    while probe.count < until:
        await asyncio.sleep(0)


@pytest.mark.parametrize("works", [True, False])
def test_a_callback_that_blocks_the_loop_is_seen(works: bool) -> None:
    """Blocked by work it counts as the loop's own; blocked by waiting it does not."""

    async def block() -> LoopProbe:
        async with LoopProbe() as probe:
            await woken(probe, 1)
            began = time.thread_time()
            if works:
                while time.thread_time() < began + 0.05:
                    pass
            else:
                time.sleep(0.05)  # noqa: ASYNC251
            await woken(probe, 1)
        return probe

    probe = asyncio.run(block())
    assert probe.longest_s > 0.045
    assert probe.above(0.045) >= 1
    assert (probe.longest_work_s > 0.045) == works


def test_an_idle_process_is_probed_for_as_long_as_the_block_takes() -> None:
    async def work() -> tuple[LoopTimes, LoopTimes]:
        async with IdleProbe() as idle, LoopProbe() as own:
            before = idle.times
            await woken(own, 50)  # so many 2 ms have passed for that process too
        return before, idle.times

    before, after = asyncio.run(asyncio.wait_for(work(), HANG_S))
    assert before.asked == 0
    assert after.asked > 10
    assert after.longest_ms >= after.p99_ms > 0


def test_an_idle_process_that_was_ended_says_nothing() -> None:
    async def work() -> LoopTimes:
        async with IdleProbe() as idle:
            idle._process.terminate()
            await idle._process.wait()
        return idle.times

    assert asyncio.run(asyncio.wait_for(work(), HANG_S)).asked == 0


def test_memory_is_what_the_process_holds() -> None:
    before_mb = resident_mb()
    reserved = np.empty(200_000_000, np.uint8)  # never touched
    held = np.ones(50_000_000, np.uint8)  # made in place: a copy that was just freed may still be counted
    assert 40 < resident_mb() - before_mb < 100
    assert peak_mb() >= 50
    del held, reserved


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator cannot be told to give memory back")
def test_memory_that_lies_free_is_not_held() -> None:
    before_mb = held_mb()
    blocks = [np.ones(8000, np.uint8) for _ in range(10_000)]
    assert held_mb() - before_mb > 60
    del blocks[:-1]  # the last one keeps the allocator from giving back those below it by itself
    assert held_mb() - before_mb < 20
